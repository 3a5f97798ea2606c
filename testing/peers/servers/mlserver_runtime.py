# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A custom runtime of MLServer for the models of the workloads, as its documents have it, with the NumPy codec, and that of texts."""

from typing import AsyncIterator

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

from models import Model


class Runtime(MLModel):
    async def load(self) -> bool:
        self.model = Model()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        inputs = {i.name: self.array(i) for i in payload.inputs}
        arrays = self.model.run([inputs[t["name"]].astype(self.model.dtype(t), copy=False) for t in self.model.inputs])
        outputs = [NumpyCodec.encode_output(t["name"], a) for t, a in zip(self.model.outputs, arrays)]
        return InferenceResponse(model_name=self.name, outputs=outputs)

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            for text in self.model.tokens(StringCodec.decode_input(payload.inputs[0])[0]):
                yield InferenceResponse(model_name=self.name, outputs=[StringCodec.encode_output("text_output", [text])])

    @staticmethod
    def array(tensor):
        """The values of an input: of texts an array of one column."""
        if tensor.datatype == "BYTES":
            return np.array(StringCodec.decode_input(tensor), object).reshape(-1, 1)
        return NumpyCodec.decode_input(tensor)
