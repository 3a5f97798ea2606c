# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The stubs of TensorFlow Serving against a server with keys."""
import grpc
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_serving.apis")

from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from access import SecuredServer
from server import EXAMPLES


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    server = SecuredServer(tmp_path_factory.mktemp("access"), EXAMPLES)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def calls(secured):
    with grpc.insecure_channel(secured.base) as channel:
        predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        predict = predict_pb2.PredictRequest()
        predict.model_spec.name = "simple"
        for name in ("INPUT0", "INPUT1"):
            predict.inputs[name].CopyFrom(tf.make_tensor_proto([list(range(16))], tf.int32))
        metadata = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        metadata.model_spec.name = "simple"
        status = get_model_status_pb2.GetModelStatusRequest()
        status.model_spec.name = "simple"
        reload = model_management_pb2.ReloadConfigRequest()
        reload.config.model_config_list.config.add(
            name="simple", base_path=str(EXAMPLES / "simple"), model_platform="tensorflow")
        yield {
            "predict": lambda **o: predictions.Predict(predict, timeout=20, **o),
            "metadata": lambda **o: predictions.GetModelMetadata(metadata, timeout=20, **o),
            "status": lambda **o: models.GetModelStatus(status, timeout=20, **o),
            "reload": lambda **o: models.HandleReloadConfigRequest(reload, timeout=60, **o),
        }


def code(call, **options):
    try:
        call(**options)
        return "OK"
    except grpc.RpcError as e:
        return e.code().name


def test_every_call_needs_a_key(calls):
    assert {name: code(call) for name, call in calls.items()} == dict.fromkeys(calls, "UNAUTHENTICATED")


def test_a_key_does_what_its_role_allows(secured, calls):
    app = {name: code(call, metadata=secured.metadata("app")) for name, call in calls.items()}
    assert app == {"predict": "OK", "metadata": "OK", "status": "OK", "reload": "PERMISSION_DENIED"}
    # A server of a model repository does not take a model list; who is allowed hears that.
    assert code(calls["reload"], metadata=secured.metadata("ops")) not in ("UNAUTHENTICATED", "PERMISSION_DENIED")


def test_a_quota_is_resource_exhausted_with_the_time_to_wait(secured, calls):
    refused = None
    for _ in range(5):
        try:
            calls["predict"](metadata=secured.metadata("slow"))
        except grpc.RpcError as e:
            refused = e
    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    pushback = dict(refused.trailing_metadata())["grpc-retry-pushback-ms"]
    assert 0 < int(pushback) <= 1000
