#!/bin/sh
# Prints the results table:      testing/bench/run.sh [--rounds=N] [--seconds=S] [--warmup=S] [--soak=S] [ROW...]
# Is this build worse?          testing/bench/run.sh --compare=BASE [--rounds=N] [--seconds=S] [--warmup=S] [ROW...]
#                               BASE is the directory of a distribution, or a commit, which is built in a folder of its own. The servers of
#                               both are measured in turn; rows rest-small grpc-single grpc-mux rest-big grpc-big cache onnx minilm
# Micro-benchmarks:             testing/bench/run.sh jmh [JMH arguments]
# Rows: rest-small grpc-single grpc-mux rest-big grpc-big tails access tls json-floats arrow python trees trees-native trees-served libraries batcher
#       engine embedded tflite torchscript huggingface ensemble cache gateway cold-start thousand models lifecycle isolation minilm minilm-lengths slo
#       start overload soak
# The row overload takes a minute (--soak=10 for a short check); the row soak takes ten minutes (--soak=600), and the exit status
# is 1 when a request failed or memory grew.
# The row engine compares with Triton's core where testing/oracle/build.sh has been run; the row tflite needs a model, which
# python3 testing/bench/make_mobilenet.py makes; the row torchscript needs the one that python3 testing/bench/make_resnet.py makes, and
# libtorch: ./mvnw -Pquick,pytorch -DskipTests -pl testing/bench -am package. The row libraries needs a Python with scikit-learn and catboost
# in NEREID_BENCH_PYTHON; its SavedModel needs tensorflow there, and -Ptensorflow in that build. The row huggingface
# needs the folder that testing/bench/make_encoder.py makes with torch and transformers;
# testing/bench/compare_encoders.py compares it with KServe's Hugging Face server, or a server of FastAPI and transformers.
set -eu
case " $* " in
*' --help '* | *' -h '*)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
    exit 0
    ;;
esac
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)

build() {
    echo "bench: building (once)" >&2
    (cd "$root" && ./mvnw -B -q -Pquick -DskipTests -pl apps/nereid,testing/samples,testing/bench,examples -am package)
}
dist() {
    for d in "$1"/apps/nereid/target/dist/nereid-*; do
        if [ -x "$d/bin/nereid" ]; then echo "$d"; return; fi
    done
}
distribution=${NEREID_DISTRIBUTION:-$(dist "$root")}
if [ -z "$distribution" ] || [ ! -d "$here/target/lib" ] || [ ! -d "$root/testing/samples/target/plugins" ]; then
    build
    distribution=$(dist "$root")
fi
. "$distribution/bin/find-java.sh"

classpath=
for jar in "$here"/target/lib/*.jar; do
    classpath=${classpath:+$classpath:}$jar
done
export ORT_DISABLE_TELEMETRY=1
if [ "${1:-}" = jmh ]; then
    shift
    exec "$JAVA" -cp "$classpath" org.openjdk.jmh.Main "$@"
fi

# A commit to compare with becomes the distribution that its own sources make.
for argument in "$@"; do
    case $argument in
    --compare) echo "bench: --compare=BASE: BASE is missing (use for example --compare=HEAD~1)" >&2; exit 2 ;;
    --compare=*)
        base=${argument#--compare=}
        if [ ! -x "$base/bin/nereid" ]; then
            commit=$(git -C "$root" rev-parse --verify --quiet "$base^{commit}") || {
                echo "bench: --compare '$base' is neither a directory with bin/nereid nor a commit (use for example --compare=HEAD~1)" >&2
                exit 2
            }
            tree=$here/target/base/$commit
            if [ ! -f "$tree/mvnw" ]; then
                mkdir -p "$tree"
                git -C "$root" archive "$commit" | tar -x -C "$tree"
            fi
            base=$(dist "$tree")
            if [ -z "$base" ]; then
                echo "bench: building $commit (once)" >&2
                (cd "$tree" && ./mvnw -B -q -Pquick -DskipTests -pl apps/nereid,examples -am package)
                base=$(dist "$tree")
            fi
        fi
        base=$(CDPATH= cd -- "$base" && pwd)
        set -- "$@" "--compare=$base"
        ;;
    *) set -- "$@" "$argument" ;;
    esac
    shift
done
set -- io.nereid.bench.Bench "$@"
set -- -Dnereid.distribution="$distribution" -Dnereid.root="$root" -Dnereid.samples="$root/testing/samples/target/plugins" -cp "$classpath" "$@"
[ "$JAVA_MAJOR" -ge 22 ] && set -- --enable-native-access=ALL-UNNAMED "$@"
[ "$JAVA_MAJOR" -ge 23 ] && set -- --sun-misc-unsafe-memory-access=allow "$@"
exec "$JAVA" -XX:+UseSerialGC -Xmx512m "$@"
