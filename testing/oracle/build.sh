#!/usr/bin/env bash
# build.sh: fetches Triton's core (a developer's tool; nothing of it is shipped) and builds the oracle in target/.
# Requires gcc and the system libraries of the core: libnuma1, libcurl4, libssl3, libxml2.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p target/lib target/backends
jar=target/tritonserver.jar
[ -f "$jar" ] || curl -fsS -o "$jar" \
    https://repo.maven.apache.org/maven2/org/bytedeco/tritonserver/2.51.0-1.5.11/tritonserver-2.51.0-1.5.11-linux-x86_64-redist.jar
echo "SHA256  $jar" | sed "s/SHA256/$(cat core.sha256)/" | sha256sum -c --quiet
python3 -m zipfile -e "$jar" target/jar
mv -f target/jar/org/bytedeco/tritonserver/linux-x86_64/libtritonserver.so target/lib/
rm -rf target/jar
echo 'libcudart.so.12 { global: *; };' >target/cuda.map
gcc -shared -fPIC -DCUDA -Wl,-soname,libcudart.so.12 -Wl,--version-script=target/cuda.map stubs.c -o target/lib/libcudart.so.12
gcc -shared -fPIC -Wl,-soname,libdcgm.so.3 stubs.c -o target/lib/libdcgm.so.3
gcc -O2 oracle.c -o target/oracle -Ltarget/lib -Wl,-rpath,"$PWD/target/lib" -Wl,--allow-shlib-undefined -ltritonserver -lpthread
for name in identity onnxruntime tensorrt pytorch tensorflow python openvino custom; do
    mkdir -p "target/backends/$name"
    gcc -O2 -shared -fPIC backend.c -o "target/backends/$name/libtriton_$name.so" -Ltarget/lib -Wl,--allow-shlib-undefined -ltritonserver
done
