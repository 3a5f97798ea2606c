# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A custom model of KServe's server for Python, as its documents have it. The options are those of the server."""

import argparse
import functools

from kserve import InferOutput, InferResponse, Model, ModelServer, model_server

from models import Model as Workload
from models import copies


@functools.cache
def workload(name):
    """The workload of a model in this worker; the predictor itself is sent from the parent to its workers."""
    return Workload()


class Predictor(Model):
    def __init__(self, name):
        super().__init__(name)
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        model = workload(self.name)
        inputs = {i.name: i.as_numpy() for i in payload.inputs}
        arrays = model.run([inputs[t["name"]] for t in model.inputs])
        binary = bool(payload.use_binary_outputs)
        outputs = []
        for tensor, array in zip(model.outputs, arrays):
            output = InferOutput(name=tensor["name"], shape=list(array.shape), datatype=tensor["datatype"])
            output.set_data_from_numpy(array, binary_data=binary)
            outputs.append(output)
        return InferResponse(response_id=payload.id or "", model_name=self.name, infer_outputs=outputs, use_binary_outputs=binary)


if __name__ == "__main__":
    arguments, _ = argparse.ArgumentParser(parents=[model_server.parser]).parse_known_args()
    ModelServer(workers=arguments.workers).start([Predictor(name) for name in (arguments.model_name, *copies())])
