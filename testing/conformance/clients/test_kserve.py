# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The inference clients of the kserve SDK."""
import asyncio

import numpy as np
import pytest

kserve = pytest.importorskip("kserve")
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

from models import NUMPY, SHAPES, values


def request(model, array, datatype, raw):
    tensor = InferInput("INPUT0", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=raw)
    return InferRequest(model, [tensor], request_id="9")


def check(answer, array):
    assert answer.id == "9"
    output = answer.outputs[0]
    assert output.name == "OUTPUT0"
    got = output.as_numpy()
    if array.dtype == object:
        got = np.array([x if isinstance(x, bytes) else str(x).encode() for x in got.flat], object).reshape(got.shape)
    assert np.array_equal(got, array)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("datatype", [*NUMPY, "BYTES"])
def test_rest_values_come_back(server, datatype, shape, raw):
    if datatype == "FP16" and not raw:
        pytest.skip("the client does not send FP16 as JSON")
    if datatype == "BYTES" and not raw:
        pytest.skip("the client cannot make JSON of bytes objects")

    async def work():
        client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
        array = values(datatype, shape)
        model = f"identity_{datatype.lower()}"
        message = request(model, array, datatype, raw)
        if datatype == "FP16":
            message.parameters = {"binary_data_output": True}
        check(await client.infer(f"http://{server.base}", message, model), array)
        await client.close()

    asyncio.run(work())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("datatype", [*NUMPY, "BYTES"])
def test_grpc_values_come_back(server, datatype, shape, raw):
    if datatype == "FP16" and not raw:
        pytest.skip("typed contents have no FP16")

    async def work():
        client = InferenceGRPCClient(server.base)
        array = values(datatype, shape)
        check(await client.infer(request(f"identity_{datatype.lower()}", array, datatype, raw)), array)
        await client.close()

    asyncio.run(work())


def test_v1_predicts_and_reports_readiness(server):
    async def work():
        client = InferenceRESTClient(RESTConfig(protocol="v1", retries=0))
        base = f"http://{server.base}"
        answer = await client.infer(base, {"instances": [[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]]}, "iris")
        assert len(answer["predictions"]) == 2
        assert await client.is_model_ready(base, "iris")
        await client.close()

    asyncio.run(work())


def test_both_report_readiness(server):
    async def work():
        rest = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
        base = f"http://{server.base}"
        assert await rest.is_server_live(base)
        assert await rest.is_server_ready(base)
        assert await rest.is_model_ready(base, "simple")
        await rest.close()
        grpc = InferenceGRPCClient(server.base)
        assert await grpc.is_server_live()
        assert await grpc.is_server_ready()
        assert await grpc.is_model_ready("simple")
        await grpc.close()

    asyncio.run(work())


def test_http2_is_spoken_where_the_client_asks(server):
    pytest.importorskip("h2")

    async def work():
        client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0, http2=True))
        array = values("FP32", (2, 4))
        check(await client.infer(f"http://{server.base}", request("identity_fp32", array, "FP32", True), "identity_fp32"), array)
        await client.close()

    asyncio.run(work())
