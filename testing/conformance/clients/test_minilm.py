# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A real model: similar sentences have similar embeddings."""
import json

import numpy as np
import pytest

from server import EXAMPLES

tokenizers = pytest.importorskip("tokenizers")


def test_sentences_of_like_meaning_are_near(server):
    if not (EXAMPLES / "minilm" / "1" / "model.onnx").exists():
        pytest.skip("minilm has not been fetched")
    tokenizer = tokenizers.Tokenizer.from_file(str(EXAMPLES / "minilm" / "tokenizer.json"))
    tokenizer.no_padding()

    def embed(sentence):
        encoded = tokenizer.encode(sentence)
        parts = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        body = {"inputs": [{"name": n, "datatype": "INT64", "shape": [1, len(v)], "data": v} for n, v in parts.items()]}
        status, _, reply = server.ask("POST", "/v2/models/minilm/infer", json.dumps(body))
        assert status == 200, reply
        output = json.loads(reply)["outputs"][0]
        mean = np.array(output["data"]).reshape(output["shape"])[0].mean(axis=0)
        return mean / np.linalg.norm(mean)

    eating = embed("A man is eating food.")
    assert embed("Someone is having a meal.") @ eating == pytest.approx(0.672, abs=0.03)
    assert abs(embed("The stock market fell sharply today.") @ eating) < 0.2
