# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves an MLflow model through mlflow.pyfunc with the Python backend. Its code runs: serve only a model that you trust."""
import os

import mlflow.pyfunc
import numpy as np
import triton_python_backend_utils as pb_utils

# The names and types of the inputs, by the model's signature; with COLUMNS they are those of a data frame.
INPUTS = [@INPUTS@]
COLUMNS = @COLUMNS@


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        for name, kind in INPUTS:
            config.add_input({"name": name, "data_type": kind, "dims": [-1] if COLUMNS else [-1, -1]})
        config.add_output({"name": "predict", "data_type": "TYPE_FP64", "dims": [-1]})
        return config

    def initialize(self, args):
        self.model = mlflow.pyfunc.load_model(os.path.dirname(os.path.abspath(__file__)))

    def execute(self, requests):
        responses = []
        for request in requests:
            given = {}
            for name, kind in INPUTS:
                values = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
                if kind == "TYPE_STRING":
                    values = np.vectorize(lambda v: v.decode(), otypes=[object])(values)
                given[name] = values
            if COLUMNS:
                import pandas

                given = pandas.DataFrame(given)
            elif len(given) == 1:
                given = next(iter(given.values()))
            answer = np.asarray(self.model.predict(given))
            if answer.dtype.kind == "U":
                answer = answer.astype(object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("predict", answer)]))
        return responses
