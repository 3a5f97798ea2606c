# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A custom container's program for the inference protocol over gRPC: a predictor that sums rows, or a transformer."""
import argparse
import os
from concurrent import futures

import grpc
import numpy as np
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc as stubs

# In a pod the program is called from other machines.
ADDRESS = "0.0.0.0" if "KUBERNETES_SERVICE_HOST" in os.environ else "127.0.0.1"
parser = argparse.ArgumentParser()
parser.add_argument("--role", default="predictor")
parser.add_argument("--grpc_port", type=int, default=int(os.environ.get("PORT", "8081")))
parser.add_argument("--model_name", default=os.environ.get("INFERENCE_SERVICE_NAME", "model"))
parser.add_argument("--predictor_host")
parser.add_argument("--factor", type=float, default=1.0)
parser.add_argument("--code", default="OK")
options, _ = parser.parse_known_args()

TYPES = {"FP32": np.float32, "FP64": np.float64}


class Service(stubs.GRPCInferenceServiceServicer):
    def __init__(self):
        if options.role == "transformer":
            # A host without a port is at 80, as for the kserve package.
            host = options.predictor_host if ":" in options.predictor_host else options.predictor_host + ":80"
            self.predictor = stubs.GRPCInferenceServiceStub(grpc.insecure_channel(host))

    def ServerLive(self, request, context):
        return pb.ServerLiveResponse(live=True)

    def ServerReady(self, request, context):
        return pb.ServerReadyResponse(ready=True)

    def ModelReady(self, request, context):
        return pb.ModelReadyResponse(ready=True)

    def ModelInfer(self, request, context):
        context.send_initial_metadata((("x-process", str(os.getpid())),))
        if options.code != "OK":
            context.abort(getattr(grpc.StatusCode, options.code), "as asked")
        tensor = request.inputs[0]
        if request.raw_input_contents:
            values = np.frombuffer(request.raw_input_contents[0], TYPES[tensor.datatype])
        else:
            values = np.array(tensor.contents.fp32_contents or tensor.contents.fp64_contents)
        values = values.reshape(tensor.shape) * options.factor
        if options.role == "transformer":
            inner = pb.ModelInferRequest(model_name=options.model_name, id=request.id)
            inner.inputs.add(name=tensor.name, datatype="FP32", shape=tensor.shape)
            inner.raw_input_contents.append(values.astype(np.float32).tobytes())
            try:
                return self.predictor.ModelInfer(inner, timeout=30)
            except grpc.RpcError as e:
                context.abort(e.code(), e.details())
        sums = values.sum(axis=1)
        answer = pb.ModelInferResponse(model_name=options.model_name, id=request.id)
        answer.outputs.add(name="output-0", datatype="FP64", shape=[len(sums)])
        answer.raw_output_contents.append(sums.astype(np.float64).tobytes())
        return answer


server = grpc.server(futures.ThreadPoolExecutor(8))
stubs.add_GRPCInferenceServiceServicer_to_server(Service(), server)
server.add_insecure_port(f"{ADDRESS}:{options.grpc_port}")
server.start()
print("listening on", options.grpc_port, flush=True)
server.wait_for_termination()
