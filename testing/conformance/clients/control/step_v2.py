# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A graph step with the V2 protocol, over REST or gRPC only: its outputs are its inputs, multiplied, and the received metadata."""
import argparse
import json
import os
import time

# In a pod the program is called from other machines.
ADDRESS = "0.0.0.0" if "KUBERNETES_SERVICE_HOST" in os.environ else "127.0.0.1"
parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8080")))
parser.add_argument("--factor", type=float, default=1.0)
parser.add_argument("--delay", type=float, default=0.0)
parser.add_argument("--grpc", action="store_true")
parser.add_argument("--note", help="a file that gets a line when a request begins and when it is done")
options, _ = parser.parse_known_args()
SEEN = ("traceparent", "x-team", "x-secret", "x-request-id")


def note(line):
    if options.note:
        with open(options.note, "a") as f:
            f.write(line + "\n")


def wait():
    note("begun")
    time.sleep(options.delay)
    note("done")


def scaled(tensor):
    if tensor["datatype"] in ("BYTES", "BOOL"):
        return tensor
    data = [options.factor * x for x in tensor["data"]]
    return {**tensor, "data": data if tensor["datatype"].startswith("FP") else [int(x) for x in data]}


def rest():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, status, answer):
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply(200, {})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
            wait()
            if "inputs" not in body:
                return self.reply(400, {"error": "no inputs"})
            seen = {name: self.headers[name] for name in SEEN if self.headers[name]}
            asked = {"asked." + k: v for k, v in body.get("parameters", {}).items()}
            self.reply(200, {
                "model_name": self.path.split("/")[3], "model_version": "1", "id": body.get("id", ""),
                "parameters": {**seen, **asked}, "outputs": [scaled(t) for t in body["inputs"]]})

    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer((ADDRESS, options.port), Handler).serve_forever()


def grpc_only():
    from concurrent import futures

    import grpc
    from tritonclient.grpc import service_pb2 as pb
    from tritonclient.grpc import service_pb2_grpc as stubs
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    class Service(stubs.GRPCInferenceServiceServicer):
        def ServerReady(self, request, context):
            return pb.ServerReadyResponse(ready=True)

        def ModelReady(self, request, context):
            return pb.ModelReadyResponse(ready=True)

        def ModelInfer(self, request, context):
            wait()
            metadata = dict(context.invocation_metadata())
            answer = pb.ModelInferResponse(model_name=request.model_name, model_version="1", id=request.id)
            for name in SEEN:
                if name in metadata:
                    answer.parameters[name].string_param = metadata[name]
            for name, value in request.parameters.items():
                answer.parameters["asked." + name].CopyFrom(value)
            if request.parameters["refuse"].bool_param:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "as asked")
            for i, tensor in enumerate(request.inputs):
                output = answer.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
                if request.raw_input_contents:
                    raw = request.raw_input_contents[i]
                    if tensor.datatype != "BYTES":
                        kind = triton_to_np_dtype(tensor.datatype)
                        raw = (options.factor * np.frombuffer(raw, kind)).astype(kind).tobytes()
                    answer.raw_output_contents.append(raw)
                else:
                    output.contents.CopyFrom(tensor.contents)
                    for field in ("fp32_contents", "fp64_contents"):
                        values = getattr(output.contents, field)
                        values[:] = [options.factor * x for x in values]
            return answer

    server = grpc.server(futures.ThreadPoolExecutor(8))
    stubs.add_GRPCInferenceServiceServicer_to_server(Service(), server)
    assert server.add_insecure_port(f"{ADDRESS}:{options.port}") == options.port
    server.start()
    server.wait_for_termination()


print("listening on", options.port, flush=True)
grpc_only() if options.grpc else rest()
