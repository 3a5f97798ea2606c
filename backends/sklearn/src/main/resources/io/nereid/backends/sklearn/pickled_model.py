# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves a pickled model with the Python backend. Loading the file runs its code: serve only a file that you trust."""
import os

import numpy as np
import triton_python_backend_utils as pb_utils

FILE = "@FILE@"


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        config.add_input({"name": "input-0", "data_type": "TYPE_FP64", "dims": [-1, -1]})
        config.add_output({"name": "predict", "data_type": "TYPE_FP64", "dims": [-1]})
        return config

    def initialize(self, args):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), FILE)
        try:
            import joblib

            self.model = joblib.load(path)
        except ImportError:
            import pickle

            with open(path, "rb") as file:
                self.model = pickle.load(file)

    def execute(self, requests):
        responses = []
        for request in requests:
            rows = pb_utils.get_input_tensor_by_name(request, "input-0").as_numpy()
            answer = np.asarray(self.model.predict(rows))
            if answer.dtype.kind == "U":
                answer = answer.astype(object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("predict", answer)]))
        return responses
