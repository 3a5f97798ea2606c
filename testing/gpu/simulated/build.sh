#!/bin/sh
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the simulated driver into a folder, for LD_LIBRARY_PATH, and a program that shares memory of its devices.
set -eu
here=$(dirname "$0")
out=$1
mkdir -p "$out"
build() {
    gcc -std=gnu11 -O1 -Wall -Wextra -Werror -fPIC -shared -Wl,-rpath,'$ORIGIN' "$@"
}
build -o "$out/libcuda.so.1" -Wl,-soname,libcuda.so.1 "$here/cuda.c" -lpthread
build -o "$out/libcudart.so.13" -Wl,-soname,libcudart.so.13 -Wl,--version-script,"$here/cudart.map" "$here/cudart.c" "$out/libcuda.so.1"
build -o "$out/libnvidia-ml.so.1" -Wl,-soname,libnvidia-ml.so.1 "$here/nvml.c" "$out/libcuda.so.1"
build -o "$out/libcublas.so.13" -Wl,-soname,libcublas.so.13 "$here/cublas.c" "$out/libcuda.so.1"
build -o "$out/libcublasLt.so.13" -Wl,-soname,libcublasLt.so.13 -x c /dev/null
build -o "$out/libnvrtc.so.13" -Wl,-soname,libnvrtc.so.13 "$here/nvrtc.c"
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -Wl,-rpath,'$ORIGIN' -o "$out/share" "$here/share.c" "$out/libcudart.so.13"
ln -sf libcudart.so.13 "$out/libcudart.so"
