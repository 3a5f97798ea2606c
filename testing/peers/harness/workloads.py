# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The workloads: a model, one request to it in every form that a peer takes, and the check of an answer."""

import array
import json
import os
import struct
import subprocess

from . import protobuf
from .environments import Environment
from .places import HERE, ROOT, TARGET, Unavailable, last_line

TREES = ("forest", "boosted")
CODES = {"INT32": "i", "INT64": "q", "FP32": "f"}
GRPC = {"content-type": "application/grpc", "te": "trailers"}
#: The environment of the library that the model of a workload is of, where that is too large or too special for each peer's own.
LIBRARIES = {"torchscript": "torch", "tflite": "tflite", "savedmodel": "tensorflow", "ensemble": "text"}
#: The environment whose Python makes the model of a workload, where that is not "tools".
MAKERS = {"torchscript": "torch", "tflite": "tensorflow", "savedmodel": "tensorflow"}
#: Those with the weights of MiniLM, which the build fetches.
MINILM = ("encoder", "ensemble")


class WrongAnswer(ValueError):
    """An answer that is not the right one."""


class Tensor:
    """A tensor with its values as little-endian bytes; dims is what the model declares, without the dimension of a batch."""

    def __init__(self, described, raw):
        self.name, self.datatype, self.shape, self.raw = described["name"], described["datatype"], described["shape"], raw
        self.dims = described["dims"]
        self.values = texts(raw) if self.datatype == "BYTES" else array.array(CODES[self.datatype], raw)

    def nested(self):
        """The values as nested lists in the tensor's shape."""
        values = list(self.values)
        for size in reversed(self.shape[1:]):
            values = [values[i : i + size] for i in range(0, len(values), size)]
        return values


def texts(raw):
    """Texts in the bytes of a tensor, each behind its length."""
    found, offset = [], 0
    while offset < len(raw):
        (size,) = struct.unpack_from("<I", raw, offset)
        found.append(raw[offset + 4 : offset + 4 + size].decode())
        offset += 4 + size
    return found


class Request:
    """What a load generator sends again and again. The path of a gRPC request is its method; its body has the message's prefix."""

    def __init__(self, path, body, headers, decode, grpc=False):
        self.path, self.body, self.headers, self.decode, self.grpc = path, body, headers, decode, grpc


class Workload:
    """A model in a directory, with one request and the right answer to it."""

    def __init__(self, name):
        self.name, self.directory, self.library = name, TARGET / "models" / name, None
        spec = json.loads((self.directory / "spec.json").read_text(encoding="utf-8"))
        self.kind, self.file, self.max_batch_size, self.tolerance = spec["kind"], spec["file"], spec["max_batch_size"], spec["tolerance"]
        self.tokens = spec.get("tokens", 0)
        self.inputs, self.outputs = (
            [Tensor(t, (self.directory / f"{t['name']}.{suffix}.bin").read_bytes()) for t in spec[key]] for key, suffix in (("inputs", "in"), ("outputs", "out"))
        )

    def check(self, answers):
        """Compares lists of values, one for each output in their order, with the right ones."""
        if len(answers) != len(self.outputs):
            raise WrongAnswer(f"{self.name}: {len(answers)} outputs, expected {len(self.outputs)}")
        for tensor, values in zip(self.outputs, answers):
            values = flat(values)
            if len(values) != len(tensor.values):
                raise WrongAnswer(f"{self.name}: {tensor.name} has {len(values)} values, expected {len(tensor.values)}")
            for i, (value, right) in enumerate(zip(values, tensor.values)):
                if not abs(value - right) <= self.tolerance:
                    raise WrongAnswer(f"{self.name}: {tensor.name}[{i}] is {value}, expected {right} within {self.tolerance}")

    def check_stream(self, events):
        """Compares the texts of a stream with the right ones."""
        size = len(self.inputs[0].values[0])
        right = [f"token {i} of {size} " for i in range(self.tokens)]
        if events != right:
            wrong = next((i for i, pair in enumerate(zip(events, right)) if pair[0] != pair[1]), min(len(events), len(right)))
            found = repr(events[wrong]) if wrong < len(events) else "missing"
            raise WrongAnswer(f"{self.name}: {len(events)} events, expected {len(right)}; event {wrong} is {found}")

    def prompt(self, path):
        """A request of Triton's generate extension, which the servers with an interface of their own take as well. The answer is a stream."""
        body = compact({t.name: t.values[0] for t in self.inputs})
        return Request(path, body, {"Content-Type": "application/json"}, lambda body, _: events(body, self.outputs[0].name))

    def open_inference(self, binary, model):
        """The REST request of the Open Inference Protocol, with its extension for binary tensors or as JSON."""
        path, inputs = f"/v2/models/{model}/infer", []
        for t in self.inputs:
            described = {"name": t.name, "shape": t.shape, "datatype": t.datatype}
            inputs.append(described | ({"parameters": {"binary_data_size": len(t.raw)}} if binary else {"data": list(t.values)}))
        if not binary:
            return Request(path, compact({"inputs": inputs}), {"Content-Type": "application/json"}, lambda body, _: self.from_json(json.loads(body)))
        head = compact({"inputs": inputs, "parameters": {"binary_data_output": True}})
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}
        return Request(path, head + b"".join(t.raw for t in self.inputs), headers, self.from_binary)

    def from_json(self, answer):
        by_name = {o["name"]: o["data"] for o in answer["outputs"]}
        return [by_name[t.name] if t.name in by_name else answer["outputs"][i]["data"] for i, t in enumerate(self.outputs)]

    def from_binary(self, body, headers):
        length = headers.get("inference-header-content-length")
        if length is None:
            return self.from_json(json.loads(body))
        found, offset = [], int(length)
        for output in json.loads(body[:offset])["outputs"]:
            size = output["parameters"]["binary_data_size"]
            found.append({"name": output["name"], "data": array.array(CODES[output["datatype"]], body[offset : offset + size])})
            offset += size
        return self.from_json({"outputs": found})

    def grpc(self, model):
        """The gRPC request of the Open Inference Protocol, with raw contents."""
        body = protobuf.infer_request(model, [(t.name, t.datatype, t.shape, t.raw) for t in self.inputs])
        return Request("/inference.GRPCInferenceService/ModelInfer", protobuf.framed(body), GRPC, self.from_grpc, grpc=True)

    def from_grpc(self, body, _):
        found = [{"name": name, "data": array.array(CODES[datatype], raw)} for name, datatype, raw in protobuf.infer_response(body)]
        return self.from_json({"outputs": found})

    def predict(self, model):
        """The gRPC request of TensorFlow Serving."""
        body = protobuf.predict_request(model, [(t.name, t.datatype, t.shape, t.raw) for t in self.inputs])

        def decode(body, _):
            by_name = protobuf.predict_response(body)
            return [array.array(t.values.typecode, by_name[t.name]) for t in self.outputs]

        return Request("/tensorflow.serving.PredictionService/Predict", protobuf.framed(body), GRPC, decode, grpc=True)

    def columns(self, path, more=None):
        """JSON with a nested list for each input, for servers with an interface of their own, and what else one of them takes."""
        body = compact({t.name: t.nested() for t in self.inputs} | (more or {}))
        return Request(path, body, {"Content-Type": "application/json"}, lambda body, _: [json.loads(body)[t.name] for t in self.outputs])

    def raw(self, path):
        """The bytes of all inputs behind each other, answered with those of the outputs, for such servers."""
        return Request(path, b"".join(t.raw for t in self.inputs), {"Content-Type": "application/octet-stream"}, lambda body, _: self.from_raw(body))

    def form(self, path):
        """The same bytes as an uploaded file of a form."""
        head = '--peers\r\nContent-Disposition: form-data; name="tensors"; filename="tensors"\r\nContent-Type: application/octet-stream\r\n\r\n'
        body = head.encode() + b"".join(t.raw for t in self.inputs) + b"\r\n--peers--\r\n"
        return Request(path, body, {"Content-Type": "multipart/form-data; boundary=peers"}, lambda body, _: self.from_raw(body))

    def from_raw(self, body):
        found, offset = [], 0
        for t in self.outputs:
            found.append(array.array(t.values.typecode, body[offset : offset + len(t.raw)]))
            offset += len(t.raw)
        return found


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def flat(values):
    """The numbers in nested lists."""
    while len(values) and isinstance(values[0], list):
        values = [v for inner in values for v in inner]
    return values


def events(body, name):
    """The texts of server-sent events: of a JSON object the value of a name, of an answer of Open Inference that of its first output."""
    found = []
    for line in body.decode().splitlines():
        if line.startswith("data:"):
            event = json.loads(line[5:])
            if "outputs" in event:
                event = {name: event["outputs"][0]["data"]}
            if name not in event:
                raise ValueError(f"an event without {name}: {line[:200]}")
            value = event[name]
            found.append(value[0] if isinstance(value, list) else value)
    return found


def make(tools, names, log):
    """
    Makes the models that are not there yet, or are older than the program that makes them. Returns the packages of their libraries by
    workload, and the reasons for which others cannot be had.
    """
    program = HERE / "tools/make_models.py"
    minilm = ROOT / "examples/models/minilm/1/model.onnx"
    libraries, unavailable = {}, {}
    for name in names:
        try:
            if name in MINILM and not minilm.exists():
                raise Unavailable(f"the build has not fetched {minilm.relative_to(ROOT)}")
            if name in LIBRARIES:
                libraries[name] = Environment(LIBRARIES[name], False, log).packages
            maker = Environment(MAKERS[name], False, log) if name in MAKERS else tools
        except Unavailable as e:
            unavailable[name] = e
            continue
        if stale(TARGET / "models" / name / "spec.json", program):
            log(f"making the model {name}")
            environment = {**os.environ, "PEERS_LIBRARY": str(libraries.get(name, ""))}
            done = subprocess.run([maker.program("python"), program, TARGET / "models", minilm, name], capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                unavailable[name] = f"its model could not be made: {last_line(done.stderr)}"
    return libraries, unavailable


def stale(made, program):
    return not made.exists() or made.stat().st_mtime < program.stat().st_mtime
