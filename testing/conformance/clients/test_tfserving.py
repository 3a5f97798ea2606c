# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Compatibility with tensorflow_model_server, with the published stubs and over REST: the same flags, files and responses."""
import json
import pathlib
import shutil
import socket
import struct
import subprocess
import time

import grpc
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
apis = pytest.importorskip("tensorflow_serving.apis")

from google.protobuf import text_format
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)
from tensorflow_serving.config import model_server_config_pb2

from server import FIXTURES, Server, program, until


def put(base, version, model):
    """Publishes a version atomically, by a rename, as TensorFlow Serving recommends."""
    base.mkdir(parents=True, exist_ok=True)
    hidden = base / f".{version}"
    hidden.mkdir()
    shutil.copy(FIXTURES / f"{model}.onnx", hidden / "model.onnx")
    hidden.rename(base / str(version))
    return base


def config(*entries):
    return "model_config_list {\n" + "".join(f"  config {{ {e} }}\n" for e in entries) + "}\n"


def entry(name, base, more=""):
    return f'name: "{name}" base_path: "{base}" model_platform: "tensorflow" {more}'


class Stubs:
    def __init__(self, server):
        self.channel = grpc.insecure_channel(
            server.base, [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        )
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def predict(self, model, inputs, version=None, label=None, signature="", outputs=()):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = model
        request.model_spec.signature_name = signature
        if version is not None:
            request.model_spec.version.value = version
        if label is not None:
            request.model_spec.version_label = label
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(value if isinstance(value, tensor_pb2.TensorProto) else tf.make_tensor_proto(value))
        request.output_filter.extend(outputs)
        return self.predictions.Predict(request, timeout=20)

    def status(self, model, version=None):
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = model
        if version is not None:
            request.model_spec.version.value = version
        return self.models.GetModelStatus(request, timeout=20)

    def reload(self, text, timeout=60):
        request = model_management_pb2.ReloadConfigRequest()
        text_format.Parse(text, request.config)
        return self.models.HandleReloadConfigRequest(request, timeout=timeout)


def refused(call, code, *texts):
    with pytest.raises(grpc.RpcError) as e:
        call()
    assert e.value.code() == code, e.value.details()
    for text in texts:
        assert text in e.value.details()


def examples(**features):
    """One example for each of the values."""
    made = []
    for i in range(len(next(iter(features.values())))):
        example = tf.train.Example()
        for name, values in features.items():
            example.features.feature[name].float_list.value.append(values[i])
        made.append(example)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tfserving")


@pytest.fixture(scope="module")
def server(folder):
    put(folder / "two", "00000123", "half_plus_two")
    put(folder / "three", 1, "half_plus_three")
    put(folder / "labelled", 1, "half_plus_two")
    put(folder / "labelled", 2, "half_plus_three")
    text = put(folder / "text", 1, "identity_string")
    assert text.exists()
    put(folder / "many", 1, "add_sub_fp32")
    file = folder / "models.config"
    file.write_text(
        config(
            entry("half_plus_two", folder / "two"),
            entry("half_plus_three", folder / "three"),
            entry(
                "labelled",
                folder / "labelled",
                'model_version_policy { specific { versions: 1 versions: 2 } } '
                'version_labels { key: "stable" value: 1 } version_labels { key: "canary" value: 2 }',
            ),
            entry("text", folder / "text"),
            entry("many", folder / "many"),
            entry("missing", folder / "nowhere"),
        )
    )
    monitoring = folder / "monitoring.config"
    monitoring.write_text('prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }')
    server = Server(
        f"--model_config_file={file}",
        "--allow_version_labels_for_unavailable_models",
        f"--monitoring_config_file={monitoring}",
        "--rest_api_enable_cors_support",
        "--enable_grpc_healthcheck_service",
        "--ports-after-models=false",  # one of the models is missing
    )
    until(lambda: server.ask("GET", "/v1/models/labelled")[0] == 200, "labelled answers")
    until(lambda: server.ask("GET", "/v1/models/many")[0] == 200, "many answers")
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


@pytest.fixture(scope="module")
def stubs(server):
    return Stubs(server)


def post(server, path, body):
    status, _, answer = server.ask("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body))
    return status, json.loads(answer)


# ---- Predict ----


def test_predict_gives_the_published_answers(stubs):
    answer = stubs.predict("half_plus_two", {"x": np.float32([1, 2, 5])})
    assert tf.make_ndarray(answer.outputs["y"]).tolist() == [2.5, 3.0, 4.5]
    assert answer.model_spec.name == "half_plus_two"
    assert answer.model_spec.version.value == 123
    assert answer.model_spec.signature_name == "serving_default"
    answer = stubs.predict("half_plus_three", {"x": np.float32([1, 2, 5])})
    assert tf.make_ndarray(answer.outputs["y"]).tolist() == [3.5, 4.0, 5.5]


@pytest.mark.parametrize("form", ["content", "values", "broadcast", "zeros"])
def test_every_encoding_of_a_tensor_is_understood(stubs, form):
    x = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT)
    x.tensor_shape.dim.add(size=3)
    expected = [2.5, 2.5, 2.5]
    if form == "content":
        x.tensor_content = struct.pack("<3f", 1, 1, 1)
    elif form == "values":
        x.float_val.extend([1, 1, 1])
    elif form == "broadcast":
        x.float_val.append(1)
    else:
        expected = [2, 2, 2]
    assert tf.make_ndarray(stubs.predict("half_plus_two", {"x": x}).outputs["y"]).tolist() == expected


def test_texts_are_exact_bytes(stubs):
    words = np.array([[b"", b"plain", "é世".encode()]], dtype=object)
    answer = stubs.predict("text", {"INPUT0": words})
    assert tf.make_ndarray(answer.outputs["OUTPUT0"]).tolist() == words.tolist()


def test_an_output_filter_leaves_the_others_out(stubs):
    x = {"INPUT0": np.float32([range(16)]), "INPUT1": np.ones((1, 16), np.float32)}
    assert set(stubs.predict("many", x).outputs) == {"OUTPUT0", "OUTPUT1"}
    assert set(stubs.predict("many", x, outputs=["OUTPUT1"]).outputs) == {"OUTPUT1"}
    refused(lambda: stubs.predict("many", x, outputs=["z"]), grpc.StatusCode.INVALID_ARGUMENT, "output tensor alias not found in signature: z")
    refused(
        lambda: stubs.predict("many", x, outputs=["OUTPUT1", "OUTPUT1"]),
        grpc.StatusCode.INVALID_ARGUMENT,
        "duplicate output tensor alias: OUTPUT1",
    )


def test_versions_and_labels_choose(stubs):
    def y(**which):
        return tf.make_ndarray(stubs.predict("labelled", {"x": np.float32([2])}, **which).outputs["y"]).tolist()

    assert y() == [4.0]
    assert y(version=1) == [3.0]
    assert y(version=2) == [4.0]
    assert y(label="stable") == [3.0]
    assert y(label="canary") == [4.0]


def test_what_cannot_be_answered_says_why(stubs):
    x = {"x": np.float32([1])}
    not_found, invalid = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT
    refused(lambda: stubs.predict("absent", x), not_found, "Servable not found for request: Latest(absent)")
    refused(lambda: stubs.predict("half_plus_two", x, version=9), not_found, "Servable not found for request: Specific(half_plus_two, 9)")
    refused(lambda: stubs.predict("half_plus_two", x, label="z"), invalid, "Unrecognized servable version label: z")
    refused(
        lambda: stubs.predict("half_plus_two", x, signature="z"),
        grpc.StatusCode.FAILED_PRECONDITION,
        'Serving signature key "z" not found.',
    )
    refused(lambda: stubs.predict("half_plus_two", {"z": np.float32([1])}), invalid, "input size does not match signature", "Sent extra: {z}", "Missing but required: {x}")
    refused(lambda: stubs.predict("half_plus_two", {"x": np.float64([1])}), invalid)
    refused(lambda: stubs.predictions.Predict(predict_pb2.PredictRequest(), timeout=5), invalid, "Missing ModelSpec")
    broken = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_content=b"12345")
    broken.tensor_shape.dim.add(size=3)
    refused(lambda: stubs.predict("half_plus_two", {"x": broken}), invalid)


def test_a_model_that_is_not_there_disturbs_nobody(server, stubs):
    refused(lambda: stubs.predict("missing", {"x": np.float32([1])}), grpc.StatusCode.NOT_FOUND)
    assert server.process.poll() is None


# ---- Classify, Regress, MultiInference ----


def classification(model, values):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name = model
    request.input.example_list.examples.extend(examples(x=values))
    return request


def regression(model, values):
    request = regression_pb2.RegressionRequest()
    request.model_spec.name = model
    request.input.example_list.examples.extend(examples(x=values))
    return request


def test_classify_and_regress_take_examples_for_any_model(stubs):
    answer = stubs.predictions.Classify(classification("half_plus_two", [20.0, 10.0]), timeout=20)
    assert [[c.score for c in r.classes] for r in answer.result.classifications] == [[12.0], [7.0]]
    assert answer.model_spec.version.value == 123
    answer = stubs.predictions.Regress(regression("half_plus_two", [80.0]), timeout=20)
    assert [r.value for r in answer.result.regressions] == [42.0]


def test_a_context_holds_for_every_example(stubs):
    request = regression_pb2.RegressionRequest()
    request.model_spec.name = "half_plus_two"
    request.input.example_list_with_context.examples.extend([tf.train.Example(), *examples(x=[2.0])])
    request.input.example_list_with_context.context.features.feature["x"].float_list.value.append(80.0)
    answer = stubs.predictions.Regress(request, timeout=20)
    assert [r.value for r in answer.result.regressions] == [42.0, 3.0]


def test_nothing_to_classify_is_refused(stubs):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name = "half_plus_two"
    refused(lambda: stubs.predictions.Classify(request, timeout=5), grpc.StatusCode.INVALID_ARGUMENT, "Input is empty")


def test_multi_inference_refuses_models_that_differ(stubs):
    request = inference_pb2.MultiInferenceRequest()
    for model in ("half_plus_two", "half_plus_three"):
        request.tasks.add(method_name="tensorflow/serving/regress").model_spec.name = model
    request.input.example_list.examples.extend(examples(x=[1.0]))
    refused(
        lambda: stubs.predictions.MultiInference(request, timeout=5),
        grpc.StatusCode.INVALID_ARGUMENT,
        "All ModelSpecs in a MultiInferenceRequest must access the same model name.",
    )


# ---- status, metadata, health ----


def test_status_and_metadata_over_grpc(stubs):
    answer = stubs.status("labelled")
    assert [(v.version, v.state, v.status.error_code) for v in answer.model_version_status] == [(2, 30, 0), (1, 30, 0)]
    assert [v.version for v in stubs.status("labelled", 1).model_version_status] == [1]
    refused(lambda: stubs.status("absent"), grpc.StatusCode.NOT_FOUND, "Could not find any versions of model absent")
    refused(lambda: stubs.status("labelled", 7), grpc.StatusCode.NOT_FOUND, "Could not find version 7 of model labelled")
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "half_plus_two"
    answer = stubs.predictions.GetModelMetadata(request, timeout=5)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(signatures)
    signature = signatures.signature_def["serving_default"]
    assert signature.inputs["x"].dtype == types_pb2.DT_FLOAT
    assert [d.size for d in signature.inputs["x"].tensor_shape.dim] == [-1]
    assert signature.method_name == "tensorflow/serving/predict"
    request.metadata_field[:] = ["other"]
    refused(lambda: stubs.predictions.GetModelMetadata(request, timeout=5), grpc.StatusCode.INVALID_ARGUMENT, "Metadata field other is not supported")


def test_health_knows_full_and_bare_names(stubs):
    check = stubs.channel.unary_unary("/grpc.health.v1.Health/Check", lambda n: bytes([10, len(n)]) + n.encode(), bytes)
    for name in ("", "PredictionService", "ModelService", "tensorflow.serving.PredictionService"):
        # "missing" never becomes ready: the service is known, but not serving.
        assert check(name, timeout=5) in (b"\x08\x01", b"\x08\x02")


# ---- REST ----


def test_rest_predicts_in_both_formats(server):
    assert post(server, "/v1/models/half_plus_two:predict", {"instances": [1.0, 2.0, 5.0]}) == (200, {"predictions": [2.5, 3.0, 4.5]})
    assert post(server, "/v1/models/half_plus_two:predict", {"inputs": [1.0, 2.0, 5.0]}) == (200, {"outputs": [2.5, 3.0, 4.5]})
    assert post(server, "/v1/models/half_plus_two:predict", {"inputs": {"x": [1.0]}}) == (200, {"outputs": [2.5]})
    assert post(server, "/v1/models/half_plus_two:predict", {"instances": [{"x": 1.0}]}) == (200, {"predictions": [2.5]})
    assert post(server, "/v1/models/half_plus_three/versions/1:predict", {"instances": [1.0]}) == (200, {"predictions": [3.5]})
    assert post(server, "/v1/models/labelled/labels/stable:predict", {"instances": [2.0]}) == (200, {"predictions": [3.0]})
    status, answer = post(
        server, "/v1/models/many:predict", {"signature_name": "serving_default", "instances": [{"INPUT0": [1.0] * 16, "INPUT1": [2.0] * 16}]}
    )
    assert status == 200 and answer["predictions"][0]["OUTPUT0"] == [3.0] * 16


def test_rest_numbers_keep_their_point(server):
    _, _, text = server.ask("POST", "/v1/models/half_plus_two:predict", '{"instances": [4.0, 0.2]}')
    assert [n.strip() for n in text.decode().split("[")[1].split("]")[0].split(",")] == ["4.0", "2.1"]


def test_rest_takes_and_gives_what_is_not_a_number(server):
    _, _, text = server.ask("POST", "/v1/models/half_plus_two:predict", '{"instances": [NaN, Infinity, -Infinity]}')
    assert [n.strip() for n in text.decode().split("[")[1].split("]")[0].split(",")] == ["NaN", "Infinity", "-Infinity"]


def test_rest_bytes_are_base64(server):
    assert post(server, "/v1/models/text:predict", {"instances": [{"INPUT0": [{"b64": "aGk="}, "x"]}]}) == (200, {"predictions": [["hi", "x"]]})


def test_rest_classifies_and_regresses(server):
    body = {"examples": [{"x": 20.0}, {"x": 10}]}
    assert post(server, "/v1/models/half_plus_two:classify", body) == (200, {"results": [[["", 12.0]], [["", 7.0]]]})
    assert post(server, "/v1/models/half_plus_two:regress", {"context": {"x": 80.0}, "examples": [{}, {"x": 2.0}]}) == (200, {"results": [42.0, 3.0]})


@pytest.mark.parametrize(
    "path, body, code, text",
    [
        ("absent:predict", '{"instances":[1]}', 404, "absent"),
        ("half_plus_two/versions/9:predict", '{"instances":[1]}', 404, "half_plus_two"),
        ("half_plus_two/labels/z:predict", '{"instances":[1]}', 400, "Unrecognized servable version label: z"),
        ("half_plus_two:predict", "", 400, "JSON Parse error: The document is empty"),
        ("half_plus_two:predict", '{"x":[1]}', 400, "Missing 'inputs' or 'instances' key"),
        ("half_plus_two:predict", '{"signature_name":"z","instances":[1]}', 400, 'Serving signature name: "z" not found in signature def'),
        ("half_plus_two:predict", '{"instances":["a"]}', 400, "is not of expected type: float"),
        ("half_plus_two:predict", '{"instances":[[1],[1,2]]}', 400, "Encountered list at unexpected size"),
        ("half_plus_two:explode", "{}", 400, "Malformed request: POST /v1/models/half_plus_two:explode"),
        ("half_plus_two:classify", "{}", 400, "examples"),
    ],
)
def test_rest_says_what_is_wrong(server, path, body, code, text):
    status, answer = post(server, "/v1/models/" + path, body)
    assert (status, list(answer)) == (code, ["error"]), answer
    assert text in answer["error"]


def test_rest_status_and_metadata(server):
    status, _, body = server.ask("GET", "/v1/models/labelled")
    states = json.loads(body)["model_version_status"]
    assert [(s["version"], s["state"], s["status"]) for s in states] == [
        ("2", "AVAILABLE", {"error_code": "OK", "error_message": ""}),
        ("1", "AVAILABLE", {"error_code": "OK", "error_message": ""}),
    ]
    for path in ("labelled/versions/1", "labelled/labels/stable"):
        assert [s["version"] for s in json.loads(server.ask("GET", "/v1/models/" + path)[2])["model_version_status"]] == ["1"]
    body = json.loads(server.ask("GET", "/v1/models/half_plus_two/metadata")[2])
    assert body["model_spec"] == {"name": "half_plus_two", "signature_name": "", "version": "123"}
    x = body["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]["x"]
    assert x["dtype"] == "DT_FLOAT"
    assert x["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}


def test_rest_cors_and_prometheus(server):
    status, headers, _ = server.ask("OPTIONS", "/v1/models/half_plus_two:predict", headers={"Origin": "http://example.com"})
    assert (status, headers["access-control-allow-origin"]) == (200, "*")
    page = server.ask("GET", "/monitoring/prometheus/metrics")[2].decode()
    assert ':tensorflow:serving:request_count{model_name="half_plus_two",status="OK"}' in page
    assert ":tensorflow:serving:request_latency_bucket" in page


# ---- V2 sees the same ----


def test_labels_answer_over_v2(server):
    body = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [2.0]}]}
    status, answer = post(server, "/v2/models/labelled/versions/stable/infer", body)
    assert (status, answer["model_version"], answer["outputs"][0]["data"]) == (200, "1", [3.0])


# ---- configuration ----


@pytest.fixture
def own(tmp_path):
    servers = []

    def start(*arguments):
        servers.append(Server(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        assert server.stop() == 0


def available(server, model):
    return server.ask("GET", f"/v1/models/{model}")[0] == 200


def test_one_model_by_flags(own, tmp_path):
    put(tmp_path / "m", 5, "half_plus_two")
    server = own("--model_name=default", f"--model_base_path={tmp_path / 'm'}", "--file_system_poll_wait_seconds=1")
    until(lambda: available(server, "default"), "it answers")
    put(tmp_path / "m", 6, "half_plus_three")
    until(lambda: post(server, "/v1/models/default:predict", {"instances": [1.0]}) == (200, {"predictions": [3.5]}), "the new version takes over")
    shutil.rmtree(tmp_path / "m" / "6")
    until(lambda: post(server, "/v1/models/default:predict", {"instances": [1.0]}) == (200, {"predictions": [2.5]}), "the old one comes back")


def test_a_rewritten_configuration_file_is_taken_up(own, tmp_path):
    put(tmp_path / "a", 1, "half_plus_two")
    put(tmp_path / "b", 1, "half_plus_three")
    file = tmp_path / "models.config"
    file.write_text(config(entry("a", tmp_path / "a")))
    server = own(f"--model_config_file={file}", "--model_config_file_poll_wait_seconds=1")
    until(lambda: available(server, "a"), "a answers")
    assert not available(server, "b")
    (tmp_path / "new").write_text(config(entry("a", tmp_path / "a"), entry("b", tmp_path / "b")))
    (tmp_path / "new").rename(file)
    until(lambda: available(server, "b"), "b answers")
    file.write_text("this is not a configuration {")
    time.sleep(2)
    assert available(server, "a") and available(server, "b")
    assert any("models.config" in line for line in server.lines)


def test_reload_by_rpc_replaces_the_whole_list(own, tmp_path):
    put(tmp_path / "a", 1, "half_plus_two")
    put(tmp_path / "b", 1, "half_plus_three")
    file = tmp_path / "models.config"
    file.write_text(config(entry("a", tmp_path / "a")))
    server = own(f"--model_config_file={file}")
    stubs = Stubs(server)
    until(lambda: available(server, "a"), "a answers")
    answer = stubs.reload(config(entry("a", tmp_path / "a"), entry("b", tmp_path / "b")))
    assert answer.status.error_code == 0
    assert available(server, "a") and available(server, "b")
    stubs.reload(config(entry("b", tmp_path / "b")))
    until(lambda: not available(server, "a"), "a is gone")
    assert available(server, "b")


def test_a_reload_that_cannot_be_changes_nothing(own, tmp_path):
    put(tmp_path / "a", 1, "half_plus_two")
    file = tmp_path / "models.config"
    file.write_text(config(entry("a", tmp_path / "a")))
    server = own(f"--model_config_file={file}")
    stubs = Stubs(server)
    until(lambda: available(server, "a"), "a answers")
    invalid, precondition = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
    a = entry("a", tmp_path / "a")
    refused(lambda: stubs.reload(config(a, a)), invalid, "Illegal to list model a multiple times in config list")
    refused(lambda: stubs.reload(config(entry("a", "relative"))), invalid, "Expected model a to have an absolute path or URI; got base_path()=relative")
    refused(
        lambda: stubs.reload(config(a + ' version_labels { key: "l" value: 7 }')),
        precondition,
        "Request to assign label to version 7 of model a, which is not currently available for inference",
    )
    assert post(server, "/v1/models/a:predict", {"instances": [1.0]}) == (200, {"predictions": [2.5]})
    # An invalid model beside a valid one does not keep the reload from completing.
    start = time.monotonic()
    (tmp_path / "bad" / "1").mkdir(parents=True)
    (tmp_path / "bad" / "1" / "model.onnx").write_bytes(b"nothing")
    put(tmp_path / "b", 1, "half_plus_three")
    with pytest.raises(grpc.RpcError) as e:
        stubs.reload(config(a, entry("bad", tmp_path / "bad"), entry("b", tmp_path / "b")))
    assert "bad" in e.value.details()
    assert time.monotonic() - start < 60
    assert available(server, "a") and available(server, "b")


def test_labels_move_once_their_version_serves(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    put(base, 2, "half_plus_three")
    file = tmp_path / "models.config"
    one = "model_version_policy { specific { versions: 1 } } "
    both = "model_version_policy { specific { versions: 1 versions: 2 } } "
    file.write_text(config(entry("m", base, one + 'version_labels { key: "stable" value: 1 }')))
    server = own(f"--model_config_file={file}")
    stubs = Stubs(server)
    ask = lambda: post(server, "/v1/models/m/labels/stable:predict", {"instances": [1.0]})
    until(lambda: ask() == (200, {"predictions": [2.5]}), "the label answers")
    time.sleep(1.5)  # version 2 has been complete for a while
    stubs.reload(config(entry("m", base, both + 'version_labels { key: "stable" value: 2 }')))
    assert ask() == (200, {"predictions": [3.5]})


def test_weights_share_a_label(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    put(base, 2, "half_plus_three")
    file = tmp_path / "models.config"
    file.write_text(
        config(
            entry(
                "m",
                base,
                "model_version_policy { all {} } "
                'weighted_labels { key: "canary" value { targets { version: 1 weight: 80 } targets { version: 2 weight: 20 }'
                " shadows { version: 2 weight: 1.0 } } }",
            )
        )
    )
    server = own(f"--model_config_file={file}")
    until(lambda: server.ask("GET", "/v1/models/m/labels/canary")[0] == 200, "the label answers")
    got = [post(server, "/v1/models/m/labels/canary:predict", {"instances": [1.0]})[1]["predictions"][0] for _ in range(400)]
    assert set(got) == {2.5, 3.5}
    assert 0.1 < got.count(3.5) / len(got) < 0.32


@pytest.mark.parametrize(
    "flag, text",
    [
        ("--model_config_file=/nowhere/models.config", "/nowhere/models.config"),
        ("--use_alts_credentials", "use_alts_credentials"),
        ("--batching_parameters_file=/nowhere", "enable_batching"),
    ],
)
def test_what_a_flag_cannot_do_is_said(flag, text, tmp_path):
    with pytest.raises(RuntimeError) as e:
        Server("--model_name=m", f"--model_base_path={tmp_path}", flag)
    assert text in str(e.value)


def test_batching_is_by_the_file(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    file = tmp_path / "batching.config"
    file.write_text(
        "max_batch_size { value: 8 } batch_timeout_micros { value: 100000 } max_enqueued_batches { value: 100 }"
        " num_batch_threads { value: 2 } allowed_batch_sizes: 4 allowed_batch_sizes: 8"
    )
    server = own("--model_name=m", f"--model_base_path={base}", "--enable_batching", f"--batching_parameters_file={file}")
    until(lambda: available(server, "m"), "it answers")
    stubs = Stubs(server)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.float32([1, 2])))
    calls = [stubs.predictions.Predict.future(request, timeout=20) for _ in range(12)]
    for call in calls:
        assert tf.make_ndarray(call.result().outputs["y"]).tolist() == [2.5, 3.0]
    assert server.metric("nv_inference_exec_count") < 12
    refused(lambda: stubs.predict("m", {"x": np.zeros(9, np.float32)}), grpc.StatusCode.INVALID_ARGUMENT)


def test_requests_are_logged_and_serve_as_warm_up(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    file = tmp_path / "models.config"
    logs = tmp_path / "logs"
    logs.mkdir()
    logging = f'logging_config {{ log_collector_config {{ filename_prefix: "{logs / "m"}" }} sampling_config {{ sampling_rate: 1.0 }} }}'
    file.write_text(config(entry("m", base, logging)))
    server = own(f"--model_config_file={file}")
    until(lambda: available(server, "m"), "it answers")
    stubs = Stubs(server)
    for i in range(20):
        stubs.predict("m", {"x": np.float32([i])})
    assert server.stop() == 0
    written = [f for f in sorted(logs.iterdir()) if not f.is_symlink()]
    records = [r.numpy() for r in tf.data.TFRecordDataset([str(f) for f in written])]
    assert len(records) == 20
    log = prediction_log_pb2.PredictionLog.FromString(records[7])
    assert tf.make_ndarray(log.predict_log.request.inputs["x"]).tolist() == [7.0]
    assert tf.make_ndarray(log.predict_log.response.outputs["y"]).tolist() == [5.5]
    put(base, 2, "half_plus_two")
    extra = base / "2" / "assets.extra"
    extra.mkdir()
    shutil.copy(written[0], extra / "tf_serving_warmup_requests")
    file.write_text(config(entry("m", base)))
    again = own(f"--model_config_file={file}")
    until(lambda: available(again, "m"), "it answers after its warm-up: " + "".join(again.lines))
    assert b'"version":"2"' in again.ask("GET", "/v1/models/m")[2].replace(b" ", b"")


def test_what_changes_no_answer_is_a_warning(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    flags = ["--platform_config_file=x", "--grpc_channel_arguments=grpc.max_connection_age_ms=2000", "--prefer_tflite_model=true"]
    server = own("--model_name=m", f"--model_base_path={base}", *flags)
    assert available(server, "m")  # the port opens when the model serves
    for flag in flags:
        assert sum(flag.split("=")[0] + " has no effect" in line for line in server.lines) == 1


def test_a_model_that_does_not_load_ends_the_start(tmp_path):
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(RuntimeError) as e:
        Server("--model_name=m", f"--model_base_path={tmp_path / 'm'}", "--max_num_load_retries=0")
    assert "1 servable(s) did not become available: {{name: m version: 1} due to error: " in str(e.value)


def test_a_warm_up_that_fails_fails_the_version(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    extra = base / "1" / "assets.extra"
    extra.mkdir()
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.model_spec.name = "m"
    log.predict_log.request.inputs["wrong"].CopyFrom(tf.make_tensor_proto([1.0]))
    with tf.io.TFRecordWriter(str(extra / "tf_serving_warmup_requests")) as writer:
        writer.write(log.SerializeToString())
    server = own("--model_name=m", f"--model_base_path={base}", "--max_num_load_retries=0", "--ports-after-models=false")
    state = until(
        lambda: [s for s in json.loads(server.ask("GET", "/v1/models/m")[2]).get("model_version_status", []) if s["state"] == "END"],
        "the version fails",
    )
    assert state[0]["status"]["error_code"] != "OK"
    assert "warm" in state[0]["status"]["error_message"].lower()


# ---- under the name tensorflow_model_server ----


def test_the_old_name_starts_it(tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    old = pathlib.Path(program()).resolve().with_name("tensorflow_model_server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([str(old), f"--port={port}", "--model_name=m", f"--model_base_path={base}"], stdout=subprocess.DEVNULL)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=60)
            request = get_model_status_pb2.GetModelStatusRequest()
            request.model_spec.name = "m"
            models = model_service_pb2_grpc.ModelServiceStub(channel)

            def states():
                try:
                    return [v.state for v in models.GetModelStatus(request, timeout=5).model_version_status]
                except grpc.RpcError:
                    return []  # not read yet

            until(lambda: states() == [30], "it serves")
    finally:
        process.terminate()
        process.wait(30)


# ---- sockets ----


def test_a_socket_of_the_file_system(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    path = tmp_path / "grpc.sock"
    server = own("--model_name=m", f"--model_base_path={base}", f"--grpc_socket_path={path}")
    until(lambda: available(server, "m"), "it answers")
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.float32([1])))
    with grpc.insecure_channel(f"unix:{path}") as channel:
        answer = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=20)
    assert tf.make_ndarray(answer.outputs["y"]).tolist() == [2.5]
    assert server.stop() == 0
    assert not path.exists()


def certificate(folder, name):
    """Creates a key and a certificate for localhost, with the machine's openssl."""
    key, cert = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        + ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    return key.read_text(), cert.read_text()


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl to make certificates with")
def test_the_ssl_file_encrypts_and_is_read_again(own, tmp_path):
    base = put(tmp_path / "m", 1, "half_plus_two")
    file = tmp_path / "ssl.config"

    def write(key, cert):
        escaped = lambda text: text.replace("\n", "\\n")
        (tmp_path / "new").write_text(f'server_key: "{escaped(key)}" server_cert: "{escaped(cert)}" client_verify: false')
        (tmp_path / "new").rename(file)

    key, cert = certificate(tmp_path, "first")
    write(key, cert)
    server = own("--model_name=m", f"--model_base_path={base}", f"--ssl_config_file={file}")

    def predict(root):
        credentials = grpc.ssl_channel_credentials(root.encode())
        with grpc.secure_channel("localhost:" + server.base.split(":")[1], credentials) as channel:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "m"
            request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.float32([1])))
            try:
                answer = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=5)
                return tf.make_ndarray(answer.outputs["y"]).tolist()
            except grpc.RpcError:
                return None

    until(lambda: predict(cert) == [2.5], "the encrypted port answers")
    (tmp_path / "unverified.config").write_text(file.read_text().replace("client_verify: false", "client_verify: true"))
    with pytest.raises(RuntimeError) as absent:
        Server("--model_name=m", f"--model_base_path={base}", f"--ssl_config_file={tmp_path / 'unverified.config'}")
    assert "custom_ca" in str(absent.value)
    other, second = certificate(tmp_path, "second")
    write(other, second)
    until(lambda: predict(second) == [2.5], "the new certificate is shown", timeout=30)
    assert predict(cert) is None
