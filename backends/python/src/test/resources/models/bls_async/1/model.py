# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Sends several requests to a model at once, and returns the sum of its results."""
import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for request in requests:
            name = pb_utils.get_input_tensor_by_name(request, "MODEL_NAME").as_numpy()[0].decode("utf-8")
            inputs = [pb_utils.get_input_tensor_by_name(request, n) for n in ("INPUT0", "INPUT1")]
            questions = [
                pb_utils.InferenceRequest(
                    model_name=name, requested_output_names=["OUTPUT0", "OUTPUT1"], inputs=inputs).async_exec()
                for _ in range(4)
            ]
            answers = await asyncio.gather(*questions)
            for answer in answers:
                if answer.has_error():
                    raise pb_utils.TritonModelException(answer.error().message())
            responses.append(pb_utils.InferenceResponse([
                pb_utils.Tensor(n, sum(pb_utils.get_output_tensor_by_name(a, n).as_numpy() for a in answers))
                for n in ("OUTPUT0", "OUTPUT1")
            ]))
        return responses
