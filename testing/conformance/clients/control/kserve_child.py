# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A predictor and a transformer that use the kserve package."""
import argparse

import kserve
import numpy as np
from kserve import model_server
from kserve.utils.utils import generate_uuid

parser = argparse.ArgumentParser(parents=[model_server.parser])
parser.add_argument("--role", default="predictor")
parser.add_argument("--factor", type=float, default=1.0)
options, _ = parser.parse_known_args()


def rows_of(payload):
    if isinstance(payload, kserve.InferRequest):
        return payload.inputs[0].as_numpy().astype(np.float32)
    return np.array(payload["instances"], np.float32)


class Adder(kserve.Model):
    """Sums rows."""

    def predict(self, payload, headers=None, response_headers=None):
        sums = (rows_of(payload) * options.factor).sum(axis=1).astype(np.float64)
        if not isinstance(payload, kserve.InferRequest):
            return {"predictions": sums.tolist()}
        output = kserve.InferOutput("output-0", list(sums.shape), "FP64")
        output.set_data_from_numpy(sums, binary_data=False)
        # As KServe's own servers do: the response must have an id.
        return kserve.InferResponse(payload.id or generate_uuid(), self.name, [output])


class Scaler(kserve.Model):
    """Scales the inputs, for all combinations of client and predictor protocol."""

    async def preprocess(self, payload, headers=None):
        scaled = rows_of(payload) * options.factor
        if headers is not None:
            headers["x-came-as"] = "v2" if isinstance(payload, kserve.InferRequest) else "v1"
        if options.predictor_protocol == "v1":
            return {"instances": scaled.tolist()}
        tensor = kserve.InferInput("input", list(scaled.shape), "FP32")
        tensor.set_data_from_numpy(scaled, binary_data=False)
        return kserve.InferRequest(self.name, [tensor])

    async def postprocess(self, result, headers=None, response_headers=None):
        came = (headers or {}).get("x-came-as", "v2")
        if isinstance(result, dict):
            labels = [p["label"][0] for p in result["predictions"]]
        else:
            labels = np.ravel(next(o for o in result.outputs if o.name == "label").as_numpy()).tolist()
        if came == "v1":
            return {"predictions": labels}
        output = kserve.InferOutput("label", [len(labels)], "INT64", labels)
        return kserve.InferResponse("1", self.name, [output])


model = {"predictor": Adder, "transformer": Scaler}[options.role](options.model_name)
model.ready = True
kserve.ModelServer(workers=1).start([model])
