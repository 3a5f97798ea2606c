# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own models, in TensorFlow: the same answers through TensorFlow Serving's REST and gRPC and through V2."""
import base64
import json
import subprocess

import grpc
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
apis = pytest.importorskip("tensorflow_serving.apis")

from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from server import ROOT, Server, program

MODELS = ROOT / "backends" / "tensorflow" / "src" / "test" / "resources" / "models"


@pytest.fixture(scope="module")
def server():
    listed = subprocess.run([program(), "plugins", "list"], capture_output=True, text=True, check=True).stdout
    state = next(line for line in listed.splitlines() if line.split()[:1] == ["tensorflow"])
    if "not installed" in state:
        pytest.skip("the plugin is not installed: nereid plugins install tensorflow")
    running = Server(MODELS)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(server.base) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


def rest(server, path, body):
    status, _, answer = server.ask("POST", path, json.dumps(body))
    assert status == 200, answer
    return json.loads(answer)


def predict(stub, model, inputs, signature=""):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return {name: tf.make_ndarray(t) for name, t in stub.Predict(request, 30).outputs.items()}


@pytest.mark.parametrize("model, expected", [("half_plus_two", [2.5, 3.0, 4.5]), ("half_plus_three", [3.5, 4.0, 5.5])])
def test_predict_gives_the_same_through_all_three(server, stub, model, expected):
    assert rest(server, f"/v1/models/{model}:predict", {"instances": [1.0, 2.0, 5.0]}) == {"predictions": expected}
    answer = predict(stub, model, {"x": np.array([1, 2, 5], np.float32)})
    assert answer["y"].tolist() == expected
    body = {"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1, 2, 5]}]}
    output = rest(server, f"/v2/models/{model}/infer", body)["outputs"][0]
    assert (output["data"], output["shape"]) == (expected, [3])


def test_predict_takes_a_matrix(server):
    body = {"instances": [[1.0, 2.0], [3.0, 4.0]]}
    assert rest(server, "/v1/models/half_plus_two:predict", body) == {"predictions": [[2.5, 3.0], [3.5, 4.0]]}


def test_regress_and_classify_give_the_same_through_both(server, stub):
    body = {"signature_name": "regress_x_to_y", "examples": [{"x": 80.0}]}
    assert rest(server, "/v1/models/half_plus_two:regress", body) == {"results": [42.0]}
    regression = regression_pb2.RegressionRequest()
    regression.model_spec.name = "half_plus_two"
    regression.model_spec.signature_name = "regress_x_to_y"
    regression.input.example_list.examples.add().features.feature["x"].float_list.value.append(80.0)
    assert [r.value for r in stub.Regress(regression, 30).result.regressions] == [42.0]
    for x, score in ((20.0, 12.0), (10.0, 7.0)):
        body = {"signature_name": "classify_x_to_y", "examples": [{"x": x}]}
        assert rest(server, "/v1/models/half_plus_two:classify", body) == {"results": [[["", score]]]}
        classification = classification_pb2.ClassificationRequest()
        classification.model_spec.name = "half_plus_two"
        classification.model_spec.signature_name = "classify_x_to_y"
        classification.input.example_list.examples.add().features.feature["x"].float_list.value.append(x)
        classes = stub.Classify(classification, 30).result.classifications[0].classes
        assert [(c.label, c.score) for c in classes] == [("", score)]


def test_several_signatures_are_asked_in_one_call(stub):
    request = inference_pb2.MultiInferenceRequest()
    for signature, method in (("regress_x_to_y", "regress"), ("classify_x_to_y", "classify")):
        task = request.tasks.add(method_name="tensorflow/serving/" + method)
        task.model_spec.name = "half_plus_two"
        task.model_spec.signature_name = signature
    request.input.example_list.examples.add().features.feature["x"].float_list.value.append(2.0)
    answer = stub.MultiInference(request, timeout=20)
    assert answer.results[0].regression_result.regressions[0].value == 3.0
    assert answer.results[1].classification_result.classifications[0].classes[0].score == 3.0


def test_the_counter_counts_whoever_asks(server, stub):
    predict(stub, "counter", {}, "reset_counter")
    assert rest(server, "/v1/models/counter:predict", {"signature_name": "incr_counter", "inputs": {}}) == {"outputs": 1.0}
    assert predict(stub, "counter", {"delta": np.float32(3)}, "incr_counter_by")["output"] == 4.0
    body = {"signature_name": "incr_counter_by", "inputs": {"delta": 3.0}}
    assert rest(server, "/v1/models/counter:predict", body) == {"outputs": 7.0}
    output = rest(server, "/v2/models/counter/infer", {"inputs": []})["outputs"][0]
    assert (output["data"], output["shape"]) == ([7.0], [])


def test_strings_come_back_byte_for_byte(server, stub):
    texts = [b"\x00\xff\xfe", "\U0001f41a".encode(), b"x" * 1000, b""]
    answer = predict(stub, "echo", {"text": np.array(texts, object)})
    assert [bytes(t) for t in answer["text"]] == texts
    assert answer["length"].tolist() == [3, 4, 1000, 0]
    body = {"instances": [{"b64": base64.b64encode(b"abc").decode()}, "de"]}
    assert [p["length"] for p in rest(server, "/v1/models/echo:predict", body)["predictions"]] == [3, 2]


def test_mistakes_are_the_clients(server, stub):
    for model, inputs, signature, code, text in [
        ("half_plus_two", {"x": np.float32([1])}, "nope", grpc.StatusCode.FAILED_PRECONDITION, 'key "nope" not found'),
        ("half_plus_two", {"z": np.float32([1])}, "", grpc.StatusCode.INVALID_ARGUMENT, "does not match signature"),
        ("half_plus_two", {"x": np.int32([1])}, "", grpc.StatusCode.INVALID_ARGUMENT, "INT32"),
        ("functions", {"x": np.zeros((2, 4), np.float32)}, "", grpc.StatusCode.INVALID_ARGUMENT, "[2,4]"),
        ("functions", {"x": np.float32([-1])}, "positive", grpc.StatusCode.INVALID_ARGUMENT, "x must be positive"),
    ]:
        with pytest.raises(grpc.RpcError) as refused:
            predict(stub, model, inputs, signature)
        assert refused.value.code() == code, refused.value.details()
        assert text in refused.value.details()
