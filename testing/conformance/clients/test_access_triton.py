# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Triton's clients against a server with keys."""
import numpy as np
import pytest

grpc_client = pytest.importorskip("tritonclient.grpc")
http_client = pytest.importorskip("tritonclient.http")
from tritonclient.grpc.auth import BasicAuth as GrpcBasicAuth
from tritonclient.http.auth import BasicAuth as HttpBasicAuth
from tritonclient.utils import InferenceServerException

from access import SecuredServer
from server import EXAMPLES

CLIENTS = {"http": http_client, "grpc": grpc_client}
BASIC = {"http": HttpBasicAuth, "grpc": GrpcBasicAuth}
DENIED = {"http": {401: "401", 403: "403"}, "grpc": {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}}


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    server = SecuredServer(tmp_path_factory.mktemp("access"), EXAMPLES)
    yield server
    server.stop()


@pytest.fixture(params=CLIENTS)
def protocol(request):
    return request.param


@pytest.fixture
def client(secured, protocol):
    with CLIENTS[protocol].InferenceServerClient(secured.base) as made:
        yield made


def refused(protocol, status, call, *arguments, **options):
    with pytest.raises(InferenceServerException) as e:
        call(*arguments, **options)
    assert DENIED[protocol][status] in str(e.value.status()), e.value


def inputs(protocol):
    made = []
    for name in ("INPUT0", "INPUT1"):
        tensor = CLIENTS[protocol].InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(np.arange(16, dtype=np.int32).reshape(1, 16))
        made.append(tensor)
    return made


def test_only_health_is_open_without_a_key(protocol, client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("simple")
    refused(protocol, 401, client.infer, "simple", inputs(protocol))
    refused(protocol, 401, client.get_server_metadata)
    refused(protocol, 401, client.get_model_metadata, "simple")
    refused(protocol, 401, client.get_model_config, "simple")
    refused(protocol, 401, client.get_model_repository_index)
    refused(protocol, 401, client.get_inference_statistics)
    refused(protocol, 401, client.unload_model, "simple")
    refused(protocol, 401, client.get_system_shared_memory_status)


def test_a_key_does_what_its_role_allows(secured, protocol, client):
    app, ops = secured.bearer("app"), secured.bearer("ops")
    if protocol == "grpc":  # metadata of gRPC is in lower case
        app, ops = ({k.lower(): v for k, v in h.items()} for h in (app, ops))
    answer = client.infer("simple", inputs(protocol), headers=app)
    assert answer.as_numpy("OUTPUT0").ravel().tolist() == [2 * i for i in range(16)]
    assert client.get_model_metadata("simple", headers=app)
    refused(protocol, 403, client.unload_model, "simple", headers=app)
    refused(protocol, 403, client.load_model, "simple", headers=app)
    refused(protocol, 403, client.update_trace_settings, settings={"trace_rate": "5"}, headers=app)
    refused(protocol, 403, client.update_log_settings, {"log_verbose_level": 1}, headers=app)
    refused(protocol, 403, client.unregister_system_shared_memory, headers=app)
    client.unload_model("simple", headers=ops)
    client.load_model("simple", headers=ops)
    client.update_log_settings({"log_verbose_level": 0}, headers=ops)


def test_the_key_is_the_password_of_basic(secured, protocol, client):
    client.register_plugin(BASIC[protocol]("app", secured.keys["app"]))
    assert client.infer("simple", inputs(protocol)).as_numpy("OUTPUT1").ravel().tolist() == [0] * 16
    client.unregister_plugin()
    client.register_plugin(BASIC[protocol]("app", "guess"))
    refused(protocol, 401, client.infer, "simple", inputs(protocol))


def test_a_stream_needs_the_key_and_the_model(secured):
    for key, expected in ((None, "UNAUTHENTICATED"), ("narrow", None)):
        with grpc_client.InferenceServerClient(secured.base) as client:
            got = []
            headers = {"authorization": "Bearer " + secured.keys[key]} if key else None
            client.start_stream(lambda result, error: got.append((result, error)), headers=headers)
            try:
                client.async_stream_infer("simple", inputs("grpc"))
            except InferenceServerException as e:
                # The stream may be refused before its first request is sent.
                assert expected and "no longer in valid state" in str(e), e
            client.stop_stream()
            assert len(got) == 1
            if expected:
                assert expected in str(got[0][1].status())
            else:
                assert got[0][1] is None


def test_a_stream_is_refused_per_model(secured):
    names = grpc_client.InferenceServerClient(secured.base).get_model_repository_index(
        headers={"authorization": "Bearer " + secured.keys["app"]}, as_json=True
    )["models"]
    other = next(m["name"] for m in names if not m["name"].startswith("sim"))
    with grpc_client.InferenceServerClient(secured.base) as client:
        got = []
        client.start_stream(
            lambda result, error: got.append((result, error)),
            headers={"authorization": "Bearer " + secured.keys["narrow"]},
        )
        client.async_stream_infer(other, inputs("grpc"))
        client.async_stream_infer("simple", inputs("grpc"))
        client.stop_stream()
    assert "may not" in str(got[0][1]) or "not allowed" in str(got[0][1]), got
    assert got[1][1] is None, "the refused request does not end the stream"
