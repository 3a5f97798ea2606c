# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""One response per element of IN, with a DELAY in milliseconds before each; execute takes WAIT milliseconds."""
import threading
import time

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            values, delays, wait = (
                pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("IN", "DELAY", "WAIT"))
            if values.shape != delays.shape:
                raise pb_utils.TritonModelException(
                    f"expected IN and DELAY shape to match, got {list(values.shape)} and {list(delays.shape)}")
            threading.Thread(
                target=self.answer, args=(request.get_response_sender(), values, delays), daemon=True).start()
            time.sleep(wait[0] / 1000)
        return None

    def answer(self, sender, values, delays):
        for i, (value, delay) in enumerate(zip(values, delays)):
            time.sleep(delay / 1000)
            if sender.is_cancelled():
                break
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("OUT", np.array([value], np.int32)),
                pb_utils.Tensor("IDX", np.array([i], np.uint32)),
            ]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
