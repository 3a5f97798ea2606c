# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A custom runtime of MLServer for the models of the workloads, as its documents have it, with the NumPy codec."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse

from models import Model


class Runtime(MLModel):
    async def load(self) -> bool:
        self.model = Model()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        inputs = {i.name: NumpyCodec.decode_input(i) for i in payload.inputs}
        arrays = self.model.run([inputs[t["name"]].astype(self.model.dtype(t), copy=False) for t in self.model.inputs])
        outputs = [NumpyCodec.encode_output(t["name"], a) for t, a in zip(self.model.outputs, arrays)]
        return InferenceResponse(model_name=self.name, outputs=outputs)
