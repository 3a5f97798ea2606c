# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""tritonclient.grpc: sync, async, aio and streams."""
import asyncio
import queue
import threading

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")
aio = pytest.importorskip("tritonclient.grpc.aio")
from tritonclient.utils import InferenceServerException

from models import NUMBERS, NUMPY, SHAPES, values


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.base) as client:
        yield client


def tensor(name, array, datatype):
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


@pytest.mark.parametrize("backend", ["identity", "onnx_identity"])
@pytest.mark.parametrize("datatype", [*NUMPY, "BYTES"])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_come_back(client, backend, datatype, shape):
    model = "onnx_identity_string" if (backend, datatype) == ("onnx_identity", "BYTES") else f"{backend}_{datatype.lower()}"
    array = values(datatype, shape, model=model)
    result = client.infer(model, [tensor("INPUT0", array, datatype)], request_id="7")
    assert result.get_response().id == "7"
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


@pytest.mark.parametrize("backend", ["identity", "onnx_identity"])
def test_bf16_comes_back(client, backend):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = values("FP32", (2, 8)).clip(-1e30, 1e30).astype(ml_dtypes.bfloat16)
    result = client.infer(f"{backend}_bf16", [tensor("INPUT0", array, "BF16")])
    assert np.array_equal(result.as_numpy("OUTPUT0").astype(np.float32), array.astype(np.float32))


@pytest.mark.parametrize("datatype", NUMBERS)
@pytest.mark.parametrize("batch", [1, 8])
def test_adds_and_subtracts(client, datatype, batch):
    a = np.arange(batch * 16).reshape(batch, 16).astype(NUMPY[datatype])
    b = np.full_like(a, 3)
    outputs = [triton.InferRequestedOutput("OUTPUT1"), triton.InferRequestedOutput("OUTPUT0")]
    result = client.infer(f"add_sub_{datatype.lower()}", [tensor("INPUT0", a, datatype), tensor("INPUT1", b, datatype)], outputs=outputs)
    assert [o.name for o in result.get_response().outputs] == ["OUTPUT1", "OUTPUT0"]
    assert np.array_equal(result.as_numpy("OUTPUT0"), a + b)
    assert np.array_equal(result.as_numpy("OUTPUT1"), a - b)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_messages(client, algorithm):
    array = np.zeros((1, 50_000), np.float32)
    result = client.infer("identity_fp32", [tensor("INPUT0", array, "FP32")], compression_algorithm=algorithm)
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


def test_a_large_tensor_goes_through_flow_control(client):
    array = np.random.default_rng(1).normal(size=(8, 1_000_000)).astype(np.float32)
    result = client.infer("identity_fp32", [tensor("INPUT0", array, "FP32")])
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


def test_calls_back(client):
    done = queue.Queue()
    for i in range(100):
        a = np.full((1, 16), i, np.int32)
        client.async_infer(
            "simple",
            [tensor("INPUT0", a, "INT32"), tensor("INPUT1", a, "INT32")],
            callback=lambda result, error, i=i: done.put((i, result, error)),
        )
    for _ in range(100):
        i, result, error = done.get(timeout=20)
        assert error is None
        assert (result.as_numpy("OUTPUT0") == 2 * i).all()


def test_a_stream_answers_in_order_and_survives_an_error(server):
    with triton.InferenceServerClient(server.base) as client:
        done = queue.Queue()
        client.start_stream(callback=lambda result, error: done.put((result, error)))
        for i in range(50):
            a = np.full((1, 16), i, np.int32)
            model = "nosuch" if i == 20 else "simple"
            client.async_stream_infer(model, [tensor("INPUT0", a, "INT32"), tensor("INPUT1", a, "INT32")], request_id=str(i))
        for i in range(50):
            result, error = done.get(timeout=20)
            if i == 20:
                assert "nosuch" in str(error)
            else:
                assert error is None, error
                assert result.get_response().id == str(i)
                assert (result.as_numpy("OUTPUT0") == 2 * i).all()
        client.stop_stream()


def test_a_deadline_is_kept(client):
    with pytest.raises(InferenceServerException) as failure:
        client.infer("slow", [tensor("INPUT0", values("FP32", (1, 1)), "FP32")], client_timeout=0.3)
    assert "DEADLINE_EXCEEDED" in failure.value.status()


def test_a_call_can_be_cancelled(client):
    done = threading.Event()
    errors = []
    call = client.async_infer(
        "slow",
        [tensor("INPUT0", values("FP32", (1, 1)), "FP32")],
        callback=lambda result, error: (errors.append(error), done.set()),
    )
    call.cancel()
    assert done.wait(10)
    assert "CANCELLED" in str(errors[0])
    assert client.is_server_ready()


def test_classification_names_the_flowers(client):
    array = np.array([[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]], np.float32)
    output = triton.InferRequestedOutput("probabilities", class_count=1)
    rows = client.infer("iris", [tensor("input", array, "FP32")], outputs=[output]).as_numpy("probabilities")
    assert [bytes(r[0]).split(b":")[1:] for r in rows] == [[b"0", b"setosa"], [b"2", b"virginica"]]


def test_says_what_it_is(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("simple", "1")
    assert client.get_server_metadata().name
    metadata = client.get_model_metadata("simple")
    assert list(metadata.versions) == ["1"]
    assert [list(i.shape) for i in metadata.inputs] == [[-1, 16], [-1, 16]]
    assert client.get_model_config("simple").config.max_batch_size == 8


def test_loads_and_unloads(client):
    assert ("identity_int16", "READY") in {(m.name, m.state) for m in client.get_model_repository_index().models}
    client.unload_model("identity_int16")
    try:
        assert not client.is_model_ready("identity_int16")
    finally:
        client.load_model("identity_int16")
    assert client.is_model_ready("identity_int16")


def test_errors_carry_their_code(client):
    array = values("INT32", (1, 16))
    with pytest.raises(InferenceServerException, match="missing required input") as failure:
        client.infer("simple", [tensor("INPUT0", array, "INT32")])
    assert failure.value.status() == "StatusCode.INVALID_ARGUMENT"
    with pytest.raises(InferenceServerException, match="nosuch") as failure:
        client.infer("nosuch", [tensor("INPUT0", array, "INT32")])
    assert failure.value.status() == "StatusCode.NOT_FOUND"
    with pytest.raises(InferenceServerException) as failure:
        client.infer("simple", [tensor("INPUT0", array, "INT32")], model_version="x")
    assert failure.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_aio_client(server):
    async def work():
        async with aio.InferenceServerClient(server.base) as client:
            assert await client.is_server_ready()
            arrays = [np.full((1, 16), i, np.int32) for i in range(50)]
            results = await asyncio.gather(
                *(client.infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", a, "INT32")]) for a in arrays)
            )
            for array, result in zip(arrays, results):
                assert np.array_equal(result.as_numpy("OUTPUT0"), array * 2)

            async def requests():
                for a in arrays:
                    yield {"model_name": "simple", "inputs": [tensor("INPUT0", a, "INT32"), tensor("INPUT1", a, "INT32")]}

            count = 0
            async for result, error in client.stream_infer(requests()):
                assert error is None
                assert np.array_equal(result.as_numpy("OUTPUT0"), arrays[count] * 2)
                count += 1
                if count == len(arrays):
                    break
            assert count == 50

    asyncio.run(work())
