# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The check of testing/gpu/full.sh: python3 full.py NEREID FOLDER PROVIDER...

Makes two ONNX models, serves each with each provider (cpu, cuda, tensorrt, and plan: compiled by TensorRT's Python package before), and prints a table: the greatest difference of the answers to those of
the processor, what the instances run on, and the throughput beside a loop of ONNX Runtime in Python with the same provider.
"""

import http.client
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BATCH = 32
SECONDS = 5
NAMES = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider", "plan": "TensorrtExecutionProvider"}
# The greatest difference to the processor: TensorRT and CUDA may compute products of 32-bit floats in TF32.
MOST = {"cpu": 1e-5, "cuda": 2e-2, "tensorrt": 2e-2, "plan": 2e-2}
# What a provider is called in nereid.execution_providers.
PLACES = {"plan": "tensorrt"}
LEAST = {"cpu": 0.0, "cuda": 0.9, "tensorrt": 0.9, "plan": 0.0}
OPTIONS = {
    "cpu": "instance_group [{ kind: KIND_CPU count: 1 }]",
    "cuda": "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]\n"
    'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "cuda" }] } }',
    "tensorrt": "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]\n"
    'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "tensorrt" }] } }',
    "plan": "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]",
}


def mlp(random, width=1024, layers=4):
    """Dense layers with ReLU."""
    nodes, weights, last = [], [], "IN"
    for i in range(layers):
        weights.append(numpy_helper.from_array(random.normal(0, (2 / width) ** 0.5, (width, width)).astype("float32"), f"W{i}"))
        weights.append(numpy_helper.from_array(random.normal(0, 0.1, width).astype("float32"), f"B{i}"))
        out = "OUT" if i == layers - 1 else f"H{i}"
        nodes += [helper.make_node("Gemm", [last, f"W{i}", f"B{i}"], [f"G{i}"]), helper.make_node("Relu", [f"G{i}"], [out])]
        last = out
    return graph("mlp", nodes, weights, [width], [width]), (width,)


def cnn(random, channels=64, layers=4, size=56):
    """Convolutions with ReLU, and the mean of each channel."""
    nodes, weights, last, before = [], [], "IN", 3
    for i in range(layers):
        values = random.normal(0, (2 / (9 * before)) ** 0.5, (channels, before, 3, 3)).astype("float32")
        weights.append(numpy_helper.from_array(values, f"W{i}"))
        nodes += [helper.make_node("Conv", [last, f"W{i}"], [f"C{i}"], pads=[1, 1, 1, 1]), helper.make_node("Relu", [f"C{i}"], [f"R{i}"])]
        last, before = f"R{i}", channels
    nodes += [helper.make_node("GlobalAveragePool", [last], ["P"]), helper.make_node("Flatten", ["P"], ["OUT"])]
    return graph("cnn", nodes, weights, [3, size, size], [channels]), (3, size, size)


def graph(name, nodes, weights, inside, outside):
    made = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("IN", TensorProto.FLOAT, ["batch"] + inside)],
        [helper.make_tensor_value_info("OUT", TensorProto.FLOAT, ["batch"] + outside)],
        weights,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def plan(model, shape):
    """The bytes of a TensorRT plan for batches of one to BATCH rows."""
    import tensorrt

    log = tensorrt.Logger(tensorrt.Logger.WARNING)
    builder = tensorrt.Builder(log)
    network = builder.create_network(0)
    parser = tensorrt.OnnxParser(network, log)
    if not parser.parse(model.SerializeToString()):
        raise RuntimeError(f"TensorRT cannot read the ONNX model: {parser.get_error(0)}")
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("IN", (1,) + shape, (BATCH,) + shape, (BATCH,) + shape)
    config.add_optimization_profile(profile)
    compiled = builder.build_serialized_network(network, config)
    if compiled is None:
        raise RuntimeError("TensorRT cannot compile the ONNX model")
    return bytes(compiled)


def store(place, provider, model, shape):
    """Writes a model and its configuration."""
    (place / "1").mkdir(parents=True, exist_ok=True)
    start = f"max_batch_size: {BATCH}\n{OPTIONS[provider]}\n"
    if provider != "plan":
        onnx.save(model, place / "1" / "model.onnx")
        (place / "config.pbtxt").write_text(f'backend: "onnxruntime"\n{start}')
        return
    (place / "1" / "model.plan").write_bytes(plan(model, shape))
    outside = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    tensors = [("input", "IN", shape), ("output", "OUT", (outside,))]
    lines = [f'{side} {{ name: "{name}" data_type: TYPE_FP32 dims: {list(dims)} }}\n' for side, name, dims in tensors]
    (place / "config.pbtxt").write_text('platform: "tensorrt_plan"\n' + start + "".join(lines))


class Server:
    """A server on a free port, until it is closed."""

    def __init__(self, nereid, models, log):
        self.log = open(log, "w")
        command = [nereid, "serve", str(models), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            self.log.write(line)
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                threading.Thread(target=lambda: [self.log.write(rest) for rest in self.process.stdout], daemon=True).start()
                return
        sys.exit(f"the server did not start; see {log}")

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def get(self, path):
        link = self.connection()
        link.request("GET", path)
        answer = link.getresponse()
        return answer.status, answer.read().decode()

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def infer(link, name, rows):
    head = json.dumps(
        {
            "inputs": [{"name": "IN", "datatype": "FP32", "shape": rows.shape, "parameters": {"binary_data_size": rows.nbytes}}],
            "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}],
        }
    ).encode()
    link.request("POST", f"/v2/models/{name}/infer", head + rows.tobytes(), {"Inference-Header-Content-Length": str(len(head))})
    answer = link.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {body.decode(errors='replace')[:300]}")
    return numpy.frombuffer(body[int(answer.headers["Inference-Header-Content-Length"]) :], "float32").reshape(rows.shape[0], -1)


def rate(threads, work):
    """How often the functions that work makes run each second, one in each thread."""
    counts, errors = [0] * threads, []
    end = time.monotonic() + SECONDS

    def loop(i):
        try:
            run = work()
            while time.monotonic() < end:
                run()
                counts[i] += 1
        except Exception as error:
            errors.append(error)

    all_threads = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
    start = time.monotonic()
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts) / (time.monotonic() - start)


def served(server, name, rows):
    def work():
        link = server.connection()
        return lambda: infer(link, name, rows)

    infer(server.connection(), name, rows)
    return rate(4, work)


def loop(file, provider, rows):
    """ONNX Runtime without a server: two sessions on a GPU, as the served model has two instances; one on processors."""
    count = 1 if provider == "cpu" else 2

    def work():
        session = onnxruntime.InferenceSession(str(file), providers=list(dict.fromkeys([NAMES[provider], NAMES["cpu"]])))
        if session.get_providers()[0] != NAMES[provider]:
            raise RuntimeError(f"ONNX Runtime's Python package does not have {NAMES[provider]}")
        session.run(None, {"IN": rows})
        return lambda: session.run(None, {"IN": rows})

    return rate(count, work)


def main():
    nereid, folder, providers = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    random = numpy.random.default_rng(1)
    failed, lines = False, []
    for kind in (mlp, cnn):
        model, shape = kind(random)
        rows = random.normal(0, 1, (BATCH,) + shape).astype("float32")
        for provider in providers:
            place = folder / "models" / f"{kind.__name__}_{provider}"
            try:
                store(place, provider, model, shape)
            except (ImportError, RuntimeError) as error:
                # The server then has no such model, which is a row that has failed.
                print(f"{place.name}: {error}", file=sys.stderr)
        file = folder / f"{kind.__name__}.onnx"
        onnx.save(model, file)
        expected = onnxruntime.InferenceSession(str(file), providers=[NAMES["cpu"]]).run(None, {"IN": rows})[0]
        server = Server(nereid, folder / "models", folder / f"server-{kind.__name__}.log")
        try:
            for provider in providers:
                name = f"{kind.__name__}_{provider}"
                try:
                    difference = float(numpy.abs(infer(server.connection(), name, rows) - expected).max())
                    runs, plain = served(server, name, rows), loop(file, provider, rows)
                    config = json.loads(server.get(f"/v2/models/{name}/config")[1])
                    on = config.get("parameters", {}).get("nereid.execution_providers", {}).get("string_value", "cpu")
                    right = difference <= MOST[provider] and runs >= LEAST[provider] * plain and (provider == "cpu" or f": {PLACES.get(provider, provider)}" in on)
                    measured = f"{difference:.1e} | {runs:.0f} of {plain:.0f} runs/s, {runs / plain:.2f} | {on}"
                except (RuntimeError, OSError) as error:
                    right, measured = False, f"{error} | | "
                failed |= not right
                lines.append(f"| {kind.__name__} | {provider} | {measured} | {'passed' if right else 'FAILED'} |")
                print(lines[-1], flush=True)
        finally:
            server.close()
    print("\n| model | provider | difference to the processor | throughput beside a plain loop | runs on | |\n|---|---|---|---|---|---|")
    print("\n".join(lines))
    sys.exit(1 if failed else 0)


main()
