#!/usr/bin/env bash
# The end-to-end suites against a cluster: real control plane, nodes of processes, operator and gateway installed as in production.
#
#   end-to-end.sh [PYTEST OPTION...]         the short form: about ten minutes on two cores
#   end-to-end.sh --all [PYTEST OPTION...]   every suite of the control plane that also runs on one machine, 50 changes of each kind under
#                                            load, 200 services: about an hour
#
# It needs root and Go, builds what is missing, and ends with 77 where it cannot run. NEREID_KEEP_CLUSTER=1 keeps the logs of the pods.
set -euo pipefail
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
venv=${NEREID_CLIENTS_CACHE:-$root/testing/conformance/target/clients}/venv

cannot() {
    echo "the end-to-end suites did not run: $*"
    exit 77
}

why=$("$here/network.sh" check) || cannot "$why"
"$here/cluster.sh" binary >/dev/null || { command -v go >/dev/null && "$here/cluster.sh" build >/dev/null; } ||
    cannot "the control plane is not built and cannot be (testing/kubernetes/cluster.sh build)"
"$here/helm.sh" binary >/dev/null || "$here/helm.sh" build >/dev/null || echo "helm could not be built: the chart is not installed" >&2
if ! ls "$root"/apps/nereid/target/dist/nereid-*/bin/nereid "$here"/target/nereid-testing-kubernetes-*.jar >/dev/null 2>&1; then
    (cd "$root" && ./mvnw -B -ntp -q -Pquick -DskipTests -pl apps/nereid,testing/kubernetes,examples -am package) >&2
fi
if ! "$venv/bin/python" -c "import pytest, yaml, kserve, tritonclient.grpc" 2>/dev/null; then
    python3 -m venv "$venv" || cannot "no Python 3 with venv"
    for needs in base control triton kserve; do
        "$venv/bin/pip" install -q --disable-pip-version-check -r "$root/testing/conformance/clients/requirements-$needs.txt" ||
            cannot "pip could not install requirements-$needs.txt"
    done
fi

cd "$root/testing/conformance/clients"
export NEREID_TARGET=cluster PYTHONDONTWRITEBYTECODE=1
if [ "${1:-}" = --all ]; then
    shift
    export NEREID_CHANGES=${NEREID_CHANGES:-50} NEREID_SERVICES=${NEREID_SERVICES:-200} NEREID_POOLED=${NEREID_POOLED:-1000}
    suites=(test_cluster.py test_cluster_chart.py test_cluster_pools.py test_control.py test_control_more.py test_control_graph_grpc.py test_control_logger.py)
else
    suites=(test_cluster.py test_cluster_chart.py test_control.py)
    only="test_cluster or client_of_the_resources or sklearn or boosted or onnx_needs or triton or custom_predictor or transformer or explainer_of"
    set -- -k "$only or canary_gets or batcher or of_one_node or switch_goes or archive or woken_by_grpc" "$@"
fi
# In a process and a cluster of its own: tritonclient and the kserve package define the same messages.
code=0
for part in "${suites[*]}" test_control_sdk.py; do
    # shellcheck disable=SC2086
    "$here/network.sh" "$venv/bin/python" -m pytest -q -rfEs -p no:cacheprovider --tb=short $part "$@" || code=1
done
exit "$code"
