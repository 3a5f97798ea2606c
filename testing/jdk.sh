#!/bin/sh
# Runs the tests on another JDK than the one that builds:      testing/jdk.sh JDK [--short] [Maven's arguments]
# The classes are compiled by the default JDK for release 17, and run by JDK/bin/java. --short leaves out the control plane, the program, and
# what only computes with random inputs: it takes some minutes in place of a quarter of an hour.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
java=${1:-}/bin/java
[ -x "$java" ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
shift
arguments=
[ "${major:-0}" -lt 24 ] || arguments="--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow"
if [ "${1:-}" = --short ]; then
    shift
    set -- "-Dsurefire.excludesFile=$root/testing/jdk-short.txt" \
        -pl transport,protocols/v1,protocols/v2,apps/embedded,apps/client,caches/redis,storage/s3,devices/cuda,serving/storage,serving/payload,serving/explain,backends/onnx,backends/java,backends/tokenizer,backends/huggingface,backends/sklearn,backends/trees,backends/catboost,backends/python,backends/tensorflow,backends/pytorch,backends/tflite,backends/pmml,backends/mlflow,backends/onnx-import \
        -am "$@"
fi
# A Kubernetes control plane shows nothing of a JDK. The phase, not surefire:test: the goal alone would look for the sister modules in a repository.
export NEREID_TEST_CLUSTER=off
cd "$root"
exec ./mvnw -B -ntp -Pquick "-Djvm=$java" "-Dtests.jvm.args=$arguments" test "$@"
