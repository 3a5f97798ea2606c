# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves the folder of this file with Hugging Face's transformers and the Python backend: TEXT in, a JSON document out."""
import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils
from transformers import pipeline

TASK = "@TASK@"
# Code in the folder (auto_map of config.json) runs only when this is True: set it only if you trust the folder.
TRUST_REMOTE_CODE = False


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        config.add_input({"name": "TEXT", "data_type": "TYPE_STRING", "dims": [-1]})
        config.add_output({"name": "RESULT", "data_type": "TYPE_STRING", "dims": [-1]})
        return config

    def initialize(self, args):
        folder = os.path.dirname(os.path.abspath(__file__))
        self.pipeline = pipeline(TASK or None, model=folder, trust_remote_code=TRUST_REMOTE_CODE)

    def execute(self, requests):
        responses = []
        for request in requests:
            texts = [t.decode() for t in pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()]
            results = [json.dumps(self.pipeline(t), default=float) for t in texts]
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", np.array(results, dtype=object))]))
        return responses
