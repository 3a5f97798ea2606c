# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""InferenceServices through the clients of the kserve SDK, and with processes that are written with it."""
import asyncio

import numpy as np
import pytest

kserve = pytest.importorskip("kserve")

from control_fixtures import over
from control_server import ControlServer
from server import EXAMPLES

IRIS = [[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]]
TENFOLD = [[10 * x for x in row] for row in IRIS]
PROTOCOLS = ["v1", "v2", "grpc-v2"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    plane = ControlServer(tmp_path_factory.mktemp("plane"), values={"models": EXAMPLES})
    # Importing the package takes seconds: all processes start in parallel.
    plane.apply("kserve-custom.yaml")
    for protocol in PROTOCOLS:
        plane.apply("kserve-transformer.yaml", name=f"scaler-{protocol}", protocol=protocol)
    plane.apply(plane.text("onnx.yaml").replace("/onnx\n", "/iris/1\n"))
    yield plane
    over(plane)


def address(plane, name, by="host"):
    """The clients' parameters: the server's address, and headers."""
    if by == "path":
        return f"http://{plane.base}/serving/demo/{name}", {}
    return f"http://{plane.base}", {"Host": f"{name}-demo.example.com"}


def request(name, rows, kind="FP32"):
    tensor = kserve.InferInput("input", list(np.shape(rows)), kind)
    tensor.set_data_from_numpy(np.array(rows, {"FP32": np.float32, "FP64": np.float64}[kind]), binary_data=False)
    return kserve.InferRequest(name, [tensor])


async def by_v1(plane, name, rows, by="host"):
    base, headers = address(plane, name, by)
    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1", retries=0))
    try:
        assert await client.is_model_ready(base, name, headers=headers)
        return (await client.infer(base, {"instances": rows}, name, headers=headers))["predictions"]
    finally:
        await client.close()


async def by_v2(plane, name, rows, output, by="host"):
    base, headers = address(plane, name, by)
    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", retries=0))
    try:
        assert await client.is_server_ready(base, headers=headers)
        assert await client.is_model_ready(base, name, headers=headers)
        answer = await client.infer(base, request(name, rows), name, headers=headers)
        return list(next(o for o in answer.outputs if o.name == output).data)
    finally:
        await client.close()


async def by_grpc(plane, name, rows, output):
    client = kserve.InferenceGRPCClient(
        plane.base, channel_args=[("grpc.default_authority", f"{name}-demo.example.com")])
    try:
        assert await client.is_model_ready(name)
        answer = await client.infer(request(name, rows))
        return np.ravel(next(o for o in answer.outputs if o.name == output).as_numpy()).tolist()
    finally:
        await client.close()


@pytest.mark.parametrize("by", ["host", "path"])
def test_the_clients_speak_to_a_service(plane, by):
    plane.steady("onnx-iris")
    assert [p["label"] for p in asyncio.run(by_v1(plane, "onnx-iris", IRIS, by))] == [[0], [2]]
    assert asyncio.run(by_v2(plane, "onnx-iris", IRIS, "label", by)) == [0, 2]
    if by == "host":
        assert asyncio.run(by_grpc(plane, "onnx-iris", IRIS, "label")) == [0, 2]


def test_the_clients_explain(plane):
    plane.steady("onnx-iris")

    async def explain():
        base, headers = address(plane, "onnx-iris")
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1", retries=0))
        body = {"instances": IRIS, "parameters": {"background": [[5, 3, 1.5, 0.2], [6, 3, 4, 1.2]]}}
        try:
            return await client.explain(base, "onnx-iris", body, headers=headers)
        finally:
            await client.close()

    assert len(asyncio.run(explain())["explanations"]) == 2


def test_a_predictor_of_the_package_answers_in_every_protocol(plane):
    plane.steady("kserve-custom")
    rows = [[1, 2], [3, 4]]
    assert asyncio.run(by_v1(plane, "kserve-custom", rows)) == [30, 70]
    assert asyncio.run(by_v2(plane, "kserve-custom", rows, "output-0")) == [30, 70]
    assert asyncio.run(by_grpc(plane, "kserve-custom", rows, "output-0")) == [30, 70]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_transformers_of_the_package_stand_between_every_two_protocols(plane, protocol):
    name = f"scaler-{protocol}"
    plane.steady(name)
    assert asyncio.run(by_v1(plane, name, TENFOLD)) == [0, 2]
    assert asyncio.run(by_v1(plane, name, TENFOLD, "path")) == [0, 2]
    assert asyncio.run(by_v2(plane, name, TENFOLD, "label")) == [0, 2]
    assert asyncio.run(by_grpc(plane, name, TENFOLD, "label")) == [0, 2]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_of_the_predictor_come_through_the_transformer(plane, protocol):
    name = f"scaler-{protocol}"
    plane.steady(name)
    status, _, answer = plane.call(name, f"/v1/models/{name}:predict", {"instances": [[1, 2]]})
    # the package turns it into 500; the predictor's message is included
    assert status >= 400 and ("400" in answer["error"] or "INVALID_ARGUMENT" in answer["error"]), (status, answer)
