# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Services that share the pods of a pool: they are served, move and come back without a lost request, and are refused by name."""
import functools
import http.client
import http.server
import json
import os
import threading
import time

import pytest

pytest.importorskip("yaml")

from cluster import NODE, ClusterServer, cluster, on_cluster
from control_server import until
from server import ROOT

pytestmark = pytest.mark.skipif(not on_cluster(), reason="not run against a cluster (testing/kubernetes/end-to-end.sh)")

# How many services share the pool; testing/kubernetes/end-to-end.sh --all sets 1000.
MODELS = int(os.environ.get("NEREID_POOLED", "12"))
LONG = "NEREID_POOLED" in os.environ
# What the pool reckons for a model: with 4Mi, four pods of 2Gi have all of a thousand; with 16Mi, a third of them.
MEMORY = os.environ.get("NEREID_POOLED_MEMORY", "4Mi" if LONG else "16Mi")
long_form = pytest.mark.skipif(not LONG, reason="takes minutes: testing/kubernetes/end-to-end.sh --all")
SPACE = "pools"
POOL = "nereid-pool-pooled"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A web server with the models: the same file under the name of each."""
    folder = tmp_path_factory.mktemp("store")
    content = (ROOT / "examples/models/iris/1/model.onnx").read_bytes()
    for i in range(MODELS):
        (folder / f"m{i}").mkdir()
        (folder / f"m{i}/model.onnx").write_bytes(content)
    (folder / "wrong.onnx").write_bytes(b"not a model")
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{NODE}:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="module")
def plane(tmp_path_factory, store):
    server = ClusterServer(cluster(), tmp_path_factory.mktemp("models"))
    server.namespace(SPACE)
    shipped = json.loads(server.kubernetes.kubectl("get", "clusterservingruntime", "kserve-nereid", "-o", "json"))
    spec = shipped["spec"]
    container = spec["containers"][0]
    container["args"].append(f"--storage-allow={store}")
    container["resources"] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    if not LONG:
        # Nothing is under way when the pods end.
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": 2}}}
    spec["supportedModelFormats"] = [{"name": "onnx", "autoSelect": False}]
    runtime = {"apiVersion": shipped["apiVersion"], "kind": "ServingRuntime", "spec": spec, "metadata": {
        "name": "pooled", "namespace": SPACE, "annotations": {
            "nereid.io/serving-engine": "nereid", "serving.kserve.io/server-type": "nereid",
            "nereid.io/pool-min-pods": "2", "nereid.io/pool-max-pods": "4"}}}
    server.kubernetes.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(runtime))
    yield server
    server.close()


def service(name, uri, annotations=None, **predictor):
    return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {
        "name": name, "namespace": SPACE,
        "annotations": {"nereid.io/placement": "shared", "nereid.io/placement-memory": MEMORY, **(annotations or {})}},
        "spec": {"predictor": {
            "model": {"modelFormat": {"name": "onnx"}, "runtime": "pooled", "protocolVersion": "v2", "storageUri": uri}, **predictor}}}


def apply(plane, *services):
    plane.kubernetes.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input="\n---\n".join(map(json.dumps, services)))


def items(plane, kind, *options):
    return json.loads(plane.kubernetes.kubectl("get", kind, "-n", SPACE, "-o", "json", *options))["items"]


def condition(plane, name, kind="Ready"):
    status = json.loads(plane.kubernetes.kubectl("get", "isvc", name, "-n", SPACE, "-o", "json")).get("status", {})
    return next((one for one in status.get("conditions", []) if one["type"] == kind), {})


def ready(plane):
    return {one["metadata"]["name"] for one in items(plane, "isvc")
            if any(c["type"] == "Ready" and c["status"] == "True" for c in one.get("status", {}).get("conditions", []))}


ROW = json.dumps({"inputs": [{"name": "input", "shape": [1, 4], "datatype": "FP32", "data": [5.1, 3.5, 1.4, 0.2]}]}).encode()


def call(connection, name):
    connection.request("POST", f"/v2/models/{name}/infer", ROW, {"Host": f"{name}-{SPACE}.example.com", "Content-Type": "application/json"})
    reply = connection.getresponse()
    return reply, reply.read()


class Load:
    """Calls the models of the pool one after the other, and keeps what failed."""

    def __init__(self, plane, names, threads=3, pause=0.02):
        self.plane, self.names, self.pause = plane, names, pause
        self.failures, self.answers, self.slowest = [], 0, 0
        self.stopping, self.lock = threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]

    def run(self, turn):
        connection = None
        while not self.stopping.is_set():
            name = self.names[turn % len(self.names)]
            turn += 7
            begun = time.monotonic()
            try:
                if connection is None:
                    connection = http.client.HTTPConnection(self.plane.host, self.plane.port, timeout=120)
                reply, body = call(connection, name)
                if reply.getheader("Connection") == "close":
                    connection.close()
                    connection = None
                with self.lock:
                    self.answers += 1
                    self.slowest = max(self.slowest, time.monotonic() - begun)
                    if reply.status != 200:
                        self.failures.append((name, reply.status, body))
            except (OSError, http.client.HTTPException) as e:
                with self.lock:
                    self.failures.append((name, repr(e)))
                connection = None
            time.sleep(self.pause)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


NAMES = [f"m{i}" for i in range(MODELS)]


@pytest.fixture(scope="module")
def served(plane, store):
    for i in range(0, MODELS, 100):
        apply(plane, *(service(name, f"{store}/{name}/model.onnx") for name in NAMES[i:i + 100]))
    try:
        until(lambda: ready(plane) >= set(NAMES), "all services are ready", 240 + MODELS)
    except AssertionError as e:
        raise AssertionError(f"{e}\n{plane.kubernetes.report(SPACE)[-12000:]}") from None
    return plane


def test_services_share_the_pods_of_one_deployment(served):
    assert [one["metadata"]["name"] for one in items(served, "deployments")] == [POOL]
    connection = http.client.HTTPConnection(served.host, served.port, timeout=120)
    for name in NAMES:
        reply, body = call(connection, name)
        assert reply.status == 200, body
        assert json.loads(body)["model_name"] == name
    one = json.loads(served.kubernetes.kubectl("get", "isvc", "m0", "-n", SPACE, "-o", "json"))["status"]
    assert one["url"] == f"http://m0-{SPACE}.example.com"
    assert condition(served, "m0", "PredictorReady")["status"] == "True"


def test_clients_load_and_unload_nothing(served):
    connection = http.client.HTTPConnection(served.host, served.port, timeout=60)
    for path in ("m1/unload", "m0/load"):
        connection.request("POST", f"/v2/repository/models/{path}", b"{}", {"Host": f"m0-{SPACE}.example.com"})
        reply = connection.getresponse()
        assert reply.status == 403, reply.read()
        reply.read()


@long_form
def test_no_request_is_lost_while_pods_come_and_go(served):
    kubectl = served.kubernetes.kubectl
    with Load(served, NAMES) as load:
        time.sleep(3)
        for _ in range(2):
            pods = [one["metadata"]["name"] for one in items(served, "pods", "-l", f"nereid.io/pool-of={POOL}")
                    if not one["metadata"].get("deletionTimestamp")]
            kubectl("delete", "pod", pods[0], "-n", SPACE, "--wait=false")
            until(lambda: pods[0] not in [one["metadata"]["name"] for one in items(served, "pods")], "the pod is gone", 240)
            until(lambda: sum(any(c["type"] == "Ready" and c["status"] == "True" for c in one["status"].get("conditions", []))
                              for one in items(served, "pods", "-l", f"nereid.io/pool-of={POOL}")) >= 2, "two pods are ready", 120)
    assert load.failures == [], f"{len(load.failures)} of {load.answers}, the slowest {load.slowest} s"
    assert load.answers > 100


@long_form
def test_models_of_a_lost_pod_come_back(served):
    pods = [one["metadata"]["name"] for one in items(served, "pods", "-l", f"nereid.io/pool-of={POOL}")
            if not one["metadata"].get("deletionTimestamp")]
    served.kubernetes.kubectl("delete", "pod", pods[0], "-n", SPACE, "--force", "--grace-period=0")
    with Load(served, NAMES) as load:
        time.sleep(20)
    # What was on the way to the pod that is gone is lost with it; nothing that comes later is.
    assert len(load.failures) <= 3, load.failures
    assert load.answers > 50


@long_form
def test_requests_go_on_while_the_operator_restarts(served):
    kubectl = served.kubernetes.kubectl
    with Load(served, NAMES) as load:
        kubectl("delete", "pod", "-n", "nereid", "-l", "app.kubernetes.io/name=nereid-operator", "--wait=true")
        kubectl("wait", "deployment", "nereid-operator", "-n", "nereid", "--for=condition=Available", "--timeout=150s")
        time.sleep(10)
    assert load.failures == []
    assert ready(served) >= set(NAMES)


def test_what_cannot_be_shared_is_refused_by_name(plane, store):
    uri = f"{store}/m0/model.onnx"
    wrong = {
        "with-resources": (service("with-resources", uri), "spec.predictor.model.resources"),
        "with-transformer": (service("with-transformer", uri), "spec.transformer"),
        "with-volume": (service("with-volume", "pvc://models/m0"), "pvc:// needs a volume"),
        "with-minimum": (service("with-minimum", uri, minReplicas=1), "spec.predictor.minReplicas"),
    }
    wrong["with-resources"][0]["spec"]["predictor"]["model"]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    wrong["with-transformer"][0]["spec"]["transformer"] = {"containers": [{"name": "kserve-container", "image": "example/model:1"}]}
    apply(plane, *(one for one, _ in wrong.values()))
    for name, (_, words) in wrong.items():
        until(lambda: words in condition(plane, name, "PredictorReady").get("message", ""), f"{name}: {words}", 60)
        assert condition(plane, name)["status"] == "False"


def test_a_model_that_cannot_be_loaded_says_why(plane, store):
    apply(plane, service("wrong", f"{store}/wrong.onnx"))
    until(lambda: condition(plane, "wrong", "PredictorReady").get("status") == "False", "the service is not ready", 120)
    message = condition(plane, "wrong", "PredictorReady")["message"]
    assert message and "CompletionException" not in message
