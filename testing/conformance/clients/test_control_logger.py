# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Payload logs of services: the events at an HTTP receiver, and the files in a directory."""
import base64
import concurrent.futures
import csv
import json
import time
import urllib.parse

import numpy as np
import pytest

pytest.importorskip("yaml")
triton = pytest.importorskip("tritonclient.grpc")

from cluster import on_cluster
from control_fixtures import IRIS, applied, here_only, models, plane, web
from control_server import Refused, until

REQUEST, RESPONSE = "org.kubeflow.serving.inference.request", "org.kubeflow.serving.inference.response"


@pytest.fixture
def sink(web):
    web.taken.clear()
    web.status = 200
    yield web
    web.status = 200


def serve(plane, name, sink, mode="all", annotation='example.com/more: "no"', more=""):
    return applied(plane, "logger.yaml", name, name=name, mode=mode, sink=sink, annotation=annotation, more=more)


def ask(plane, name, body=None, request="r-1", **headers):
    body = {"instances": IRIS} if body is None else body
    return plane.call(name, f"/v1/models/{name}:predict", body, headers={
        "X-Tenant": "a", "X-Other": "b", "ce-id": request, **headers})


def events(sink, count, of=None):
    """Waits for a number of events; returns them as (attributes, body)."""
    def come():
        found = [({k.removeprefix("ce-"): urllib.parse.unquote(v) for k, v in h.items()}, b) for _, h, b in list(sink.taken)]
        found = [e for e in found if of is None or e[0]["id"].startswith(of)]
        return found if len(found) >= count else None

    found = until(come, f"{count} events come")
    assert len(found) == count, found
    return found


def pair(sink, of=None):
    found = {e[0]["type"]: e for e in events(sink, 2, of)}
    return found[REQUEST], found[RESPONSE]


# --- to a receiver over HTTP --------------------------------------------------------------------------------------------


def test_requests_and_answers_come_with_one_id(plane, sink):
    serve(plane, "logged", sink.url)
    status, _, said = ask(plane, "logged")
    assert status == 200
    (asked, body), (answered, answer) = pair(sink)
    assert json.loads(body) == {"instances": IRIS} and json.loads(answer) == said
    for reported in (asked, answered):
        assert reported["id"] == "r-1" and reported["specversion"] == "1.0" and reported["content-type"].startswith("application/json")
        assert (reported["inferenceservicename"], reported["namespace"], reported["component"]) == ("logged", "demo", "predictor")
        assert json.loads(reported["metadata"]) == {"X-Tenant": ["a"]}
        assert json.loads(reported["annotations"]) == {"example.com/team": ["flowers"]} or "flowers" in reported["annotations"]
        assert reported["time"].endswith("Z")
    assert answered["status"] == "200"
    # requests other than inference are not logged, and a request without an id gets one
    sink.taken.clear()
    plane.call("logged", "/v2/models/logged/ready")
    plane.call("logged", "/v1/models/logged:predict", {"instances": IRIS[:1]}, by="path")
    (asked, _), (answered, _) = pair(sink)
    assert len(asked["id"]) == 36 and asked["id"] == answered["id"]


@pytest.mark.parametrize("mode, types", [("request", {REQUEST}), ("response", {RESPONSE})])
def test_one_of_the_two_is_enough(plane, sink, mode, types):
    name = f"logged-{mode}"
    serve(plane, name, sink.url, mode)
    for i in range(3):
        assert ask(plane, name, request=f"{mode}-{i}")[0] == 200
    assert {e[0]["type"] for e in events(sink, 3, mode)} == types


def test_failures_are_logged_with_their_status(plane, sink):
    serve(plane, "logged", sink.url)
    status, _, said = ask(plane, "logged", {"instances": [[1, 2]]}, "failed")
    assert status == 400
    (_, body), (answered, answer) = pair(sink, "failed")
    assert json.loads(body) == {"instances": [[1, 2]]}
    assert answered["status"] == "400" and json.loads(answer) == said


def test_grpc_is_logged_too(plane, sink):
    serve(plane, "logged", sink.url)
    with triton.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", "logged-demo.example.com")]) as client:
        tensor = triton.InferInput("input", [2, 4], "FP32")
        tensor.set_data_from_numpy(np.array(IRIS, np.float32))
        assert client.infer("logged", [tensor], headers={"ce-id": "grpc-1", "x-tenant": "c"}).as_numpy("label").ravel().tolist() == [0, 2]
        (asked, body), (answered, answer) = pair(sink, "grpc-1")
        assert answered["grpcstatus"] == "0" and json.loads(asked["metadata"]) == {"X-Tenant": ["c"]}
        from tritonclient.grpc import service_pb2 as pb
        assert pb.ModelInferRequest.FromString(body).inputs[0].name == "input"
        assert {o.name for o in pb.ModelInferResponse.FromString(answer).outputs} == {"label", "probabilities"}
        tensor = triton.InferInput("input", [1, 2], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 2), np.float32))
        with pytest.raises(Exception):
            client.infer("logged", [tensor], headers={"ce-id": "grpc-2"})
        assert pair(sink, "grpc-2")[1][0]["grpcstatus"] == "3"


def test_what_is_redacted_leaves_nowhere(plane, sink):
    serve(plane, "secretive", sink.url, annotation='nereid.io/logger-redact: "$.instances[*][1], x-tenant, $.predictions[0]"')
    assert ask(plane, "secretive")[0] == 200
    (asked, body), (_, answer) = pair(sink)
    assert json.loads(body) == {"instances": [[5.1, "[redacted]", 1.4, 0.2], [6.9, "[redacted]", 5.4, 2.1]]}
    assert json.loads(answer)["predictions"][0] == "[redacted]"
    assert json.loads(asked["metadata"]) == {"X-Tenant": ["[redacted]"]}
    sink.taken.clear()
    with triton.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", "secretive-demo.example.com")]) as client:
        tensor = triton.InferInput("input", [2, 4], "FP32")
        tensor.set_data_from_numpy(np.array(IRIS, np.float32))
        client.infer("secretive", [tensor])
    for reported, body in events(sink, 2):
        assert reported["withheld"] == "unreadable" and body == b""


def test_a_part_of_the_requests_may_be_enough(plane, sink):
    serve(plane, "sampled", sink.url, annotation='nereid.io/logger-sampling: "0.3"')
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(r[0] == 200 for r in pool.map(lambda i: ask(plane, "sampled", request=f"s-{i}"), range(300)))
    if not on_cluster():
        until(lambda: figures(plane, "nereid_payload_events_sent_total", "sampled")
              + 2 * figures(plane, "nereid_payload_requests_sampled_out_total", "sampled") >= 600, "all are accounted for")
    until(lambda: settled(sink), "nothing comes any more")
    ids = [h["ce-id"] for _, h, _ in sink.taken]
    assert 45 < len(set(ids)) < 140 and all(ids.count(i) == 2 for i in set(ids)), "both of a request, or none"


def settled(sink):
    before = len(sink.taken)
    time.sleep(2)
    return before > 0 and len(sink.taken) == before


def figures(plane, name, service):
    page = plane.ask("GET", "/metrics")[2].decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
               if line.startswith(name + "{") and f'service="{service}"' in line)


@here_only("the metrics of one process")
def test_a_receiver_that_fails_holds_nobody_up_and_gets_it_later(plane, sink):
    serve(plane, "logged", sink.url)
    sink.status = 503
    assert ask(plane, "logged", request="later")[0] == 200
    until(lambda: figures(plane, "nereid_payload_retries_total", "logged") > 0, "it is tried again")
    sink.status = 200
    until(lambda: figures(plane, "nereid_payload_queue_events", "logged") == 0, "nothing waits")
    accepted = [h for _, h, _ in sink.taken[-2:]]
    assert {h["ce-type"] for h in accepted} == {REQUEST, RESPONSE} and {h["ce-id"] for h in accepted} == {"later"}


@here_only("the metrics of one process")
def test_what_is_lost_is_counted(plane, sink):
    serve(plane, "lossy", sink.url, annotation='nereid.io/logger-retries: "1"')
    sink.status = 400
    assert ask(plane, "lossy")[0] == 200
    until(lambda: figures(plane, "nereid_payload_events_lost_total", "lossy") == 2, "both are counted as lost")


# --- to a directory -----------------------------------------------------------------------------------------------------


def files(folder, count, name, end):
    def come():
        found = sorted(f for f in (folder / "demo" / name).rglob(f"*{end}") if f.is_file())
        return found if len(found) >= count else None

    found = until(come, f"{count} files of {end} come")
    assert len(found) == count, found
    return found


def storage(format, more=""):
    return f"storage: {{path: payloads, parameters: {{format: {format}}}}}\n      {more}"


@here_only("a directory of this machine")
def test_events_become_files_of_json(plane, tmp_path):
    serve(plane, "to-json", tmp_path.as_uri(), more=storage("json"))
    said = ask(plane, "to-json", request="j/1 é")[2]
    found = files(tmp_path, 2, "to-json", ".json")
    assert {f.parent for f in found} == {tmp_path / "demo/to-json/predictor/payloads"}, found
    reported = {e["type"]: e for e in (json.loads(f.read_text()) for f in found)}
    assert reported[REQUEST]["data"] == {"instances": IRIS} and reported[RESPONSE]["data"] == said
    assert reported[REQUEST]["inferenceservicename"] == "to-json" and str(reported[RESPONSE]["status"]) == "200"
    assert all(".." not in f.name and "/" not in f.name for f in found)


@here_only("a directory of this machine")
def test_events_become_tables_of_csv(plane, tmp_path):
    serve(plane, "to-csv", tmp_path.as_uri(), "response", more=storage("csv", "batchSize: 5"))
    said = [ask(plane, "to-csv", request=f"c-{i}")[2] for i in range(10)]
    rows = []
    for file in files(tmp_path, 2, "to-csv", ".csv"):
        with open(file, newline="") as text:
            part = list(csv.DictReader(text))
        assert len(part) == 5
        rows += part
    assert {r["id"] for r in rows} == {f"c-{i}" for i in range(10)}
    assert all(json.loads(r["data"]) == said[int(r["id"][2:])] and r["status"] == "200" for r in rows)


@here_only("a directory of this machine")
def test_events_become_tables_of_parquet(plane, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="PARQUET LOGS ARE NOT READ: there is no pyarrow")
    serve(plane, "to-parquet", tmp_path.as_uri(), more=storage("parquet", "batchSize: 3"))
    said = {f"p-{i}": ask(plane, "to-parquet", request=f"p-{i}")[2] for i in range(3)}
    asked, answered = {}, {}

    def read():
        for file in (tmp_path / "demo/to-parquet").rglob("*.parquet"):
            rows = parquet.read_table(file).to_pylist()
            assert rows and len({r["type"] for r in rows}) == 1, "requests and answers are in files of their own"
            for row in rows:
                (asked if row["type"] == REQUEST else answered)[row["id"]] = row
        return len(asked), len(answered)

    until(lambda: read() == (3, 3), "all are there")
    assert {k: json.loads(r["data"]) for k, r in answered.items()} == said
    assert all(json.loads(r["data"]) == {"instances": IRIS} for r in asked.values()) and set(asked) == set(said)
    with triton.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", "to-parquet-demo.example.com")]) as client:
        tensor = triton.InferInput("input", [2, 4], "FP32")
        tensor.set_data_from_numpy(np.array(IRIS, np.float32))
        for i in range(3):
            client.infer("to-parquet", [tensor], headers={"ce-id": f"g-{i}"})
    until(lambda: read() == (6, 6), "those of gRPC are there too")
    for row in (asked["g-0"], answered["g-2"]):
        assert not row["data"] and base64.b64decode(row["data_base64"])


@here_only("a directory of this machine")
def test_what_waits_in_a_batch_is_written_when_its_time_is_up_and_when_the_service_goes(plane, tmp_path):
    serve(plane, "to-batch", tmp_path.as_uri(), "request", more=storage("json", "batchSize: 100\n      batchInterval: 1"))
    ask(plane, "to-batch", request="b-1")
    assert [e["id"] for e in json.loads(files(tmp_path, 1, "to-batch", ".json")[0].read_text())] == ["b-1"]
    serve(plane, "to-batch", tmp_path.as_uri(), "request", more=storage("json", "batchSize: 100"))
    ask(plane, "to-batch", request="b-2")
    plane.delete("to-batch")
    plane.gone("to-batch")
    assert len(files(tmp_path, 2, "to-batch", ".json")) == 2


# --- invalid settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("annotation, word", [
    ('nereid.io/logger-sampling: "2"', "logger-sampling"),
    ('nereid.io/logger-samplign: "0.5"', "did you mean 'sampling'"),
])
def test_settings_that_cannot_be_are_told(plane, sink, annotation, word):
    with pytest.raises(Refused) as refused:
        plane.apply("logger.yaml", name="wrong", mode="all", sink=sink.url, annotation=annotation, more="")
    assert word in refused.value.message
