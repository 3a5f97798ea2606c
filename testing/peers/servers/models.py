# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
What the servers in Python have in common: the model of a workload, called with one array for each input. One thread for each run, as
in all servers of the comparison. PEERS_WORKLOAD names the directory that tools/make_models.py has written.
"""

import json
import os
import pathlib

import numpy as np

TYPES = {"INT32": np.dtype(np.int32), "INT64": np.dtype(np.int64), "FP32": np.dtype(np.float32)}


class Model:
    """The model of a workload. Instances may be called by several threads."""

    def __init__(self, directory=None):
        directory = pathlib.Path(directory or os.environ["PEERS_WORKLOAD"])
        self.spec = json.loads((directory / "spec.json").read_text(encoding="utf-8"))
        self.inputs, self.outputs = self.spec["inputs"], self.spec["outputs"]
        self.run = getattr(self, "_" + self.spec["kind"])(directory / self.spec["file"])

    @staticmethod
    def dtype(tensor):
        return TYPES[tensor["datatype"]]

    def _onnx(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        ins, outs = [t["name"] for t in self.inputs], [t["name"] for t in self.outputs]
        return lambda arrays: session.run(outs, dict(zip(ins, arrays)))

    def _python(self, _):
        return lambda arrays: [arrays[0] + arrays[1], arrays[0] - arrays[1]]

    def _sklearn(self, path):
        import joblib

        model = joblib.load(path)
        model.n_jobs = 1
        return lambda arrays: [model.predict(arrays[0])]

    def _xgboost(self, path):
        import xgboost

        model = xgboost.Booster({"nthread": 1}, model_file=path)
        return lambda arrays: [model.inplace_predict(arrays[0])]

    def columns(self, values):
        """Runs with a JSON object of one nested list for each input; the same for the outputs."""
        arrays = [np.asarray(values[t["name"]], self.dtype(t)) for t in self.inputs]
        return {t["name"]: a.tolist() for t, a in zip(self.outputs, self.run(arrays))}

    def split(self, body):
        """The inputs in the bytes of a request: their values behind each other, in the shapes of the workload."""
        arrays, offset = [], 0
        for tensor in self.inputs:
            count = int(np.prod(tensor["shape"]))
            arrays.append(np.frombuffer(body, self.dtype(tensor), count, offset).reshape(tensor["shape"]))
            offset += arrays[-1].nbytes
        return arrays

    def raw(self, body):
        """Runs with such bytes; the bytes of the outputs."""
        return b"".join(np.ascontiguousarray(a).tobytes() for a in self.run(self.split(body)))
