# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A service of BentoML with a worker for each core, as its documents have it; the request is a JSON object with a list for
each input, or a form with the tensors' bytes as a file, which BentoML writes to a directory of its own.
"""

import json
import os
import pathlib
import typing

import bentoml

from models import Model, copies


@bentoml.service(workers=int(os.environ["PEERS_CORES"]), traffic={"timeout": 30})
class Service:
    def __init__(self) -> None:
        self.model = Model()
        self.further = {name: Model() for name in copies()}

    @bentoml.api(route="/predict")
    def predict(self, root: dict, /) -> dict:
        return self.model.columns(root)

    @bentoml.api(route="/raw")
    def raw(self, tensors: pathlib.Path) -> typing.Annotated[bytes, bentoml.validators.ContentType("application/octet-stream")]:
        return self.model.raw(tensors.read_bytes())

    @bentoml.api(route="/further")
    def predict_further(self, root: dict, /) -> dict:
        return self.further[root["model"]].columns(root)

    @bentoml.api(route="/stream")
    async def stream(self, text_input: str) -> typing.AsyncGenerator[str, None]:
        for text in self.model.tokens(text_input):
            yield f"data: {json.dumps({'text_output': text})}\n\n"
