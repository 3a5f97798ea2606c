# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Waits in an event loop that the requests of the instance share, calls the square model, and responds twice."""
import asyncio

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            number = pb_utils.get_input_tensor_by_name(request, "IN")
            if number.as_numpy()[0] < 0:
                raise ValueError("a negative number")
            sender = request.get_response_sender()
            await asyncio.sleep(0.3)
            answer = await pb_utils.InferenceRequest(
                model_name="square", inputs=[number], requested_output_names=["OUT"]).async_exec()
            if answer.has_error():
                sender.send(
                    pb_utils.InferenceResponse(error=answer.error()), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                continue
            for _ in range(2):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", number.as_numpy())]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
