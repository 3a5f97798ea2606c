# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face's transformers with made-up weights: OpenAI's client for embeddings and models, the kserve SDK for V1 and V2, and
reranking over HTTP."""
import asyncio
import base64
import json
import zipfile

import numpy as np
import pytest

openai = pytest.importorskip("openai")
kserve = pytest.importorskip("kserve")
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

from server import ROOT, Server

MODELS = ROOT / "backends" / "huggingface" / "src" / "test" / "resources" / "models.zip"
FOLDERS = ["bert-embed", "sentence-mean", "cross-encoder", "bert-classify"]
TEXTS = ["the cat sat on the mat .", "i love it !"]


def expected(name):
    with zipfile.ZipFile(MODELS) as archive:
        return json.loads(archive.read(f"{name}/expected.json"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("huggingface")
    with zipfile.ZipFile(MODELS) as archive:
        for name in FOLDERS:
            for file in archive.namelist():
                if file.startswith(name + "/") and not file.endswith("/"):
                    archive.extract(file, repository)
            (repository / name / "tokenizer.json").write_bytes(archive.read("wordpiece.json"))
    server = Server(repository)
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


@pytest.fixture(scope="module", params=["/v1", "/openai/v1"])
def client(request, server):
    with openai.OpenAI(base_url=f"http://{server.base}{request.param}", api_key="none", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("form", ["float", "base64", None])
@pytest.mark.parametrize("name", ["bert-embed", "sentence-mean"])
def test_embeddings_are_those_of_the_library(client, name, form):
    more = {"encoding_format": form} if form else {}  # without one the client sends base64, and decodes it
    answer = client.embeddings.create(model=name, input=TEXTS, **more)
    vectors = [d.embedding for d in answer.data]
    if form == "base64":
        vectors = [np.frombuffer(base64.b64decode(v), "<f4") for v in vectors]
    np.testing.assert_allclose(vectors, expected(name)["embedding"][:2], atol=1e-4)
    assert [d.index for d in answer.data] == [0, 1] and answer.model == name
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > len(TEXTS)


def test_one_text_many_texts_and_fewer_dimensions(client):
    one = client.embeddings.create(model="bert-embed", input=TEXTS[0]).data[0].embedding
    many = client.embeddings.create(model="bert-embed", input=TEXTS * 100).data
    assert [d.index for d in many] == list(range(200))
    np.testing.assert_allclose(many[198].embedding, one, atol=1e-5)
    short = np.array(client.embeddings.create(model="bert-embed", input=TEXTS[0], dimensions=4).data[0].embedding)
    np.testing.assert_allclose(short, np.array(one[:4]) / np.linalg.norm(one[:4]), atol=1e-5)


def test_the_models_with_a_task_are_listed(client):
    assert [m.id for m in client.models.list()] == ["bert-embed", "cross-encoder", "sentence-mean"]


def test_errors_are_those_of_the_client(client):
    with pytest.raises(openai.NotFoundError) as missing:
        client.embeddings.create(model="text-embedding-3-small", input="x")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="does not embed texts"):
        client.embeddings.create(model="bert-classify", input="x")
    with pytest.raises(openai.BadRequestError, match="at most"):
        client.embeddings.create(model="bert-embed", input="x", dimensions=4096)
    with pytest.raises(openai.BadRequestError, match="not in the vocabulary"):
        client.embeddings.create(model="bert-embed", input=[[791, 8415, 100257]])


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank", "/openai/v1/rerank"])
def test_documents_are_ranked(server, path):
    pairs, scores = expected("cross-encoder")["pairs"], expected("cross-encoder")["scores"]
    for (query, document), score in zip(pairs, scores):
        body = {"model": "cross-encoder", "query": query, "documents": [document, {"text": "mat"}], "top_n": 2}
        status, _, answer = server.ask("POST", path, json.dumps(body))
        assert status == 200, answer
        results = json.loads(answer)["results"]
        assert sorted(r["index"] for r in results) == [0, 1]
        assert results[0]["relevance_score"] >= results[1]["relevance_score"]
        own = next(r for r in results if r["index"] == 0)
        assert abs(own["relevance_score"] - score) < 1e-4
        assert own.get("document") == (None if path == "/v2/rerank" else {"text": document})


def test_the_kserve_sdk_reads_both_protocols(server):
    async def work():
        labels = {}
        rest = InferenceRESTClient(RESTConfig(protocol="v1"))
        answer = await rest.infer(f"http://{server.base}", {"instances": TEXTS}, model_name="bert-classify")
        labels["v1"] = [p["label"] for p in answer["predictions"]]
        rest = InferenceRESTClient(RESTConfig(protocol="v2"))
        texts = InferInput("TEXT", [2, 1], "BYTES", data=[[t] for t in TEXTS])
        answer = await rest.infer(f"http://{server.base}", InferRequest("bert-classify", [texts]), model_name="bert-classify")
        labels["v2"] = [x if isinstance(x, str) else x.decode() for x in answer.outputs[0].as_numpy().flat]
        return labels

    labels = asyncio.run(work())
    names = ["negative", "neutral", "positive"]
    assert labels["v1"] == labels["v2"] == [names[int(np.argmax(x))] for x in expected("bert-classify")["logits"][:2]]
    status, _, listed = server.ask("GET", "/v1/models")
    assert status == 200 and json.loads(listed)["models"] == sorted(FOLDERS)
