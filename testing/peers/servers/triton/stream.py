# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The model of the rows stream-1 and stream-16 for Triton's Python backend: decoupled, a response for each text."""

import os
import sys

sys.path[:0] = os.environ["PEERS_PATH"].split(os.pathsep)

import numpy as np
import triton_python_backend_utils as pb_utils

from models import Model


class TritonPythonModel:
    def initialize(self, args):
        self.model = Model()

    def execute(self, requests):
        for request in requests:
            prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0]
            sender = request.get_response_sender()
            for text in self.model.tokens(prompt):
                tensor = pb_utils.Tensor("text_output", np.array([text.encode()], object))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
