# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A workload's model for Triton's Python backend: the requests of a batch run as one, along the first dimension. PEERS_PATH has the
folders of modules, for the backend's interpreter ignores PYTHONPATH.
"""

import os
import sys

sys.path[:0] = os.environ["PEERS_PATH"].split(os.pathsep)

import numpy as np
import triton_python_backend_utils as pb_utils

from models import Model


class TritonPythonModel:
    def initialize(self, args):
        self.model = Model()
        self.batched = self.model.spec["max_batch_size"] > 0

    def execute(self, requests):
        inputs = [[pb_utils.get_input_tensor_by_name(r, t["name"]).as_numpy() for t in self.model.inputs] for r in requests]
        if not self.batched:
            return [self.response(self.model.run(arrays)) for arrays in inputs]
        outputs = self.model.run([np.concatenate(arrays) for arrays in zip(*inputs)])
        responses, row = [], 0
        for arrays in inputs:
            rows = len(arrays[0])
            responses.append(self.response([a[row : row + rows] for a in outputs]))
            row += rows
        return responses

    def response(self, arrays):
        outputs = []
        for tensor, array in zip(self.model.outputs, arrays):
            outputs.append(pb_utils.Tensor(tensor["name"], np.ascontiguousarray(array, self.model.dtype(tensor))))
        return pb_utils.InferenceResponse(outputs)
