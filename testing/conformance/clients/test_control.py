# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""InferenceServices and InferenceGraphs as KServe's users write them, on one machine, through the clients that they use."""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

pytest.importorskip("yaml")

from control_fixtures import IRIS, LIGHTGBM, XGBOOST, applied, copy, here_only, models, plane, replicas, shares, sklearn_rows, web
from control_server import Refused, until
from server import EXAMPLES, program
from test_formats import read_expected


@pytest.fixture(scope="module", autouse=True)
def asleep(plane):
    """Starts early what takes time: scaling to zero waits for a metric window and a grace period."""
    for name in ("sleeper", "sleepy", "dozer"):
        plane.apply("zero.yaml", name=name)


# --- predictors -------------------------------------------------------------------------------------------------------


def test_sklearn_iris_answers_v1_by_host_and_by_path(plane):
    service = applied(plane, "sklearn.yaml", "sklearn-iris")
    rows, answers = sklearn_rows()
    if plane.cluster:
        assert service["status"]["url"] == "http://sklearn-iris-demo.example.com"
        assert service["status"]["clusterServingRuntimeName"] == "nereid-sklearnserver"
    else:
        assert re.fullmatch(r"http://sklearn-iris-demo\.localhost:\d+", service["status"]["url"])
        assert service["status"]["clusterServingRuntimeName"] == "kserve-sklearnserver"
    for by in ("host", "path"):
        assert plane.predict("sklearn-iris", rows, by=by) == answers["predict"][:2]
        assert plane.call("sklearn-iris", "/v1/models", by=by)[2] == {"models": ["sklearn-iris"], "object": "list", "data": []}
        status, _, answer = plane.call("sklearn-iris", "/v1/models/sklearn-iris", by=by)
        assert (status, answer["name"], answer["ready"]) == (200, "sklearn-iris", True)
    status, _, answer = plane.call("sklearn-iris", "/v1/models/other:predict", {"instances": rows})
    assert status == 404 and "other" in answer["error"]


def test_sklearn_v2_answers_rest_binary_and_grpc(plane):
    http_client = pytest.importorskip("tritonclient.http")
    grpc_client = pytest.importorskip("tritonclient.grpc")
    grpc_utils = pytest.importorskip("tritonclient.utils")
    applied(plane, "sklearn-v2.yaml", "sklearn-v2-iris")
    name = "sklearn-v2-iris"
    host = f"{name}-demo.example.com"
    rows, answers = sklearn_rows()
    metadata = plane.call(name, f"/v2/models/{name}")[2]
    kind, into = metadata["inputs"][0]["datatype"], metadata["inputs"][0]["name"]
    x = np.array(rows, {"FP32": np.float32, "FP64": np.float64}[kind])
    body = {"inputs": [{"name": into, "shape": list(x.shape), "datatype": kind, "data": x.ravel().tolist()}]}
    status, _, answer = plane.call(name, f"/v2/models/{name}/infer", body)
    assert status == 200 and answer["model_name"] == name
    assert answer["outputs"][0]["data"] == answers["predict"][:2]
    with http_client.InferenceServerClient(plane.base) as client:
        tensor = http_client.InferInput(into, list(x.shape), kind)
        tensor.set_data_from_numpy(x, binary_data=True)
        got = client.infer(name, [tensor], headers={"Host": host})
        assert got.as_numpy(answer["outputs"][0]["name"]).ravel().tolist() == answers["predict"][:2]
    with grpc_client.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", host)]) as client:
        tensor = grpc_client.InferInput(into, list(x.shape), kind)
        tensor.set_data_from_numpy(x)
        got = client.infer(name, [tensor])
        assert got.get_response().model_name == name
        assert got.as_numpy(answer["outputs"][0]["name"]).ravel().tolist() == answers["predict"][:2]
        assert client.is_model_ready(name)
        assert not client.is_model_ready("sklearn-iris"), "another service's name"
        with pytest.raises(grpc_utils.InferenceServerException, match="NOT_FOUND.*sklearn-iris"):
            client.get_model_metadata("sklearn-iris")


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_boosted_trees_answer_as_their_packages(plane, kind):
    x, y = read_expected({"xgboost": XGBOOST, "lightgbm": LIGHTGBM}[kind].with_suffix(".expected"))
    name = f"{kind}-iris"
    applied(plane, f"{kind}.yaml", name)
    whole = [i for i in range(len(x)) if not np.isnan(x[i]).any()][:3]
    assert whole
    got = np.array(plane.predict(name, x[whole].tolist()))
    assert np.allclose(got.reshape(len(whole), -1), y[whole], rtol=1e-4)


def test_onnx_needs_no_protocol(plane):
    service = applied(plane, "onnx.yaml", "onnx-iris")
    assert [p["label"] for p in plane.predict("onnx-iris", IRIS)] == [[0], [2]]
    body = {"inputs": [{"name": "input", "shape": [2, 4], "datatype": "FP32", "data": sum(IRIS, [])}]}
    answer = plane.call("onnx-iris", "/v2/models/onnx-iris/infer", body)[2]
    assert next(o for o in answer["outputs"] if o["name"] == "label")["data"] == [0, 2]
    assert service["status"]["modelStatus"]["states"]["activeModelState"] == "Loaded"


def test_numbered_folders_are_versions(plane):
    applied(plane, "versions.yaml", "versions")
    assert len(plane.predict("versions", IRIS)) == 2
    assert "2" in plane.call("versions", "/v2/models/versions")[2]["versions"]


def test_a_triton_repository_has_its_models(plane):
    grpc_client = pytest.importorskip("tritonclient.grpc")
    applied(plane, "triton.yaml", "triton-repository")
    assert plane.call("triton-repository", "/v2/models/simple/ready")[0] == 200
    host = "triton-repository-demo.example.com"
    with grpc_client.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", host)]) as client:
        names = {m.name for m in client.get_model_repository_index().models}
        assert names == {"iris", "simple"}
        tensors = []
        for name in ("INPUT0", "INPUT1"):
            tensor = grpc_client.InferInput(name, [1, 16], "INT32")
            tensor.set_data_from_numpy(np.ones((1, 16), np.int32))
            tensors.append(tensor)
        assert client.infer("simple", tensors).as_numpy("OUTPUT0").tolist() == [[2] * 16]


def test_the_legacy_schema_becomes_a_model(plane):
    service = applied(plane, "legacy.yaml", "legacy-iris")
    if not plane.cluster:
        assert service["spec"]["predictor"]["model"]["modelFormat"]["name"] == "sklearn"
    rows, answers = sklearn_rows()
    assert plane.predict("legacy-iris", rows) == answers["predict"][:2]


def test_a_custom_predictor_runs_as_a_process(plane):
    applied(plane, "custom.yaml", "custom-model")
    for by in ("host", "path"):
        assert plane.predict("custom-model", [[1, 2], [3, 4]], by=by) == [30, 70]
    body = {"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": [1, 2, 3, 4]}]}
    assert plane.call("custom-model", "/v2/models/custom-model/infer", body)[2]["outputs"][0]["data"] == [30, 70]


# --- transformers and explainers --------------------------------------------------------------------------------------


def test_a_transformer_calls_its_predictor_by_v1(plane):
    applied(plane, "transformer-v1.yaml", "transformer-v1")
    tenfold = [[10 * x for x in row] for row in IRIS]
    assert [p["label"] for p in plane.predict("transformer-v1", tenfold)] == [[0], [2]]


def test_a_transformer_calls_its_predictor_by_v2(plane):
    applied(plane, "transformer-v2.yaml", "transformer-v2")
    tenfold = [[10 * x for x in row] for row in IRIS]
    assert plane.predict("transformer-v2", tenfold)["label"] == [0, 2]


def test_a_transformer_s_errors_keep_their_status(plane):
    applied(plane, "transformer-v1.yaml", "transformer-v1")
    status, _, answer = plane.call("transformer-v1", "/v1/models/transformer-v1:predict", {"instances": [[1, 2]]})
    assert status == 400 and "error" in answer


def test_a_transformer_may_live_beside_its_predictor(plane):
    applied(plane, "collocated.yaml", "collocated")
    assert plane.predict("collocated", [[1, 2]]) == [60]


def test_an_explainer_of_one_s_own_answers_explain(plane):
    applied(plane, "explainer-container.yaml", "explained-by-process")
    name = "explained-by-process"
    assert [p["label"] for p in plane.predict(name, IRIS)] == [[0], [2]]
    status, _, answer = plane.call(name, f"/v1/models/{name}:explain", {"instances": IRIS})
    assert status == 200 and len(answer["explanations"]) == 2


# --- rollouts ---------------------------------------------------------------------------------------------------------


def test_a_canary_gets_its_share_and_is_promoted_and_taken_back(plane):
    name = "canary"
    applied(plane, "canary-first.yaml", name)
    assert shares(plane, name, 8) == {1.0: 1.0}
    applied(plane, "canary-second.yaml", name, percent=10, factor=2)
    traffic = plane.get(name)["status"]["components"]["predictor"]["traffic"]
    assert sorted((t["percent"], t.get("tag")) for t in traffic) == [(10, "latest"), (90, "prev")]
    seen = shares(plane, name, 600)
    assert set(seen) == {1.0, 2.0} and 0.04 < seen[2.0] < 0.17
    for tag, factor in (("latest", 2), ("prev", 1)):
        status, _, answer = plane.call(f"{tag}-{name}", f"/v1/models/{name}:predict", {"instances": [[1]]})
        if status == 404:
            status, _, answer = plane.call(
                f"{tag}-{name}-predictor", f"/v1/models/{name}:predict", {"instances": [[1]]})
        assert (status, answer) == (200, {"predictions": [factor]})
    applied(plane, "canary-second.yaml", name, percent=0, factor=2)
    assert shares(plane, name, 40) == {1.0: 1.0}
    applied(plane, "canary-second.yaml", name, percent=100, factor=2)
    until(lambda: shares(plane, name, 8) == {2.0: 1.0}, "all go to the promoted revision")
    predictor = plane.get(name)["status"]["components"]["predictor"]
    assert predictor["latestRolledoutRevision"] == predictor["latestCreatedRevision"]


def test_no_request_fails_while_a_revision_follows_another(plane):
    name = "canary"
    applied(plane, "canary-first.yaml", name)
    failures, answers, stop = [], set(), threading.Event()

    def ask():
        while not stop.is_set():
            status, _, answer = plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]})
            answers.add(answer["predictions"][0] if status == 200 else None)
            if status != 200:
                failures.append((status, answer))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        applied(plane, "canary-second.yaml", name, percent=100, factor=5)
        until(lambda: 5.0 in answers or failures, "the new revision answers")
    finally:
        stop.set()
        thread.join()
    assert not failures


def test_a_revision_that_fails_never_takes_traffic(plane):
    text = plane.text("onnx.yaml").replace("onnx-iris", "steady")
    plane.apply(text)
    plane.steady("steady")
    plane.apply(text.replace(f"{plane.values['models']}/onnx", f"{plane.values['models']}/broken"))
    status = until(
        lambda: (lambda s: s if s["modelStatus"]["transitionStatus"] == "BlockedByFailedLoad" else None)(
            plane.get("steady")["status"]), "the failure is reported")
    assert status["modelStatus"]["lastFailureInfo"]["reason"] == "ModelLoadFailed"
    assert status["modelStatus"]["states"]["activeModelState"] == "Loaded"
    assert [p["label"] for p in plane.predict("steady", IRIS)] == [[0], [2]]
    plane.apply(text)
    plane.steady("steady")
    plane.delete("steady")


def test_a_canary_that_fails_is_taken_back_by_itself(plane):
    name = "guarded"
    applied(plane, "guarded.yaml", name, percent=100, status=200)
    plane.apply("guarded.yaml", percent=50, status=500)
    until(lambda: len(plane.get(name)["status"]["components"]["predictor"].get("traffic", [])) == 2, "the canary answers")

    def taken_back():
        for _ in range(10):
            plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]})
        traffic = plane.get(name)["status"]["components"]["predictor"]["traffic"]
        return len(traffic) == 1

    until(taken_back, "the canary is taken back")
    for _ in range(20):
        assert plane.predict(name, [[1]]) == [1]


# --- scale ------------------------------------------------------------------------------------------------------------


def test_concurrency_is_limited(plane):
    name = "limited"
    applied(plane, "limited.yaml", name)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda i: plane.predict(name, [[i]])[0], range(5)))
    took = time.monotonic() - start
    assert answers == [0, 1, 2, 3, 4] and took > 0.95, "they came one after the other"
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        codes = list(pool.map(
            lambda i: plane.call(name, f"/v1/models/{name}:predict", {"instances": [[i]]}, timeout=30), range(30)))
    refused = [c for c in codes if c[0] != 200]
    assert {c[0] for c in refused} == {503} and len(refused) >= 10, "ten may wait for one"
    assert all("retry-after" in c[1] for c in refused)


# --- logger, batcher --------------------------------------------------------------------------------------------------


def test_the_batcher_puts_requests_together(plane):
    name = "batched"
    applied(plane, "batcher.yaml", name)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(
            lambda i: plane.call(name, f"/v1/models/{name}:predict", {"instances": [IRIS[i % 2]]})[2], range(4)))
    assert [a["predictions"][0]["label"] for a in answers] == [[0], [2], [0], [2]]
    assert len({a["batchId"] for a in answers}) == 1


# --- graphs -----------------------------------------------------------------------------------------------------------

GOOD = '{"predictions":[{"message":"SUCCESS"}]}'
BAD = '{"detail":"Intentional 404 code"}'


@pytest.fixture(scope="module")
def steps(plane, models):
    plane.apply("step.yaml", name="success", status=200, answer=GOOD)
    plane.apply("step.yaml", name="error", status=404, answer=BAD)
    plane.apply(plane.text("onnx.yaml").replace("namespace: demo", "namespace: graphs").replace("onnx-iris", "iris"))
    for name in ("success", "error", "iris"):
        plane.steady(name, "graphs")


def graph(plane, name, nodes, body, **more):
    """Applies a graph and calls it; returns (status, response)."""
    document = {
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph",
        "metadata": {"name": name, "namespace": "graphs"}, "spec": {"nodes": nodes}}
    plane.apply(json.dumps(document))
    plane.steady(name, "graphs", "InferenceGraph")
    status, _, answer = plane.call(name, "/", body, namespace="graphs", **more)
    return status, answer


def step(service, **more):
    return {"serviceName": service, **more}


ANY = {"instances": [[1]]}


@pytest.mark.parametrize("name, nodes, expected", [
    ("one", {"root": {"routerType": "Sequence", "steps": [
        step("success", name="a"), step("error", name="b", data="$request")]}}, (404, BAD)),
    ("two", {"root": {"routerType": "Sequence", "steps": [
        step("error", name="a", dependency="Soft"), step("success", name="b", dependency="Soft")]}}, (200, GOOD)),
    ("three", {"root": {"routerType": "Sequence", "steps": [
        step("error", name="a", dependency="Hard"), step("success", name="b")]}}, (404, BAD)),
    ("five", {"root": {"routerType": "Switch", "steps": [
        step("error", name="a", condition="instances", dependency="Soft")]}}, (404, BAD)),
    ("six", {"root": {"routerType": "Sequence", "steps": [
        step("success", name="a", dependency="Hard"), step("error", name="b", dependency="Hard"),
        step("success", name="c")]}}, (404, BAD)),
    ("seven", {"root": {"routerType": "Ensemble", "steps": [
        step("success", name="good"), step("error", name="bad")]}}, (200, f'{{"good":{GOOD},"bad":{BAD}}}')),
    ("eight", {"root": {"routerType": "Ensemble", "steps": [
        step("success", name="good"), step("error", name="bad", dependency="Hard")]}}, (404, BAD)),
    ("nine", {"root": {"routerType": "Splitter", "steps": [
        step("success", weight=100), step("error", weight=0)]}}, (200, GOOD)),
    ("ten", {"root": {"routerType": "Splitter", "steps": [
        step("success", weight=0), step("error", weight=100, dependency="Hard")]}}, (404, BAD)),
])
def test_graphs_of_one_node(plane, steps, name, nodes, expected):
    status, answer = graph(plane, f"graph-{name}", nodes, ANY)
    assert (status, answer) == (expected[0], json.loads(expected[1]))


def test_a_switch_goes_by_the_request(plane, steps):
    nodes = {"root": {"routerType": "Switch", "steps": [
        step("error", condition='[@this].#(decision_picker=="ERROR")'),
        step("success", condition='[@this].#(decision_picker=="SUCCESS")')]}}
    assert graph(plane, "graph-four", nodes, {"decision_picker": "ERROR"}) == (404, json.loads(BAD))
    assert graph(plane, "graph-four", nodes, {"decision_picker": "SUCCESS"}) == (200, json.loads(GOOD))
    assert graph(plane, "graph-four", nodes, {"decision_picker": "NONE"}) == (
        404,
        {"error": "Failed to process request", "cause": "None of the routes matched with the switch condition"})


def test_graphs_call_models_other_nodes_and_addresses(plane, steps, web):
    nodes = {
        "root": {"routerType": "Sequence", "steps": [
            step("iris", name="first"),
            {"nodeName": "both", "name": "second", "data": "$request"}]},
        "both": {"routerType": "Ensemble", "steps": [
            step("iris", name="flower"), {"serviceUrl": web.url + "/hook", "name": "outside"}]},
    }
    status, answer = graph(plane, "graph-models", nodes, {"instances": IRIS})
    assert status == 200
    assert [p["label"] for p in answer["flower"]["predictions"]] == [[0], [2]]
    assert answer["outside"] == {"message": "SUCCESS"}


def test_graphs_that_cannot_work_are_refused(plane):
    def nodes(root, **more):
        return {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph",
                "metadata": {"name": "wrong", "namespace": "graphs"}, "spec": {"nodes": {"root": root, **more}}}

    circle = nodes({"routerType": "Sequence", "steps": [{"nodeName": "a"}]},
                   a={"routerType": "Sequence", "steps": [{"nodeName": "root"}]})
    dangling = nodes({"routerType": "Sequence", "steps": [{"nodeName": "nowhere"}]})
    for document, word in ((circle, "root"), (dangling, "nowhere")):
        with pytest.raises(Refused) as refused:
            plane.apply(json.dumps(document))
        assert 400 <= refused.value.status < 500 and word in refused.value.message


# --- storage, runtimes, selection -------------------------------------------------------------------------------------


def test_an_archive_is_fetched_over_http(plane, web):
    web.failing = 1
    applied(plane, "archive.yaml", "archived", url=f"{web.url}/iris.tar.gz")
    assert [p["label"] for p in plane.predict("archived", IRIS)] == [[0], [2]]


def test_storage_that_fails_hinders_no_other_service(plane, web):
    applied(plane, "onnx.yaml", "onnx-iris")
    text = plane.text("archive.yaml", url=f"{web.url}/absent.tar.gz").replace("archived", "unfetched")
    plane.apply(text)
    status = until(
        lambda: (lambda s: s if s.get("modelStatus", {}).get("lastFailureInfo") else None)(
            plane.get("unfetched").get("status", {})), "the failure is reported")
    assert status["modelStatus"]["lastFailureInfo"]["reason"] == "ModelLoadFailed"
    assert "404" in status["modelStatus"]["lastFailureInfo"]["message"]
    assert len(plane.predict("onnx-iris", IRIS)) == 2
    assert plane.call("unfetched", "/v1/models/unfetched:predict", {"instances": IRIS})[0] in (404, 503)
    copy(EXAMPLES / "iris/1/model.onnx", web.folder / "model.onnx")
    plane.apply(text.replace("absent.tar.gz", "iris.tar.gz"))
    plane.steady("unfetched")
    plane.delete("unfetched")
    plane.gone("unfetched")


def test_a_runtime_of_the_namespace_runs_its_format(plane):
    service = applied(plane, "runtime.yaml", "own-format")
    assert service["status"]["servingRuntimeName"] == "own-runtime"
    assert plane.predict("own-format", [[1, 2]]) == [21]


def cli(plane, *arguments, status=0):
    done = subprocess.run(
        [program(), *arguments], env={**os.environ, "NEREID_CONTROL": plane.control_url},
        capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


@here_only("ClusterCommandsTest has the commands on a cluster")
def test_the_command_line_applies_waits_shows_and_deletes(plane, tmp_path):
    file = tmp_path / "service.yaml"
    file.write_text(plane.text("sklearn.yaml").replace("sklearn-iris", "by-hand"))
    assert "inferenceservice.serving.kserve.io/by-hand created" in cli(plane, "apply", "-f", str(file))
    cli(plane, "wait", "-f", str(file), "--for", "condition=Ready", "--timeout", "30s")
    assert "by-hand" in cli(plane, "get", "isvc", "-n", "demo")
    reported = cli(plane, "explain-selection", "-n", "demo", "by-hand")
    assert "kserve-sklearnserver" in reported and "kserve-xgbserver" in reported
    assert "by-hand" in cli(plane, "describe", "isvc", "by-hand", "-n", "demo")
    cli(plane, "delete", "-f", str(file))
    plane.gone("by-hand")


@here_only("fields without an effect")
def test_what_needs_a_cluster_is_told_and_runs_as_it_can(plane, tmp_path):
    file = tmp_path / "raw.yaml"
    file.write_text(plane.text("onnx.yaml").replace("onnx-iris", "raw").replace("  namespace: demo", """  namespace: demo
  annotations:
    serving.kserve.io/deploymentMode: RawDeployment
    serving.kserve.io/autoscalerClass: hpa""").replace("  predictor:", """  predictor:
    scaleMetric: cpu
    nodeSelector: {disk: fast}
    tolerations: [{key: gpu, operator: Exists}]"""))
    reported = cli(plane, "apply", "-f", str(file))
    for word in ("nodeSelector", "tolerations"):
        assert re.search(f"(?m)^Warning: .*{word}", reported), reported
    plane.steady("raw")
    assert "cpu" in plane.condition("raw", "FieldsWithoutEffect")["message"]
    assert len(plane.predict("raw", IRIS)) == 2
    assert plane.get("raw")["status"]["deploymentMode"] in ("Standard", "RawDeployment")


@here_only("plugins of its server")
@pytest.mark.parametrize("format, file, plugin", [
    ("pmml", "model.pmml", "pmml"), ("tensorflow", "saved_model.pb", "tensorflow"), ("paddle", "model.pdmodel", "onnx-import")])
def test_formats_of_plugins_say_how_to_get_them(plane, tmp_path, format, file, plugin):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / file).write_text("nothing yet")
    name = f"needs-{format}"
    plane.apply(plane.text("onnx.yaml").replace("onnx-iris", name).replace("name: onnx\n", f"name: {format}\n").replace(
        f"file://{plane.values['models']}/onnx", tmp_path.as_uri()))
    message = until(
        lambda: (plane.get(name).get("status", {}).get("modelStatus", {}).get("lastFailureInfo") or {}).get("message"), "it is reported")
    assert f"nereid plugins install {plugin}" in message, message
    plane.delete(name)


@pytest.mark.parametrize("change, words", [
    (lambda s: s.replace("modelFormat", "modelFromat"), ["modelFromat", "modelFormat"]),
    (lambda s: re.sub("(file|pvc)://", "ftp://", s), ["ftp://"]),
    (lambda s: s.replace("name: sklearn-iris", "name: Sklearn_Iris"), ["Sklearn_Iris"]),
    (lambda s: s.replace("  predictor:", "  predictor:\n    minReplicas: 3\n    maxReplicas: 2"), ["MaxReplicas", "MinReplicas"]),
    (lambda s: s.replace("  predictor:", "  predictor:\n    canaryTrafficPercent: 300"), ["canaryTrafficPercent"]),
])
def test_what_is_wrong_is_told(plane, change, words):
    with pytest.raises(Refused) as refused:
        plane.apply(change(plane.text("sklearn.yaml")))
    if plane.cluster and refused.value.status == 500:
        # An API server's answer to a field that is not in the definition: it names no other.
        words = words[:1]
    else:
        assert 400 <= refused.value.status < 500
    for word in words:
        assert word.lower() in refused.value.message.lower(), refused.value.message


@here_only("it runs no images")
def test_an_image_alone_is_refused_with_what_to_do(plane):
    plane.apply("""
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: image-only, namespace: demo}
spec:
  predictor:
    containers:
      - {name: kserve-container, image: example/model:latest}
""")
    message = until(lambda: plane.condition("image-only", "PredictorReady").get("message"), "it is reported")
    assert "command" in message
    plane.delete("image-only")


def test_a_format_that_nobody_runs_is_told(plane):
    plane.apply(plane.text("sklearn.yaml").replace("name: sklearn\n", "name: sklaern\n").replace("sklearn-iris", "absent"))
    status = until(
        lambda: (lambda s: s if s.get("modelStatus", {}).get("lastFailureInfo") else None)(
            plane.get("absent").get("status", {})), "it is reported")
    assert status["modelStatus"]["lastFailureInfo"]["reason"] == "NoSupportingRuntime"
    plane.delete("absent")


def test_namespaces_do_not_see_each_other(plane):
    for namespace, factor in (("left", 2), ("right", 3)):
        plane.apply(plane.text("canary-second.yaml", percent=100, factor=factor).replace("demo", namespace))
    for namespace, factor in (("left", 2), ("right", 3)):
        plane.steady("canary", namespace)
        for by in ("host", "path"):
            assert plane.predict("canary", [[1]], namespace=namespace, by=by) == [factor]
    plane.delete("canary", "left")
    plane.gone("canary", "left")
    # In a cluster the routes go after the service, by garbage collection.
    until(lambda: plane.call("canary", "/v1/models/canary", namespace="left")[0] == 404, "the host is not known any more")
    assert plane.predict("canary", [[1]], namespace="right") == [3]


@here_only("the metrics of one process")
def test_what_is_under_way_is_answered_before_a_service_is_gone(plane):
    applied(plane, "limited.yaml", "limited")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(plane.predict, "limited", [[i]]) for i in range(3)]
        until(lambda: plane.metric("nereid_exchanges_in_flight") >= 4, "three requests are under way, beside this question")
        plane.delete("limited")
        assert [w.result() for w in waiting] == [[0], [1], [2]]
    plane.gone("limited")
    assert plane.call("limited", "/v1/models/limited")[0] == 404


def test_a_process_that_is_killed_comes_back(plane):
    name = "custom-model"
    applied(plane, "custom.yaml", name)
    headers = plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]})[1]
    os.kill(int(headers["x-process"]), signal.SIGKILL)

    def again():
        status, now, _ = plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]})
        return status == 200 and now["x-process"] != headers["x-process"]

    until(again, "another process answers")


# --- kubectl ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kubectl(plane):
    found = shutil.which("kubectl")
    if not found:
        pytest.skip("THERE IS NO kubectl HERE: what it does with the control API is not tested")

    def run(*arguments):
        done = subprocess.run(
            [found, "--server", plane.control_url, *arguments], capture_output=True, text=True, timeout=60,
            env={**os.environ, "KUBECONFIG": "/dev/null"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@here_only("the address of its control API")
def test_kubectl_applies_waits_shows_and_deletes(plane, kubectl, tmp_path):
    file = tmp_path / "service.yaml"
    file.write_text(plane.text("onnx.yaml").replace("onnx-iris", "by-kubectl"))
    assert "created" in kubectl("apply", "-f", str(file))
    kubectl("wait", "--for=condition=Ready", "--timeout=30s", "-n", "demo", "isvc/by-kubectl")
    listed = kubectl("get", "isvc", "-n", "demo")
    row = next(line for line in listed.splitlines() if line.startswith("by-kubectl"))
    assert "http://by-kubectl-demo.localhost:" in row and "True" in row
    assert "unchanged" in kubectl("apply", "-f", str(file))
    assert "Ready" in kubectl("describe", "isvc", "by-kubectl", "-n", "demo")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    assert "deleted" in kubectl("delete", "-f", str(file))
    assert "by-kubectl" not in kubectl("get", "isvc", "-n", "demo")


# --- to zero and back: last, for it takes a while to get there ----------------------------------------------------------


def test_idle_services_scale_to_zero_and_wake(plane):
    for name in ("sleeper", "sleepy"):
        until(lambda: replicas(plane, name) == 0, f"{name} is at zero", 120)
        assert plane.condition(name)["status"] == "True"
    start = time.monotonic()
    assert [p["label"] for p in plane.predict("sleeper", IRIS)] == [[0], [2]], "the first request is held, and answered"
    print(f"woken in {1000 * (time.monotonic() - start):.0f} ms")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: plane.predict("sleepy", [IRIS[i % 2]])[0]["label"], range(8)))
    assert answers == [[0], [2]] * 4


def test_a_service_at_zero_is_woken_by_grpc(plane):
    grpc_client = pytest.importorskip("tritonclient.grpc")
    until(lambda: replicas(plane, "dozer") == 0, "dozer is at zero", 120)
    with grpc_client.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", "dozer-demo.example.com")]) as client:
        tensor = grpc_client.InferInput("input", [2, 4], "FP32")
        tensor.set_data_from_numpy(np.array(IRIS, np.float32))
        assert client.infer("dozer", [tensor]).as_numpy("label").ravel().tolist() == [0, 2]
