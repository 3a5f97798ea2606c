# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A service of BentoML with a worker for each core, as its documents have it; the request is a JSON object with a list for each input."""

import os

import bentoml

from models import Model


@bentoml.service(workers=int(os.environ["PEERS_CORES"]), traffic={"timeout": 30})
class Service:
    def __init__(self) -> None:
        self.model = Model()

    @bentoml.api(route="/predict")
    def predict(self, root: dict, /) -> dict:
        return self.model.columns(root)
