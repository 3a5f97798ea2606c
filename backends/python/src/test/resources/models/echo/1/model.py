# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Returns its input: itself, a view of it, or a new array; or requests it from another model."""
import json

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(r) for r in requests]

    def answer(self, request):
        tensor = pb_utils.get_input_tensor_by_name(request, "IN")
        parameters = json.loads(request.parameters())
        how = parameters.get("how", "same")
        if how == "same":
            out = pb_utils.Tensor("OUT", tensor.as_numpy())
        elif how == "view":
            out = pb_utils.Tensor("OUT", tensor.as_numpy()[1:])
        elif how == "copy":
            out = pb_utils.Tensor("OUT", tensor.as_numpy().copy())
        elif how == "turned":
            out = pb_utils.Tensor("OUT", tensor.as_numpy().T)
        elif how == "wide":
            out = pb_utils.Tensor("OUT", tensor.as_numpy().astype(np.float64))
        elif how == "big-endian":
            array = tensor.as_numpy()
            out = pb_utils.Tensor("OUT", array.astype(array.dtype.newbyteorder(">")))
        elif how == "dlpack":
            out = pb_utils.Tensor.from_dlpack("OUT", tensor)
        elif how == "raw":
            out = pb_utils.Tensor.of("OUT", tensor.data_type(), tensor.shape(), tensor.raw())
        elif how == "stale":
            out = getattr(self, "kept", pb_utils.Tensor("OUT", np.zeros(1, np.float32)))
            self.kept = tensor
        elif how == "ask":
            response = pb_utils.InferenceRequest(
                model_name=parameters["model"], requested_output_names=["OUT"], inputs=[tensor],
                request_id="from echo", correlation_id="seq",
                flags=pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, parameters={"deep": 1}).exec()
            if response.has_error():
                return pb_utils.InferenceResponse(error=response.error())
            out = response.output_tensors()[0]
        elif how == "ask-many":
            answers = pb_utils.InferenceRequest(
                model_name=parameters["model"], requested_output_names=["OUT"], inputs=[tensor]).exec(decoupled=True)
            out = pb_utils.Tensor("OUT", np.concatenate([a.output_tensors()[0].as_numpy() for a in answers]))
        elif how == "ready":
            ready = pb_utils.is_model_ready(parameters["model"])
            out = pb_utils.Tensor("OUT", np.array([1 if ready else 0], np.float32))
        return pb_utils.InferenceResponse([out])
