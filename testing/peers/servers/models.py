# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
What the servers in Python have in common: the model of a workload, called with one array for each input. One thread for each run, as
in all servers of the comparison. PEERS_WORKLOAD names the directory that tools/make_models.py has written, PEERS_LIBRARY the packages
of the library that the model is of, where the server's environment does not have them.
"""

import json
import os
import pathlib
import sys
import threading
import warnings

import numpy as np

TYPES = {"INT32": np.dtype(np.int32), "INT64": np.dtype(np.int64), "FP32": np.dtype(np.float32), "BYTES": np.dtype(object)}

if os.environ.get("PEERS_LIBRARY"):
    # Behind the server's own packages, so that numpy and others stay as the server has them.
    sys.path.append(os.environ["PEERS_LIBRARY"])


def text(value):
    """A text that a server passes as text or as bytes in UTF-8."""
    return value.decode() if isinstance(value, bytes) else str(value)


def onnx_session(path):
    """A session of ONNX Runtime with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Sentences:
    """The three steps from texts to their embeddings: word pieces, vectors of the words, and their mean of length one."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def load_tokenizer(self):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(self.directory / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding(pad_to_multiple_of=8)

    def load_encoder(self):
        self.session = onnx_session(self.directory / "model.onnx")

    def tokenize(self, texts):
        """Word pieces, mask and types as arrays of a row for each text."""
        found = self.tokenizer.encode_batch([text(t) for t in np.asarray(texts, object).reshape(-1)])
        return [np.array([getattr(f, part) for f in found], np.int64) for part in ("ids", "attention_mask", "type_ids")]

    def encode(self, ids, mask, types):
        return self.session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": mask, "token_type_ids": types})[0]

    @staticmethod
    def pool(vectors, mask):
        mean = (vectors * mask[..., None]).sum(1) / np.maximum(mask.sum(1, keepdims=True), 1)
        return (mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)).astype(np.float32)

    def embed(self, texts):
        ids, mask, types = self.tokenize(texts)
        return self.pool(self.encode(ids, mask, types), mask)


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
        session = onnx_session(path)
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

    def _torchscript(self, path):
        import torch

        torch.set_num_threads(1)
        # An array over the bytes of a request cannot be written, which PyTorch warns of; models only read it.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        model = torch.jit.load(path, map_location="cpu").eval()

        def run(arrays):
            with torch.inference_mode():
                return [model(*(torch.from_numpy(a) for a in arrays)).numpy()]

        return run

    def _tflite(self, path):
        from ai_edge_litert.interpreter import Interpreter

        interpreter, lock = Interpreter(str(path), num_threads=1), threading.Lock()
        run_signature = interpreter.get_signature_runner()
        ins, outs = [t["name"] for t in self.inputs], [t["name"] for t in self.outputs]

        def run(arrays):
            # An interpreter serves one call at a time.
            with lock:
                found = run_signature(**dict(zip(ins, arrays)))
            return [found[name] for name in outs]

        return run

    def _savedmodel(self, path):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        loaded = tf.saved_model.load(str(path))
        function = loaded.signatures["serving_default"]
        # The function does not keep what it is of.
        function.loaded = loaded
        ins, outs = [t["name"] for t in self.inputs], [t["name"] for t in self.outputs]

        def run(arrays):
            found = function(**{name: tf.constant(a) for name, a in zip(ins, arrays)})
            return [found[name].numpy() for name in outs]

        return run

    def _ensemble(self, directory):
        sentences = Sentences(directory)
        sentences.load_tokenizer()
        sentences.load_encoder()
        return lambda arrays: [sentences.embed(arrays[0])]

    def _stream(self, _):
        return None

    def tokens(self, prompt):
        """The texts that a stream has: as many words as the workload says, one after the other, each with the prompt's length."""
        size = len(text(prompt))
        for i in range(self.spec["tokens"]):
            yield f"token {i} of {size} "

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


def copies():
    """The names of further models that a server is started with, each a copy of the workload's: PEERS_COPIES."""
    return [name for name in os.environ.get("PEERS_COPIES", "").split(",") if name]
