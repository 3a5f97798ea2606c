# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""As many responses as the number in the request, each the number itself, from a thread per request."""
import threading
import time

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.lock = threading.Lock()
        self.busy = 0

    def execute(self, requests):
        for request in requests:
            number = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            with self.lock:
                self.busy += 1
            threading.Thread(target=self.answer, args=(request.get_response_sender(), number), daemon=True).start()
        return None

    def answer(self, sender, number):
        for _ in range(number[0]):
            out = pb_utils.Tensor("OUT", np.array([number[0]], np.int32))
            sender.send(pb_utils.InferenceResponse(output_tensors=[out]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        with self.lock:
            self.busy -= 1

    def finalize(self):
        while self.busy:
            time.sleep(0.01)
