# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face's transformers with made-up weights: OpenAI's client for embeddings and models, the kserve SDK for V1 and V2, and
reranking over HTTP."""
import asyncio
import base64
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

openai = pytest.importorskip("openai")
kserve = pytest.importorskip("kserve")
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

from control_server import ControlServer
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


class Hub(BaseHTTPRequestHandler):
    """The two calls of the Hugging Face Hub that a download needs, of the models of `folders`; its revision v2 is for callers with the token."""

    folders = ["bert-embed", "cross-encoder"]

    def do_GET(self):
        path = self.path.partition("?")[0]
        answer = None
        if path.endswith("/revision/v2") and self.headers.get("Authorization") != "Bearer hf_of_the_team":
            path = "refused"
        for name in self.folders:
            files = self.server.files[name]
            if path.startswith(f"/api/models/me/{name}/revision/"):
                siblings = [{"rfilename": file, "size": len(data)} for file, data in files.items()]
                answer = json.dumps({"sha": "0" * 40, "siblings": siblings}).encode()
            elif path.startswith(f"/me/{name}/resolve/{'0' * 40}/"):
                answer = files.get(path.split("0" * 40 + "/")[1])
        self.server.requested.append(path)
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Length", str(len(answer or b"")))
        self.end_headers()
        self.wfile.write(answer or b"")

    def log_message(self, *arguments):
        pass


SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: hub, namespace: demo}
stringData: {token: hf_of_the_team}
"""

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: "${name}", namespace: demo}
spec:
  predictor:
    model:
      modelFormat: {name: huggingface}
${model}
"""

NAMED = """
      args: [--model_name=${name}, --model_id=me/${model}, --model_revision=v2, --dtype=float32]
      env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
"""


def test_services_by_storage_uri_and_by_the_name_of_a_model(tmp_path):
    """An encoder as a service of one machine: openai by the service's path and host, and reranking."""
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    hub.requested, hub.files = [], {}
    with zipfile.ZipFile(MODELS) as archive:
        for folder in Hub.folders:
            hub.files[folder] = {f.split("/")[1]: archive.read(f) for f in archive.namelist() if f.startswith(folder + "/") and f[-1] != "/"}
            hub.files[folder]["tokenizer.json"] = archive.read("wordpiece.json")
            hub.files[folder]["tf_model.h5"] = b"weights of TensorFlow"
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    plane = ControlServer(tmp_path, environment={"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}"})
    try:
        plane.apply(SECRET)
        plane.apply(SERVICE, name="stored", model="      storageUri: hf://me/bert-embed:v1")
        plane.apply(SERVICE, name="named", model=NAMED.replace("${model}", "bert-embed").replace("${name}", "named"))
        plane.apply(SERVICE, name="ranker", model=NAMED.replace("${model}", "cross-encoder").replace("${name}", "ranker"))
        vector = expected("bert-embed")["embedding"][:2]
        for name in ("stored", "named"):
            plane.steady(name)
            base = f"http://{plane.base}/serving/demo/{name}"
            for prefix, headers in (("/openai/v1", {}), ("/v1", {})):
                with openai.OpenAI(base_url=base + prefix, api_key="none", max_retries=0, default_headers=headers) as client:
                    assert [m.id for m in client.models.list()] == [name]
                    answer = client.embeddings.create(model=name, input=TEXTS)
                np.testing.assert_allclose([d.embedding for d in answer.data], vector, atol=1e-4)
            host = {"Host": f"{name}.demo.localhost:{plane.port}", "Content-Type": "application/json"}
            status, _, answer = plane.ask("POST", "/openai/v1/embeddings", json.dumps({"model": name, "input": TEXTS}), host)
            assert status == 200, answer
            np.testing.assert_allclose(json.loads(answer)["data"][1]["embedding"], vector[1], atol=1e-4)
        plane.steady("ranker")
        pairs, scores = expected("cross-encoder")["pairs"], expected("cross-encoder")["scores"]
        for path in ("/v1/rerank", "/openai/v1/rerank"):
            body = {"model": "ranker", "query": pairs[0][0], "documents": [pairs[0][1]]}
            status, _, answer = plane.ask("POST", f"/serving/demo/ranker{path}", json.dumps(body))
            assert status == 200, answer
            assert abs(json.loads(answer)["results"][0]["relevance_score"] - scores[0]) < 1e-4
        assert {path.rsplit("/", 1)[1] for path in hub.requested if path.startswith("/api/")} == {"v1", "v2"}
        fetched = [path for path in hub.requested if "/me/cross-encoder/resolve/" in path]
        assert fetched and not [path for path in fetched if path.endswith(".h5")]
    finally:
        plane.stop()
        hub.shutdown()
