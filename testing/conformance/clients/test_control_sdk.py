# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""InferenceServices through the clients of the kserve SDK (which do not live with Triton's in one process)."""
import asyncio

import pytest

kserve = pytest.importorskip("kserve")

from control_server import ControlServer
from server import EXAMPLES

IRIS = [[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]]


@pytest.mark.parametrize("by", ["host", "path"])
def test_the_clients_of_kserve_speak_to_a_service(tmp_path, by):
    plane = ControlServer(tmp_path, values={"models": EXAMPLES})
    name = "onnx-iris"
    plane.apply(plane.text("onnx.yaml").replace("/onnx\n", "/iris/1\n"))
    plane.steady(name)
    host = f"{name}-demo.example.com"
    base = f"http://{plane.base}" + (f"/serving/demo/{name}" if by == "path" else "")
    headers = {"Host": host} if by == "host" else {}

    async def work():
        first = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1", retries=0))
        answer = await first.infer(base, {"instances": IRIS}, name, headers=headers)
        assert [p["label"] for p in answer["predictions"]] == [[0], [2]]
        assert await first.is_model_ready(base, name, headers=headers)
        await first.close()
        tensor = kserve.InferInput("input", [2, 4], "FP32", sum(IRIS, []))
        request = kserve.InferRequest(name, [tensor])
        second = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", retries=0))
        answer = await second.infer(base, request, name, headers=headers)
        assert list(next(o for o in answer.outputs if o.name == "label").data) == [0, 2]
        assert await second.is_server_ready(base, headers=headers)
        await second.close()
        if by == "host":
            grpc = kserve.InferenceGRPCClient(plane.base, channel_args=[("grpc.default_authority", host)])
            assert await grpc.is_model_ready(name)
            answer = await grpc.infer(request)
            assert list(next(o for o in answer.outputs if o.name == "label").data) == [0, 2]
            await grpc.close()

    asyncio.run(work())
    assert plane.stop() in (0, 143, -15)
