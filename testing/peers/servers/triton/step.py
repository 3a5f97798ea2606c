# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A step of the row ensemble for Triton's Python backend; the name of the model says which: tokenizer, minilm or pool. The requests of a
batch run as one.
"""

import os
import sys

sys.path[:0] = os.environ["PEERS_PATH"].split(os.pathsep)

import numpy as np
import triton_python_backend_utils as pb_utils

from models import Sentences


class TritonPythonModel:
    def initialize(self, args):
        sentences = Sentences(os.environ["PEERS_WORKLOAD"])
        if args["model_name"] == "tokenizer":
            sentences.load_tokenizer()
            self.inputs, self.outputs, self.run = ["TEXT"], ["input_ids", "attention_mask", "token_type_ids"], sentences.tokenize
        elif args["model_name"] == "minilm":
            sentences.load_encoder()
            self.inputs, self.outputs = ["input_ids", "attention_mask", "token_type_ids"], ["last_hidden_state"]
            self.run = lambda *arrays: [sentences.encode(*arrays)]
        else:
            self.inputs, self.outputs = ["last_hidden_state", "attention_mask"], ["embedding"]
            self.run = lambda *arrays: [sentences.pool(*arrays)]

    def execute(self, requests):
        inputs = [[pb_utils.get_input_tensor_by_name(r, name).as_numpy() for name in self.inputs] for r in requests]
        outputs = self.run(*(np.concatenate(arrays) for arrays in zip(*inputs)))
        responses, row = [], 0
        for arrays in inputs:
            rows = len(arrays[0])
            tensors = [pb_utils.Tensor(name, np.ascontiguousarray(a[row : row + rows])) for name, a in zip(self.outputs, outputs)]
            responses.append(pb_utils.InferenceResponse(tensors))
            row += rows
        return responses
