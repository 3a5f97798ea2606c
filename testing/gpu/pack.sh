#!/bin/sh
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
#
#   testing/gpu/pack.sh FOLDER [--no-runtime]
#
# Puts what testing/gpu/run.sh needs on a machine with a GPU and no network into a folder of at most 64 MiB: a Java runtime, Nereid's jars
# without ONNX Runtime's, the backend of the check, and JavaCPP's libraries for the CUDA runtime, cuBLAS, NVRTC and NVML. NVIDIA's libraries are
# those of the machine. The tree must be built (./mvnw -Pquick -DskipTests package); Maven's local repository must have JavaCPP's jars.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=${1:?usage: pack.sh FOLDER [--no-runtime]}
maven=${MAVEN_REPOSITORY:-$HOME/.m2/repository}/org/bytedeco
cuda=13.1-9.19-1.5.13
javacpp=1.5.13
home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")}

fail() {
    echo "pack.sh: $*" >&2
    exit 1
}

library=$(ls -d "$top"/apps/nereid/target/dist/*/lib 2>/dev/null) || fail "the distribution is not built: ./mvnw -Pquick -DskipTests package"
[ -d "$here/target/classes/io" ] || fail "the check is not built: ./mvnw -Pquick -DskipTests package"
driver=$(ls "$top"/devices/cuda/target/nereid-device-cuda-*.jar 2>/dev/null) || fail "the plugin cuda is not built"
[ -f "$maven/cuda/$cuda/cuda-$cuda-linux-x86_64.jar" ] || fail "JavaCPP's libraries are not in $maven; build the tree once with network"

rm -rf "$out"
mkdir -p "$out/lib" "$out/plugins/gpucheck"
for jar in "$library"/*.jar; do
    case $(basename "$jar") in
        # What computes with native libraries, and what a check of a GPU does not use.
        onnxruntime-* | tokenizers-* | nereid-backend-onnx-* | nereid-backend-huggingface-* | nereid-backend-tokenizer-* | \
            nereid-backend-python-* | nereid-backend-mlflow-* | nereid-backend-catboost-* | jedis-* | nereid-cache-redis-* | \
            lit-html-* | jna-* | affinity-* | commons-lang3-* | nimbus-jose-jwt-*) ;;
        *) cp "$jar" "$out/lib/" ;;
    esac
done
# One plugin: both have JavaCPP's classes, whose libraries a process loads once.
"$home/bin/jar" --create --file "$out/plugins/gpucheck/gpucheck.jar" -C "$here/target/classes" .
cp $driver "$maven/cuda/$cuda/cuda-$cuda.jar" "$maven/javacpp/$javacpp/javacpp-$javacpp.jar" \
    "$maven/javacpp/$javacpp/javacpp-$javacpp-linux-x86_64.jar" "$out/plugins/gpucheck/"
native=$(mktemp -d)
trap 'rm -rf "$native"' EXIT
(
    cd "$native"
    path=org/bytedeco/cuda/linux-x86_64
    "$home/bin/jar" xf "$maven/cuda/$cuda/cuda-$cuda-linux-x86_64.jar" $path/libjnicudart.so $path/libjnicublas.so $path/libjninvrtc.so $path/libjninvml.so
    "$home/bin/jar" --create --file "$out/plugins/gpucheck/cuda-linux-x86_64.jar" org
)
if [ "${2:-}" != --no-runtime ]; then
    [ -x "$home/bin/jlink" ] || fail "$home is no JDK; set JAVA_HOME to one"
    "$home/bin/jlink" --add-modules java.base,java.logging,java.management,java.naming,java.net.http,java.sql,java.xml,jdk.crypto.ec,jdk.management,jdk.unsupported,jdk.zipfs \
        --strip-debug --no-header-files --no-man-pages --compress=2 --output "$out/java" 2>/dev/null || fail "jlink has failed"
fi
cp "$here/run.sh" "$out/run.sh"
bytes=$(du -sb "$out" | cut -f1)
echo "$out: $((bytes / 1048576)) MiB"
[ "$bytes" -le 67108864 ] || fail "it is larger than 64 MiB"
