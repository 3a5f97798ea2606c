#!/bin/sh
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
#
#   testing/gpu/run.sh [--simulated]
#
# Checks a machine with a GPU, in under ten minutes and without network: answers, memory, shared memory, copies, metrics, throughput. In a folder of
# testing/gpu/pack.sh it uses that folder's runtime and jars; in a checkout it packs first. It prints a table, and exits with 0 when all has passed,
# 1 when something has not, and 77 when the machine has no GPU or no library for one: nothing was checked then. --simulated is for a simulated driver
# in LD_LIBRARY_PATH: small models, figures of speed are not judged.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$here/lib" ]; then
    if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && ! echo "${LD_LIBRARY_PATH:-}" | tr : '\n' | while read -r one; do
        [ ! -e "$one/libcuda.so.1" ] || echo found
    done | grep -q found; then
        echo "SKIPPED, nothing was checked: this machine has no libcuda.so.1, so it has no driver of NVIDIA" >&2
        exit 77
    fi
    "$here/pack.sh" "$work/pack" --no-runtime
    here=$work/pack
fi
java=$here/java/bin/java
[ -x "$java" ] || java=${JAVA_HOME:+$JAVA_HOME/bin/}java
# cuBLAS and NVRTC of CUDA's folders and of PyPI's packages, after those that the caller names.
for folder in /usr/local/cuda-13*/lib64 /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu \
    ${VIRTUAL_ENV:+"$VIRTUAL_ENV"/lib/python3*/site-packages/nvidia/cu13/lib} \
    "$HOME"/.local/lib/python3*/site-packages/nvidia/cu13/lib /usr/local/lib/python3*/*-packages/nvidia/cu13/lib; do
    [ ! -d "$folder" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH
status=0
NEREID_PLUGIN_DIR=$here/plugins XDG_CACHE_HOME=$work/cache timeout 600 "$java" -XX:MaxDirectMemorySize=4g -Dnereid.check.server="$here/lib/*" \
    -cp "$here/lib/*:$here/plugins/gpucheck/*" io.nereid.gpucheck.GpuCheck "$work/check" "$@" || status=$?
if [ $status -ne 0 ] && [ $status -ne 77 ] && [ -f "$work/check/server.log" ]; then
    echo "the last lines of the server:" >&2
    tail -n 20 "$work/check/server.log" >&2
fi
exit $status
