# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
LitServe: one inference worker and one API server for each core, as its documents have it; a model that batches does so with LitServe's
own batching. "litserve_server.py PORT WORKERS json|texts|batches|form|stream".
"""

import json
import sys

import litserve
import numpy as np
from starlette.responses import Response

from models import Model


class Columns(litserve.LitAPI):
    """JSON with a list for each input."""

    def setup(self, device):
        self.model = Model()

    def decode_request(self, request):
        return request

    def predict(self, values):
        return self.model.columns(values)

    def encode_response(self, output):
        return output


class Uploads(litserve.LitAPI):
    """The tensors' bytes as an uploaded file; in batches, the first dimension of each tensor is that of the rows."""

    def setup(self, device):
        self.model = Model()

    def decode_request(self, request):
        return self.model.split(request["tensors"].file.read())

    def batch(self, requests):
        return [np.concatenate(arrays) for arrays in zip(*requests)]

    def predict(self, arrays):
        return self.model.run(arrays)

    def unbatch(self, outputs):
        return [[a[i : i + 1] for a in outputs] for i in range(len(outputs[0]))]

    def encode_response(self, output):
        return Response(b"".join(np.ascontiguousarray(a).tobytes() for a in output), media_type="application/octet-stream")


class Texts(litserve.LitAPI):
    """JSON with a list of one text, run in batches."""

    def setup(self, device):
        self.model = Model()

    def decode_request(self, request):
        return request[self.model.inputs[0]["name"]]

    def batch(self, requests):
        return np.array(requests, object)

    def predict(self, texts):
        return self.model.run([texts])[0]

    def unbatch(self, output):
        return [output[i : i + 1] for i in range(len(output))]

    def encode_response(self, output):
        return {self.model.outputs[0]["name"]: output.tolist()}


class Events(litserve.LitAPI):
    """A stream of events."""

    def setup(self, device):
        self.model = Model()

    def decode_request(self, request):
        return request["text_input"]

    def predict(self, prompt):
        yield from self.model.tokens(prompt)

    def encode_response(self, output):
        for text in output:
            yield f"data: {json.dumps({'text_output': text})}\n\n"


APIS = {
    "json": lambda: Columns(api_path="/predict"),
    "texts": lambda: Texts(max_batch_size=16, batch_timeout=0.002, api_path="/predict"),
    "batches": lambda: Uploads(max_batch_size=16, batch_timeout=0.002, api_path="/raw"),
    # Tensors that are not of rows, each request by itself.
    "form": lambda: Uploads(api_path="/raw"),
    "stream": lambda: Events(stream=True, api_path="/stream"),
}

if __name__ == "__main__":
    port, workers = int(sys.argv[1]), int(sys.argv[2])
    api = APIS[sys.argv[3]]()
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=workers, fast_queue=True)
    server.run(host="127.0.0.1", port=port, num_api_servers=workers, log_level="warning", generate_client_file=False)
