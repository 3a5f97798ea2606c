#!/bin/sh
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
#
#   testing/gpu/full.sh FOLDER
#
# Checks ONNX models on a GPU, on a machine with one and with network: installs the plugins cuda and onnxruntime-cuda (742 MB) and Python's packages
# (some GB: ONNX Runtime's, CUDA's and TensorRT's libraries) into FOLDER, serves models on processors, CUDA and TensorRT, and as plans of TensorRT, compares the answers and the
# throughput, and prints a table. Exits with 0 when all has passed, 1 when something has not, 77 without a GPU: nothing was installed or checked
# then. FULL_PROVIDERS=cpu runs the same on processors, without the plugins, to test the script itself. FULL_PYTHON names a Python that has numpy, onnx and
# onnxruntime already; then nothing is installed for Python.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
folder=${1:?usage: full.sh FOLDER}
providers=${FULL_PROVIDERS:-cpu cuda tensorrt plan}

if [ "$providers" != cpu ]; then
    command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || {
        echo "SKIPPED, nothing was checked: nvidia-smi finds no GPU on this machine" >&2
        exit 77
    }
fi
nereid=$(ls "$top"/apps/nereid/target/dist/*/bin/nereid 2>/dev/null) || {
    echo "full.sh: the distribution is not built: ./mvnw -Pquick -DskipTests package" >&2
    exit 1
}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export NEREID_PLUGIN_DIR="$folder/plugins" XDG_CACHE_HOME="$folder/cache"
python=${FULL_PYTHON:-}
if [ -z "$python" ]; then
    python3 -m venv "$folder/python"
    python=$folder/python/bin/python
    if [ "$providers" = cpu ]; then
        "$python" -m pip install -q numpy onnx onnxruntime
    else
        # The versions of the plugin: CUDA 12, cuDNN 9, TensorRT 10.
        "$python" -m pip install -q numpy onnx onnxruntime-gpu nvidia-cuda-runtime-cu12 nvidia-cublas-cu12 nvidia-curand-cu12 'nvidia-cudnn-cu12>=9,<10' \
            nvidia-cuda-nvrtc-cu12 nvidia-cufft-cu12 'tensorrt-cu12>=10,<11'
        VIRTUAL_ENV=$folder/python
        export VIRTUAL_ENV
        libraries=$(ls -d "$folder"/python/lib/python3*/site-packages/nvidia/*/lib "$folder"/python/lib/python3*/site-packages/tensorrt_libs 2>/dev/null | tr '\n' ':')
        export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:-}"
    fi
fi
if [ "$providers" != cpu ]; then
    "$nereid" plugins install cuda
    "$nereid" plugins install onnxruntime-cuda
fi
exec "$python" "$here/full.py" "$nereid" "$folder" $providers
