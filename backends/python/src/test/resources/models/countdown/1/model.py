# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts a request down to zero: one response per execute, and rescheduled until then."""
import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.left = {}

    def execute(self, requests):
        for request in requests:
            key = request.correlation_id()
            start = request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
            if start or key not in self.left:
                self.left[key] = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0])
            self.left[key] -= 1
            sender = request.get_response_sender()
            response = pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", np.array([self.left[key]], np.int32))])
            if self.left[key] <= 0:
                del self.left[key]
                sender.send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            else:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                sender.send(response)
        return None
