# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""tritonclient.http and tritonclient.http.aio."""
import asyncio
import itertools

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.http")
aio = pytest.importorskip("tritonclient.http.aio")
from tritonclient.utils import InferenceServerException

from models import NUMBERS, NUMPY, SHAPES, values


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.base, concurrency=8) as client:
        yield client


def tensor(name, array, datatype, binary=True):
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return tensor


@pytest.mark.parametrize("backend", ["identity", "onnx_identity"])
@pytest.mark.parametrize("datatype", [*NUMPY, "BYTES"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sent,wanted", itertools.product([True, False], repeat=2))
def test_values_come_back(client, backend, datatype, shape, sent, wanted):
    if backend == "onnx_identity" and datatype == "BYTES":
        model = "onnx_identity_string"
    else:
        model = f"{backend}_{datatype.lower()}"
    if datatype == "FP16" and not sent:
        pytest.skip("the client does not send FP16 as JSON")
    array = values(datatype, shape, model=model)
    output = triton.InferRequestedOutput("OUTPUT0", binary_data=wanted)
    result = client.infer(model, [tensor("INPUT0", array, datatype, sent)], outputs=[output], request_id="42")
    answer = result.as_numpy("OUTPUT0")
    if datatype == "BYTES":
        answer = np.array([x if isinstance(x, bytes) else x.encode() for x in answer.flat], object).reshape(answer.shape)
    assert result.get_response()["id"] == "42"
    assert answer.shape == array.shape
    assert np.array_equal(answer, array)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("backend", ["identity", "onnx_identity"])
def test_bf16_comes_back_as_bytes(client, shape, backend):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = values("FP32", shape).clip(-1e30, 1e30).astype(ml_dtypes.bfloat16)
    result = client.infer(f"{backend}_bf16", [tensor("INPUT0", array, "BF16")])
    assert np.array_equal(result.as_numpy("OUTPUT0").astype(np.float32), array.astype(np.float32))


@pytest.mark.parametrize("datatype", NUMBERS)
@pytest.mark.parametrize("batch", [1, 3, 8])
def test_adds_and_subtracts(client, datatype, batch):
    kind = NUMPY[datatype]
    a = np.arange(batch * 16).reshape(batch, 16).astype(kind)
    b = (np.ones_like(a) * 3).astype(kind)
    result = client.infer(f"add_sub_{datatype.lower()}", [tensor("INPUT1", b, datatype), tensor("INPUT0", a, datatype)])
    assert np.array_equal(result.as_numpy("OUTPUT0"), a + b)
    assert np.array_equal(result.as_numpy("OUTPUT1"), a - b)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_both_ways(client, algorithm):
    array = np.zeros((1, 50_000), np.float32)
    result = client.infer(
        "identity_fp32",
        [tensor("INPUT0", array, "FP32")],
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


def test_many_at_once_keep_apart(client):
    arrays = [np.full((1, 16), i, np.int32) for i in range(200)]
    waiting = [client.async_infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", a, "INT32")]) for a in arrays]
    for array, request in zip(arrays, waiting):
        result = request.get_result()
        assert np.array_equal(result.as_numpy("OUTPUT0"), array * 2)
        assert not result.as_numpy("OUTPUT1").any()


def test_an_empty_tensor_comes_back(client):
    result = client.infer("identity_fp32", [tensor("INPUT0", np.zeros((1, 0), np.float32), "FP32")])
    assert result.as_numpy("OUTPUT0").shape == (1, 0)


def test_classification_names_the_flowers(client):
    array = np.array([[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]], np.float32)
    output = triton.InferRequestedOutput("probabilities", class_count=2)
    rows = client.infer("iris", [tensor("input", array, "FP32")], outputs=[output]).as_numpy("probabilities")
    assert rows.shape == (2, 2)
    assert [bytes(r[0]).split(b":")[1:] for r in rows] == [[b"0", b"setosa"], [b"2", b"virginica"]]


def test_says_what_it_is(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.get_server_metadata()["name"]
    assert client.is_model_ready("simple") and client.is_model_ready("simple", "1")
    metadata = client.get_model_metadata("simple")
    assert metadata["versions"] == ["1"]
    assert {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]} in metadata["inputs"]
    assert client.get_model_config("simple")["max_batch_size"] == 8


def test_loads_and_unloads(client):
    def state():
        return {(m["name"], m.get("state")) for m in client.get_model_repository_index()}

    assert ("identity_int8", "READY") in state()
    client.unload_model("identity_int8")
    try:
        assert not client.is_model_ready("identity_int8")
        with pytest.raises(InferenceServerException):
            client.infer("identity_int8", [tensor("INPUT0", values("INT8", (1, 4)), "INT8")])
    finally:
        client.load_model("identity_int8")
    assert client.is_model_ready("identity_int8")


def test_errors_reach_the_caller(client):
    array = values("INT32", (1, 16))
    with pytest.raises(InferenceServerException, match="missing required input"):
        client.infer("simple", [tensor("INPUT0", array, "INT32")])
    with pytest.raises(InferenceServerException, match="nosuch"):
        client.infer("nosuch", [tensor("INPUT0", array, "INT32")])


def test_aio_client(server):
    async def work():
        async with aio.InferenceServerClient(server.base) as client:
            assert await client.is_server_ready()
            assert (await client.get_model_metadata("simple"))["name"] == "simple"
            arrays = [np.full((1, 16), i, np.int32) for i in range(50)]
            results = await asyncio.gather(
                *(client.infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", a, "INT32")]) for a in arrays)
            )
            for array, result in zip(arrays, results):
                assert np.array_equal(result.as_numpy("OUTPUT0"), array * 2)
            with pytest.raises(InferenceServerException, match="nosuch"):
                await client.infer("nosuch", [tensor("INPUT0", arrays[0], "INT32")])

    asyncio.run(work())
