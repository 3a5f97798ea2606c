#!/usr/bin/env bash
# Runs the published clients of the protocols against the server. Reports skipped suites prominently; fails when a suite fails.
# With --install, only installs the clients, which can be done beside a build.
# Most suites wait for servers to start, so two run at a time (NEREID_CLIENTS_LANES); the output of each is printed when it ends.
set -uo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../.. && pwd)
cache=${NEREID_CLIENTS_CACHE:-$here/target/clients}
venv=$cache/venv
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
lanes=${NEREID_CLIENTS_LANES:-2}

loud() { printf '\n!!! %s\n' "$*"; }

# result skipped|failed|flaky <what>
result() { echo "$2" >>"$results/$1"; }

skip() {
    loud "SKIPPED: $1: $2"
    result skipped "$1: $2"
}

only_install=
case ${1:-} in
    "") ;;
    --install) only_install=yes ;;
    *)
        echo "run-clients.sh: unknown argument '$1' (expected: nothing, or --install)" >&2
        exit 2
        ;;
esac

if [ -n "$only_install" ]; then
    :
elif [ -z "${NEREID_BIN:-}" ] && ! ls "$root"/apps/nereid/target/dist/nereid-*/bin/nereid >/dev/null 2>&1; then
    echo "building the distribution"
    (cd "$root" && ./mvnw -B -ntp -q -Pquick -DskipTests -pl apps/nereid,examples -am package) || exit 1
fi
# The test backends, a plugin that the distribution does not have: server.py gives it to the servers whose models need it.
if [ -z "$only_install" ] && ! ls "$root"/testing/samples/target/plugins/samples/*.jar >/dev/null 2>&1; then
    echo "building the test backends"
    (cd "$root" && ./mvnw -B -ntp -q -Pquick -DskipTests -pl testing/samples -am package) || exit 1
fi

mkdir -p "$cache"
if [ -n "${NEREID_CLIENTS_PYTHON:-}" ]; then
    python=$NEREID_CLIENTS_PYTHON
else
    make_venv() { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >"$cache/venv.log" 2>&1; }
    if ! make_venv; then
        rm -rf "$venv"
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            echo "installing python3-venv"
            (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv) >"$cache/apt.log" 2>&1
        fi
        if ! make_venv; then
            loud "SKIPPED: ALL CLIENT SUITES: no Python 3 with venv here ($(tail -n 1 "$cache/venv.log"))"
            exit 0
        fi
    fi
    python=$venv/bin/python
fi

install() {
    [ -n "${NEREID_CLIENTS_PYTHON:-}" ] && return 0
    "$venv/bin/pip" install -q --disable-pip-version-check --retries 2 -r "clients/requirements-$1.txt" >"$cache/pip-$1.log" 2>&1
}

if ! install base; then
    loud "SKIPPED: ALL CLIENT SUITES: pip could not install pytest and numpy ($(tail -n 1 "$cache/pip-base.log"))"
    exit 0
fi

# suite <name> <requirements> <modules to import> <test files>: a process each, for two clients bring the same proto package.
suite() {
    local name=$1 needs=$2 module=$3 said
    shift 3
    if [ -e "$results/no-$needs" ]; then
        skip "$name" "pip could not install it: $(grep -m1 ERROR "$cache/pip-$needs.log")"
        return
    fi
    if ! said=$("$python" -c "import $module" 2>&1); then
        skip "$name" "it does not import: ${said##*$'\n'}"
        return
    fi
    run "$python" "$name" "$@"
}

# pytests <python> <tests>
pytests() {
    local with=$1
    shift
    (cd clients && PYTHONDONTWRITEBYTECODE=1 "$with" -m pytest -q -rfEs -p no:cacheprovider --tb=short "$@")
}

# known <test>: whether testing/flaky-tests.txt names the test.
known() { sed 's/#.*//' "$root/testing/flaky-tests.txt" | awk '{ print $1 }' | grep -qxF "$1"; }

# run <python> <name> <test files>: retries up to three failed tests once. A test that then passes is flaky, which is an error unless
# testing/flaky-tests.txt lists it.
run() {
    local with=$1 name=$2
    shift 2
    printf '\n=== %s\n' "$name"
    local said line again
    said=$(mktemp)
    if ! pytests "$with" "$@" | tee "$said"; then
        mapfile -t again < <(sed -n 's/ - .*//; s/^FAILED //p' "$said")
        if [ ${#again[@]} -ge 1 ] && [ ${#again[@]} -le 3 ] && ! grep -q '^ERROR ' "$said" && pytests "$with" "${again[@]}"; then
            loud "FLAKY: $name: ${again[*]} passed only on the second try"
            for line in "${again[@]}"; do
                if known "$line"; then result flaky "$name: $line"; else result failed "$name: $line passed only on the second try"; fi
            done
        else
            result failed "$name"
        fi
    fi
    while read -r line; do result skipped "$name: ${line#SKIPPED }"; done < <(grep '^SKIPPED ' "$said")
    rm -f "$said"
}

# lane <command…>: runs a function of this file as soon as a lane is free, and prints its output when it ends.
lane() {
    while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do wait -n; done
    (
        said=$(mktemp)
        "$@" >"$said" 2>&1
        exec 9>"$results/print"
        flock 9
        cat "$said"
        rm "$said"
    ) &
}

# alone <command…>: suites that use the ports of the documents' commands take turns.
alone() {
    exec 8>"$results/alone"
    flock 8
    "$@" 8>&-
}

for needs in metrics triton grpc openapi kserve huggingface control console minilm mlflow onnx arrow; do
    install "$needs" || touch "$results/no-$needs"
done
if ! install control-more; then
    loud "without pyarrow, scikit-learn and shap: what the control plane's suites do with them is skipped, see below" \
        "($(grep -m1 ERROR "$cache/pip-control-more.log"))"
fi
# TensorFlow brings its own protobuf, which conflicts with the other clients: it gets a separate environment.
tfserving=${NEREID_CLIENTS_TENSORFLOW:-$cache/venv-tensorflow/bin/python}
if [ ! -x "$tfserving" ]; then
    python3 -m venv "$cache/venv-tensorflow" &&
        "$cache/venv-tensorflow/bin/pip" install -q --disable-pip-version-check --retries 2 -r clients/requirements-base.txt \
            -r clients/requirements-tfserving.txt
fi >"$cache/pip-tfserving.log" 2>&1

if [ -n "$only_install" ]; then
    [ -n "${PERF_ANALYZER:-}" ] || command -v perf_analyzer >/dev/null || ./install-perf-analyzer.sh "$cache/perf" "$venv/bin/pip" >"$cache/perf.log" 2>&1
    exit 0
fi

# The client for Java with KServe's server, of another implementation than Nereid.
java_client() {
    local name=$1
    if "$python" -c "import kserve" 2>/dev/null; then
        printf '\n=== %s\n' "$name"
        (cd "$root" && NEREID_CLIENTS_PYTHON=$python ./mvnw -B -ntp -q -Pquick -pl testing/conformance -am -Dtest=ClientOfKServeTest \
            -Dsurefire.failIfNoSpecifiedTests=false test) || result failed "$name"
    else
        skip "$name" "the kserve SDK is not installed"
    fi
}

perf() {
    if [ -z "${PERF_ANALYZER:-}" ] && ! PERF_ANALYZER=$(command -v perf_analyzer); then
        if ./install-perf-analyzer.sh "$cache/perf" "${NEREID_CLIENTS_PIP:-$venv/bin/pip}" >"$cache/perf.log" 2>&1; then
            PERF_ANALYZER=$cache/perf/perf_analyzer
        fi
    fi
    if [ -z "${PERF_ANALYZER:-}" ]; then
        skip perf_analyzer "it could not be installed: $(tail -n 1 "$cache/perf.log")"
        return
    fi
    export PERF_ANALYZER
    suite "perf_analyzer" base numpy test_perf_analyzer.py
}

command -v kubectl >/dev/null || skip "kubectl with the control plane" "kubectl is not installed"
# The longest first.
lane suite "scikit-learn, XGBoost, LightGBM and CatBoost as they are now" base numpy test_libraries.py
lane alone suite "the commands of the other documents" control "tritonclient.grpc, yaml" test_documents.py
lane suite "control plane: the commands of docs/KSERVE.md" control "tritonclient.grpc, yaml" test_control_page.py
lane suite "REST, curl, bad input" base numpy test_rest.py
lane suite "process" base numpy test_process.py
lane suite "who may do what: HTTP" base numpy test_access.py
lane suite "who may do what: the commands, kubectl" base numpy test_cli_access.py
lane suite "nereid fetch" base numpy test_fetch.py
lane suite "metrics: promtool, OpenMetrics" metrics "prometheus_client, yaml" test_metrics.py
lane suite "tritonclient http" triton tritonclient.http test_triton_http.py
lane suite "tritonclient grpc" triton tritonclient.grpc test_triton_grpc.py
lane suite "who may do what: tritonclient" triton tritonclient.grpc test_access_triton.py
lane suite "grpcio: reflection, health, raw calls" grpc grpc_reflection test_grpc_raw.py
lane suite "OpenAPI documents: openapi-spec-validator, OpenAPI Generator" openapi "openapi_spec_validator, pydantic" test_openapi.py
lane suite "kserve SDK" kserve kserve test_kserve.py
lane suite "encoders of Hugging Face: openai, kserve SDK" huggingface "openai, kserve" test_huggingface.py
lane java_client "client for Java with the kserve SDK"
lane alone suite "the commands of README.md" control "tritonclient.grpc, yaml" test_readme.py
lane suite "control plane: KServe's samples" control "tritonclient.grpc, yaml" test_control.py
lane suite "control plane: gRPC, rollouts, probes, scale" control "tritonclient.grpc, yaml" test_control_more.py
lane suite "control plane: graphs over gRPC" control "tritonclient.grpc, yaml" test_control_graph_grpc.py
lane suite "control plane: transformers in Java and Python" control "tritonclient.grpc, tritonclient.http, yaml" test_control_transformers.py
lane suite "control plane: stores and credentials" control yaml test_control_storage.py
lane suite "control plane: explainers" control "tritonclient.grpc, yaml" test_control_explain.py
lane suite "control plane: payload logs" control "tritonclient.grpc, yaml" test_control_logger.py
lane suite "control plane: chaos" control "tritonclient.grpc, yaml" test_control_chaos.py
lane suite "control plane: kserve SDK" kserve "kserve, yaml" test_control_sdk.py
lane suite "the web console in Chromium" console "selenium, axe_core_python" test_console.py
lane suite "tables as Arrow: pyarrow, polars, pandas" arrow "pyarrow, polars, pandas" test_arrow.py
lane suite "MiniLM" minilm tokenizers test_minilm.py

lane suite "Triton's schedulers" triton tritonclient.grpc test_triton_scheduling.py
lane suite "CUDA shared memory: tritonclient, simulated GPUs" triton tritonclient.http test_cuda_shared_memory.py
lane suite "Triton's management and extensions" triton tritonclient.http test_triton_management.py
lane suite "tritonserver's options and scripts" triton tritonclient.grpc test_tritonserver.py
lane suite "Python models" triton tritonclient.grpc test_python_backend.py
lane suite "Python models written for Triton" triton tritonclient.grpc test_python_models.py
lane suite "model formats" triton tritonclient.grpc test_formats.py
lane suite "models of plugins" triton tritonclient.grpc test_plugins.py
lane suite "MediaPipe's face detectors" triton tritonclient.grpc test_mediapipe.py
lane suite "MLflow and PMML" triton tritonclient.grpc test_mlflow.py
lane suite "MLflow's Python functions" mlflow "mlflow.pyfunc, pandas" test_mlflow_functions.py
lane suite "ONNX of skl2onnx and onnxruntime-extensions" onnx onnxruntime_extensions test_onnx_packages.py

lane perf

# Behind the suites with simulated GPUs, which this would hide.
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
if "$tfserving" -c "import tensorflow_serving.apis" 2>/dev/null; then
    lane run "$tfserving" "TensorFlow Serving's stubs" test_tfserving.py
    lane run "$tfserving" "who may do what: TensorFlow Serving's stubs" test_access_tfserving.py
    lane run "$tfserving" "TensorFlow's own models" test_tensorflow.py
else
    skip "TensorFlow Serving's stubs" "pip could not install them: $(grep -m1 ERROR "$cache/pip-tfserving.log")"
fi

wait
echo
for kind in skipped flaky failed; do
    [ ! -s "$results/$kind" ] || sed "s/^/$(printf '%-8s ' "${kind^^}")/" "$results/$kind"
done
[ -z "${NEREID_SKIPS:-}" ] || [ ! -s "$results/skipped" ] || sed 's/^/clients: /' "$results/skipped" >>"$NEREID_SKIPS"
[ ! -s "$results/failed" ]
