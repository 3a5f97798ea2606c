# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Further samples of KServe: gRPC end to end, sticky and mirrored requests, rollbacks, probes, scaling."""
import concurrent.futures
import contextlib
import json
import os
import threading

import numpy as np
import pytest

pytest.importorskip("yaml")
triton = pytest.importorskip("tritonclient.grpc")
http = pytest.importorskip("tritonclient.http")

from control_fixtures import IRIS, LIGHTGBM, XGBOOST, applied, here_only, models, plane, replicas, shares, sklearn_rows, web
from control_server import Refused, until
from test_formats import read_expected


@contextlib.contextmanager
def grpc(plane, name, prefix="", namespace="demo"):
    host = f"{prefix}{name}-{namespace}.example.com"
    with triton.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", host)]) as client:
        yield client


def tensor(rows, name="input", kind="FP32"):
    array = np.array(rows, {"FP32": np.float32, "FP64": np.float64}[kind])
    made = triton.InferInput(name, list(array.shape), kind)
    made.set_data_from_numpy(array)
    return made


def asks(plane, name, rows, output="output-0", **more):
    with grpc(plane, name) as client:
        return client.infer(name, [tensor(rows)], **more).as_numpy(output).ravel().tolist()


# --- gRPC -------------------------------------------------------------------------------------------------------------


def test_a_custom_predictor_speaks_grpc(plane):
    name = "grpc-custom"
    applied(plane, "grpc-custom.yaml", name, name=name, percent=100, factor=10, sticky="x-absent")
    assert asks(plane, name, [[1, 2], [3, 4]]) == [30, 70]
    with grpc(plane, name) as client:
        assert client.is_server_ready() and client.is_model_ready(name)


def test_a_canary_gets_its_share_of_grpc_and_sticks_to_who_asks(plane):
    name = "grpc-canary"
    applied(plane, "grpc-custom.yaml", name, name=name, percent=100, factor=1, sticky="x-user")
    applied(plane, "grpc-custom.yaml", name, name=name, percent=30, factor=2, sticky="x-user")
    with grpc(plane, name) as client:
        def one(**headers):
            return client.infer(name, [tensor([[1]])], headers=headers or None).as_numpy("output-0").tolist()[0]

        answers = [one() for _ in range(300)]
        assert set(answers) == {1, 2} and 0.15 < answers.count(2) / 300 < 0.45
        by_user = {u: {one(**{"x-user": f"user-{u}"}) for _ in range(5)} for u in range(40)}
    assert all(len(seen) == 1 for seen in by_user.values()), by_user
    canaries = sum(seen == {2} for seen in by_user.values())
    assert 2 <= canaries <= 26, canaries
    # the same split over REST and through another service, because only the header decides
    for user, seen in list(by_user.items())[:5]:
        with grpc(plane, name) as client:
            assert client.infer(name, [tensor([[1]])], headers={"x-user": f"user-{user}"}).as_numpy("output-0")[0] in seen


def test_no_call_fails_while_a_revision_follows_another(plane):
    name = "grpc-rolled"
    applied(plane, "grpc-custom.yaml", name, name=name, percent=100, factor=1, sticky="x-absent")
    failures, answers, stop = [], set(), threading.Event()

    def ask():
        with grpc(plane, name) as client:
            while not stop.is_set():
                try:
                    answers.add(client.infer(name, [tensor([[1]])]).as_numpy("output-0").tolist()[0])
                except Exception as e:
                    failures.append(e)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        applied(plane, "grpc-custom.yaml", name, name=name, percent=100, factor=5, sticky="x-absent")
        until(lambda: 5.0 in answers or failures, "the new revision answers")
        until(lambda: len(revisions(plane, name)) == 1 or failures, "the old revision is gone")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, [str(failure) for failure in failures]
    assert answers == {1.0, 5.0}


def revisions(plane, name):
    return plane.get(name)["status"]["components"]["predictor"]["traffic"]


def test_a_transformer_speaks_grpc_with_client_and_predictor(plane):
    applied(plane, "grpc-transformer.yaml", "grpc-transformer")
    tenfold = [[10 * x for x in row] for row in IRIS]
    assert asks(plane, "grpc-transformer", tenfold, "label") == [0, 2]
    with grpc(plane, "grpc-transformer") as client:
        with pytest.raises(Exception, match="(?i)INVALID_ARGUMENT"):
            client.infer("grpc-transformer", [tensor([[1, 2]])])


# --- every protocol of a model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_boosted_trees_answer_v2_in_every_form(plane, kind):
    fixture = {"xgboost": XGBOOST, "lightgbm": LIGHTGBM}[kind]
    x, y = read_expected(fixture.with_suffix(".expected"))
    name = f"{kind}-iris"
    applied(plane, f"{kind}.yaml", name)
    rows = x[:5]
    reported = plane.call(name, f"/v2/models/{name}")[2]
    into, datatype, out = reported["inputs"][0]["name"], reported["inputs"][0]["datatype"], reported["outputs"][0]["name"]
    array = rows.astype({"FP32": np.float32, "FP64": np.float64}[datatype])
    with http.InferenceServerClient(plane.base) as client:
        for binary_in in (True, False):
            for binary_out in (True, False):
                made = http.InferInput(into, list(array.shape), datatype)
                made.set_data_from_numpy(array if binary_in else np.nan_to_num(array), binary_data=binary_in)
                wanted = [http.InferRequestedOutput(out, binary_data=binary_out)]
                got = client.infer(name, [made], outputs=wanted, headers={"Host": f"{name}-demo.example.com"})
                if binary_in:
                    assert np.allclose(got.as_numpy(out).reshape(5, -1), y[:5], rtol=1e-4)
                else:
                    assert got.as_numpy(out).shape[0] == 5
    with grpc(plane, name) as client:
        got = client.infer(name, [tensor(array, into, datatype)]).as_numpy(out)
    assert np.allclose(got.reshape(5, -1), y[:5], rtol=1e-4)


def test_requests_come_as_cloudevents_too(plane):
    applied(plane, "sklearn.yaml", "sklearn-iris")
    rows, answers = sklearn_rows()
    ce = {"ce-specversion": "1.0", "ce-id": "36077800-0c23-4f38-a0b4-01f4369f670a", "ce-source": "https://example.com/source",
          "ce-type": "com.example.sampletype1", "Content-Type": "application/json"}
    status, headers, answer = plane.call(
        "sklearn-iris", "/v1/models/sklearn-iris:predict", {"instances": rows}, headers=ce)
    assert status == 200 and answer == {"predictions": answers["predict"][:2]}
    assert headers["ce-specversion"] == "1.0" and headers["ce-type"] == "io.kserve.inference.response"
    assert headers["ce-source"] == "io.kserve.inference.sklearn-iris"


def test_headers_statuses_and_variables_go_both_ways(plane, models):
    text = plane.text("rolled.yaml", name="headers", percent=100, factor=1, delay=0, annotation='example.com/a: "b"')
    text = text.replace("        args:", """        env:
          - name: FROM_SECRET
            valueFrom: {secretKeyRef: {name: words, key: word}}
          - name: FROM_MAP
            valueFrom: {configMapKeyRef: {name: settings, key: level}}
          - name: WHO
            valueFrom: {fieldRef: {fieldPath: metadata.name}}
          - name: PLACE
            value: $(FROM_MAP)/here
        args:""")
    plane.apply("""
apiVersion: v1
kind: Secret
metadata: {name: words, namespace: demo}
stringData: {word: open sesame}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo}
data: {level: high}
""")
    plane.apply(text)
    plane.steady("headers")
    _, headers, _ = plane.call("headers", "/v1/models/headers:predict", {"instances": [[1]]}, headers={"X-Echo": "there and back"})
    assert headers["x-echo"] == "there and back"
    seen = plane.call("headers", "/asked")[2][-1]
    assert seen["kserve-isvc-name"] == "headers" and seen["kserve-isvc-namespace"] == "demo"
    for variable, value in (("FROM_SECRET", "open sesame"), ("FROM_MAP", "high"), ("PLACE", "high/here"),
                            ("NEREID_CONTROL", None)):
        assert plane.call("headers", "/variables/" + variable)[2] == {"value": value}, variable
    assert plane.call("headers", "/variables/WHO")[2]["value"].startswith("headers")


@here_only("in a cluster each pod fetches its model")
def test_services_of_one_uri_share_what_is_fetched(plane, web):
    for name in ("shared-a", "shared-b"):
        plane.apply(plane.text("archive.yaml", url=f"{web.url}/iris.tar.gz?of=both").replace("archived", name))
        plane.steady(name)
        assert len(plane.predict(name, IRIS)) == 2
    reported = [a for a in web.asked if a == "GET /iris.tar.gz?of=both"]
    assert len(reported) <= 2 and sum("if-none-match" not in h for a, h in zip(web.asked, web.headers) if a == reported[0]) == 1


# --- rollouts -----------------------------------------------------------------------------------------------------------


def test_copies_go_to_the_canary_and_their_answers_nowhere(plane):
    name, mirror = "mirrored", 'nereid.io/mirror-percent: "100"'
    applied(plane, "rolled.yaml", name, name=name, percent=100, factor=1, delay=0, annotation=mirror)
    applied(plane, "rolled.yaml", name, name=name, percent=0, factor=2, delay=0, annotation=mirror)
    assert shares(plane, name, 20) == {1.0: 1.0}

    def copied():
        status, _, seen = plane.call(f"latest-{name}", "/asked")
        return status == 200 and len(seen) >= 20

    until(copied, "the copies are there")


def test_a_canary_that_is_slow_is_taken_back_by_itself(plane):
    name, guard = "slow", 'nereid.io/rollback-p99-ms: "200"\n    nereid.io/rollback-min-requests: "10"'
    applied(plane, "rolled.yaml", name, name=name, percent=100, factor=1, delay=0, annotation=guard)
    plane.apply("rolled.yaml", name=name, percent=50, factor=2, delay=0.4, annotation=guard)
    until(lambda: len(revisions(plane, name)) == 2, "the canary answers")

    def taken_back():
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: plane.predict(name, [[1]]), range(16)))
        return len(revisions(plane, name)) == 1

    until(taken_back, "the canary is taken back")
    assert shares(plane, name, 20) == {1.0: 1.0}
    assert plane.condition(name, "RolledBack")["status"] == "True"
    assert "200" in plane.condition(name, "RolledBack")["message"]


@here_only("an Ingress does not divide requests; the goldens have the canary with an HTTPRoute")
def test_standard_deployments_have_canaries_of_their_own(plane):
    applied(plane, "standard-canary.yaml", "standard", percent=25)
    seen = shares(plane, "standard", 400)
    assert set(seen) == {1.0, 2.0} and 0.13 < seen[2.0] < 0.38, seen
    applied(plane, "standard-canary.yaml", "standard", percent=0)
    assert shares(plane, "standard", 40) == {1.0: 1.0}


def test_a_stopped_service_runs_nothing_and_comes_back(plane):
    name = "stopping"
    applied(plane, "rolled.yaml", name, name=name, percent=100, factor=3, delay=0, annotation='serving.kserve.io/stop: "false"')
    pid = int(plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]})[1]["x-process"])
    plane.apply("rolled.yaml", name=name, percent=100, factor=3, delay=0, annotation='serving.kserve.io/stop: "true"')
    until(lambda: plane.condition(name, "Stopped")["status"] == "True", "it is stopped")
    until(lambda: not os.path.exists(f"/proc/{pid}"), "its process has ended")
    assert plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]})[0] in (404, 503)
    applied(plane, "rolled.yaml", name, name=name, percent=100, factor=3, delay=0, annotation='serving.kserve.io/stop: "false"')
    assert plane.predict(name, [[1]]) == [3]


# --- probes, processes --------------------------------------------------------------------------------------------------


@here_only("its program reads files of this machine; a kubelet asks the probes of pods")
def test_probes_say_who_answers_and_who_is_started_anew(plane, tmp_path):
    (tmp_path / "unready").touch()
    plane.apply("probed.yaml", switch=tmp_path)
    until((tmp_path / "failed").exists, "its process runs and was asked")
    assert plane.condition("probed")["status"] != "True"
    (tmp_path / "unready").unlink()
    plane.steady("probed")
    _, headers, answer = plane.call("probed", "/v1/models/probed:predict", {"instances": [[1]]})
    assert answer == {"predictions": [1]}
    (tmp_path / "unready").touch()
    until(lambda: plane.condition("probed")["status"] != "True", "it is not ready any more")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(plane.predict, "probed", [[2]])
        until(lambda: plane.metric("nereid_exchanges_in_flight") >= 2, "a request waits, beside this question")
        assert not held.done()
        (tmp_path / "unready").unlink()
        assert held.result() == [2]
    plane.steady("probed")
    (tmp_path / "dead").touch()
    until(lambda: not os.path.exists(f"/proc/{headers['x-process']}"), "what does not live any more is ended")
    (tmp_path / "dead").unlink()

    def again():
        status, now, _ = plane.call("probed", "/v1/models/probed:predict", {"instances": [[1]]})
        return status == 200 and now["x-process"] != headers["x-process"]

    until(again, "another process answers")


# --- scale --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric, target, delay", [("concurrency", 1, 0.2), ("rps", 5, 0)])
def test_load_brings_more_processes(plane, metric, target, delay):
    name = f"scaled-{metric}"
    applied(plane, "scaled.yaml", name, name=name, metric=metric, target=target, delay=delay)
    assert replicas(plane, name) == 1
    stop, seen, failures = threading.Event(), set(), []

    def ask():
        while not stop.is_set():
            status, headers, answer = plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1]]}, timeout=60)
            seen.add(headers.get("x-process"))
            if status != 200:
                failures.append((status, answer))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: replicas(plane, name) == 3, "there are three of them")
        until(lambda: len(seen) == 3 or failures, "all three answer")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures


def test_services_of_batchers_say_it_in_every_protocol(plane):
    applied(plane, "batcher.yaml", "batched")
    name = "batched"
    body = {"inputs": [{"name": "input", "shape": [1, 4], "datatype": "FP32", "data": IRIS[0]}]}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        with grpc(plane, name) as client:
            calls = [pool.submit(client.infer, name, [tensor(IRIS[:1])]) for _ in range(2)]
            posts = [pool.submit(plane.call, name, f"/v2/models/{name}/infer", body) for _ in range(2)]
            over_grpc = [c.result().get_response() for c in calls]
            over_http = [p.result()[2] for p in posts]
    ids = {a.parameters["batch_id"].string_param for a in over_grpc} | {a["parameters"]["batch_id"] for a in over_http}
    assert len(ids) == 1 and "" not in ids


# --- warnings for settings without effect -------------------------------------------------------------------------------


@here_only("a cluster runs the image of the explainer")
@pytest.mark.parametrize("change, words", [
    (lambda s: s.replace("  predictor:", "  explainer:\n    art: {type: SquareAttack}\n  predictor:"), ["art", "nereid"]),
])
def test_explainers_of_art_are_told_of_what_there_is(plane, change, words):
    plane.apply(change(plane.text("sklearn.yaml")).replace("sklearn-iris", "with-art"))
    message = until(lambda: plane.condition("with-art", "ExplainerReady").get("message"), "it is reported")
    for word in words:
        assert word in message.lower(), message
    plane.delete("with-art")


@here_only("the API server of a cluster answers for its kinds")
def test_kinds_that_are_not_there_are_told_of_what_there_is(plane):
    with pytest.raises(Refused) as refused:
        plane.api("POST", "/apis/serving.kserve.io/v1alpha1/namespaces/demo/predictors", json.dumps({
            "apiVersion": "serving.kserve.io/v1alpha1", "kind": "Predictor",
            "metadata": {"name": "a", "namespace": "demo"}, "spec": {}}))
    assert refused.value.status == 404
