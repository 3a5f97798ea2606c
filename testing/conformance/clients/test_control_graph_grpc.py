# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""InferenceGraphs over gRPC: the same requests as over REST, through Triton's gRPC client."""
import contextlib
import json
import shutil
import time

import numpy as np
import pytest

pytest.importorskip("yaml")
grpc_client = pytest.importorskip("tritonclient.grpc")
from tritonclient.utils import InferenceServerException

from control_server import ControlServer, Refused
from server import EXAMPLES, until

IRIS = np.array([[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]], np.float32)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

MODEL = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: {name}, namespace: graphs}}
spec:
  predictor:
    model:
      modelFormat: {{name: onnx}}
      {protocol}
      storageUri: file://${{models}}/onnx
"""

PROCESS = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: {name}, namespace: graphs}}
spec:
  predictor:
    containers:
      - name: kserve-container
        command: ["${{python}}", "${{control}}/step_v2.py"]
        args: {args}
        env: [{{name: PROTOCOL, value: {protocol}}}]
        ports: {ports}
"""


def process(plane, name, *args, protocol="v2", ports=()):
    text = PROCESS.format(
        name=name, protocol=protocol, args=json.dumps(["--port=$(PORT)", *args]), ports=json.dumps(list(ports)))
    plane.apply(plane.text(text))


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    (root / "onnx").mkdir()
    shutil.copy(EXAMPLES / "iris/1/model.onnx", root / "onnx/model.onnx")
    server = ControlServer(tmp_path_factory.mktemp("plane"), values={"models": root})
    server.notes = tmp_path_factory.mktemp("notes")
    server.apply(json.dumps({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": "graphs"},
        "data": {"router": json.dumps({"headers": {"propagate": ["X-Team"]}})}}))
    server.apply(server.text(MODEL.format(name="iris", protocol="protocolVersion: v2")))
    server.apply(server.text(MODEL.format(name="iris-grpc", protocol="protocolVersion: grpc-v2")))
    server.apply(server.text(MODEL.format(name="iris-v1", protocol="")))
    process(server, "tenth", "--factor=0.1")
    process(server, "slow", "--delay=3", f"--note={server.notes / 'slow'}")
    process(server, "after", f"--note={server.notes / 'after'}")
    process(server, "only-grpc", "--grpc", "--factor=0.1", ports=[{"name": "h2c", "containerPort": 9000}])
    for name in ("iris", "iris-grpc", "iris-v1", "tenth", "slow", "after", "only-grpc"):
        server.steady(name, "graphs")
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


def apply(plane, name, root, spec=None, **nodes):
    plane.apply(json.dumps({
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph",
        "metadata": {"name": name, "namespace": "graphs"}, "spec": {"nodes": {"root": root, **nodes}, **(spec or {})}}))
    plane.steady(name, "graphs", "InferenceGraph")


def node(kind, *steps):
    return {"routerType": kind, "steps": [{"serviceName": s} if isinstance(s, str) else s for s in steps]}


@contextlib.contextmanager
def client(plane, name):
    host = f"{name}-graphs.example.com"
    with grpc_client.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", host)]) as made:
        yield made


def tensor(name, array, kind="FP32"):
    made = grpc_client.InferInput(name, list(array.shape), kind)
    made.set_data_from_numpy(array)
    return made


def typed(channel, model, **contents):
    """Sends a request with typed contents, which Triton's client does not do by itself."""
    pb = grpc_client.service_pb2
    request = pb.ModelInferRequest(model_name=model)
    request.inputs.add(**contents)
    return channel._client_stub.ModelInfer(request)


@pytest.mark.parametrize("service", ["iris", "iris-grpc"])
def test_a_graph_answers_as_its_model_does(plane, service):
    apply(plane, f"one-{service}", node("Sequence", service))
    with client(plane, f"one-{service}") as c:
        assert c.is_server_live() and c.is_server_ready()
        assert c.is_model_ready(f"one-{service}")
        reported = c.get_model_metadata(f"one-{service}")
        assert (reported.name, reported.platform) == (f"one-{service}", "kserve_inferencegraph")
        for model in (f"one-{service}", service):
            got = c.infer(model, [tensor("input", IRIS)], request_id="7")
            assert got.as_numpy("label").tolist() in ([0, 2], [[0], [2]])
            assert got.get_response().model_name == service and got.get_response().id == "7"
        asked = c.infer("x", [tensor("input", IRIS)], outputs=[grpc_client.InferRequestedOutput("label")])
        assert [o.name for o in asked.get_response().outputs] == ["label"]
        answer = typed(c, "x", name="input", datatype="FP32", shape=[2, 4], contents={"fp32_contents": IRIS.ravel()})
        label = next(o for o in answer.outputs if o.name == "label")
        assert list(label.contents.int64_contents) == [0, 2] and not answer.raw_output_contents


def test_a_graph_tells_that_it_is_ready_as_the_router_of_kserve_does(plane):
    apply(plane, "ready", node("Sequence", "iris"))
    for by in ("host", "path"):
        assert plane.call("ready", "/readyz", namespace="graphs", by=by)[0] == 200
        assert plane.call("ready", "/v2/health/ready", namespace="graphs", by=by)[0] == 200
        assert plane.call("ready", "/v2/models/any/ready", namespace="graphs", by=by)[0] == 200
        assert plane.call("ready", "/v2/models/any", namespace="graphs", by=by)[2]["properties"] == {"nodes": "root: Sequence"}
        assert plane.call("ready", "/other", namespace="graphs", by=by)[0] == 405


def test_every_type_goes_through_a_process_and_back(plane):
    apply(plane, "types", node("Sequence", "after"))
    words = np.array(["dog", "caf\u00e9", ""], np.object_)
    with client(plane, "types") as c:
        arrays = {k: np.array([0, 1, 100], t) for k, t in {
            "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8,
            "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "FP16": np.float16, "FP32": np.float32,
            "FP64": np.float64, "BOOL": np.bool_}.items()}
        got = c.infer("types", [*(tensor(k, a, k) for k, a in arrays.items()), tensor("BYTES", words, "BYTES")])
        for kind, array in arrays.items():
            assert got.as_numpy(kind).dtype == array.dtype and (got.as_numpy(kind) == array).all()
        assert [b.decode() for b in got.as_numpy("BYTES")] == list(words)


def test_steps_follow_one_another_with_parameters_and_metadata(plane):
    steps = ["tenth", {"serviceName": "iris", "data": "$response", "mapPredictionsToInstances": True}]
    apply(plane, "chain", node("Sequence", *steps))
    with client(plane, "chain") as c:
        got = c.infer("chain", [tensor("input", 10 * IRIS)])
        assert got.as_numpy("label").ravel().tolist() == [0, 2]
    apply(plane, "echo", node("Sequence", "tenth"))
    with client(plane, "echo") as c:
        got = c.infer(
            "echo", [tensor("x", IRIS)], parameters={"level": 3, "word": "w"},
            headers={"traceparent": TRACE, "x-team": "red", "x-secret": "s"}).get_response()
        values = {k: getattr(v, v.WhichOneof("parameter_choice")) for k, v in got.parameters.items()}
        assert values == {"traceparent": TRACE, "x-team": "red", "asked.level": 3, "asked.word": "w"}


def test_switches_splitters_and_ensembles(plane):
    apply(plane, "switch", node(
        "Switch",
        {"serviceName": "tenth", "condition": "parameters.scaled"},
        {"serviceName": "iris", "condition": 'inputs.#(datatype=="FP32")'}))
    with client(plane, "switch") as c:
        assert c.infer("switch", [tensor("input", IRIS)]).get_response().model_name == "iris"
        scaled = c.infer("switch", [tensor("input", IRIS)], parameters={"scaled": True})
        assert np.allclose(scaled.as_numpy("input"), IRIS / 10)
        with pytest.raises(InferenceServerException, match="NOT_FOUND.*None of the routes matched"):
            c.infer("switch", [tensor("input", IRIS.astype(np.float64), "FP64")])
    apply(plane, "split", node("Splitter", {"serviceName": "tenth", "weight": 0}, {"serviceName": "iris", "weight": 100}))
    with client(plane, "split") as c:
        assert c.infer("split", [tensor("input", IRIS)]).get_response().model_name == "iris"
    apply(plane, "both", node(
        "Ensemble", {"serviceName": "iris", "name": "flower"}, {"nodeName": "inner", "name": "scaled"}),
        inner=node("Sequence", "tenth"))
    with client(plane, "both") as c:
        got = c.infer("both", [tensor("input", IRIS)], request_id="9")
        assert got.get_response().model_name == "both" and got.get_response().id == "9"
        assert got.as_numpy("flower.label").ravel().tolist() == [0, 2]
        assert np.allclose(got.as_numpy("scaled.input"), IRIS / 10)


def test_what_goes_wrong_has_a_code_and_says_what(plane):
    apply(plane, "wrong", node("Sequence", "iris"))
    with client(plane, "wrong") as c:
        with pytest.raises(InferenceServerException, match="INVALID_ARGUMENT.*nothing"):
            c.infer("wrong", [tensor("nothing", IRIS)])
    apply(plane, "soft", node("Sequence", {"serviceName": "iris", "dependency": "Hard"}, "tenth"))
    with client(plane, "soft") as c:
        with pytest.raises(InferenceServerException, match="INVALID_ARGUMENT"):
            c.infer("soft", [tensor("nothing", IRIS)])
        assert c.infer("soft", [tensor("input", IRIS)]).get_response().model_name == "tenth"
    apply(plane, "first", node("Sequence", "iris-v1"))
    with client(plane, "first") as c:
        with pytest.raises(InferenceServerException):
            c.infer("first", [tensor("input", IRIS)])
    apply(plane, "merged", node("Ensemble", "iris", "iris-v1"))
    with client(plane, "merged") as c:
        with pytest.raises(InferenceServerException, match="FAILED_PRECONDITION.*not a V2 inference response"):
            c.infer("merged", [tensor("input", IRIS)])
        # The host of a graph is not a name of the loopback interface: management is closed before the graph is asked.
        with pytest.raises(InferenceServerException, match="PERMISSION_DENIED.*'manage' is closed"):
            c.load_model("merged")
        with pytest.raises(InferenceServerException, match="UNIMPLEMENTED.*RepositoryIndex"):
            c.get_model_repository_index()


def test_a_step_that_speaks_grpc_alone_is_called_over_grpc(plane):
    chain = ["only-grpc", {"serviceName": "iris", "data": "$response", "mapPredictionsToInstances": True}]
    apply(plane, "mixed", node("Sequence", *chain))
    with client(plane, "mixed") as c:
        for _ in range(2):
            got = c.infer("mixed", [tensor("input", 10 * IRIS)])
            assert got.as_numpy("label").ravel().tolist() == [0, 2]
    apply(plane, "seen", node("Sequence", "only-grpc"))
    with client(plane, "seen") as c:
        half = tensor("half", (10 * IRIS).astype(np.float16), "FP16")
        words = tensor("words", np.array(["dog", ""], np.object_), "BYTES")
        got = c.infer("seen", [half, words], request_id="7", parameters={"level": 3},
                      headers={"traceparent": TRACE, "x-team": "red", "x-secret": "s"})
        assert np.allclose(got.as_numpy("half"), IRIS, rtol=1e-2) and got.as_numpy("words").tolist() == [b"dog", b""]
        values = {k: getattr(v, v.WhichOneof("parameter_choice")) for k, v in got.get_response().parameters.items()}
        assert values == {"traceparent": TRACE, "x-team": "red", "asked.level": 3}
        assert got.get_response().id == "7" and got.get_response().model_name == "only-grpc"
        with pytest.raises(InferenceServerException, match="RESOURCE_EXHAUSTED.*as asked"):
            c.infer("seen", [tensor("x", IRIS)], parameters={"refuse": True})
    body = {"inputs": [{"name": "x", "shape": [2], "datatype": "FP64", "data": [1, 2]}]}
    status, _, answer = plane.call("seen", "/", body, namespace="graphs")
    assert status == 200 and np.allclose(answer["outputs"][0]["data"], [0.1, 0.2])
    status, _, answer = plane.call("seen", "/", {"instances": [1]}, namespace="graphs")
    assert status == 400 and "no 'inputs'" in answer["error"]


def test_a_process_that_speaks_grpc_alone_answers_rest(plane):
    body = {"id": "7", "inputs": [{"name": "x", "shape": [2], "datatype": "FP64", "data": [1, 2]}]}
    status, _, answer = plane.call("only-grpc", "/v2/models/only-grpc/infer", body, namespace="graphs")
    assert status == 200 and answer["id"] == "7" and np.allclose(answer["outputs"][0]["data"], [0.1, 0.2])
    status, _, answer = plane.call("only-grpc", "/v1/models/only-grpc:predict", {"instances": [1]}, namespace="graphs")
    assert status == 501 and "supports only gRPC" in answer["error"]


def noted(plane, service, word):
    file = plane.notes / service
    return file.read_text().count(word) if file.exists() else 0


def test_steps_have_a_limit_and_end_with_their_client(plane):
    before = noted(plane, "after", "begun")
    late = {"routerTimeouts": {"serviceClient": 1}}
    apply(plane, "late", node("Sequence", "slow", "after"), late)
    with client(plane, "late") as c:
        start = time.monotonic()
        c.infer("late", [tensor("x", IRIS)])  # soft: the second step answers
        assert 0.9 < time.monotonic() - start < 2.5
    apply(plane, "whole", node("Sequence", "slow", "after"), {"timeout": 1})
    with client(plane, "whole") as c:
        with pytest.raises(InferenceServerException, match="DEADLINE_EXCEEDED"):
            c.infer("whole", [tensor("x", IRIS)])
    apply(plane, "left", node("Sequence", "slow", "after"))
    with client(plane, "left") as c:
        with pytest.raises(InferenceServerException, match="(?i)deadline"):
            c.infer("left", [tensor("x", IRIS)], client_timeout=0.5)
    until(lambda: noted(plane, "slow", "begun") == noted(plane, "slow", "done") == 3, "the slow step has ended")
    time.sleep(0.3)
    assert noted(plane, "after", "begun") == before + 1, "no step begins after the limit, or after the client has left"


def test_graphs_are_judged_when_they_are_applied(plane):
    def graph(root, **spec):
        return json.dumps({
            "apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph",
            "metadata": {"name": "judged", "namespace": "graphs"}, "spec": {"nodes": {"root": root}, **spec}})

    with pytest.raises(Refused, match=r"steps\[0\]\.condition"):
        plane.apply(graph(node("Switch", {"serviceName": "iris", "condition": "a.#(b=="})))
