# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI documents: valid for openapi-spec-validator, and a client that OpenAPI Generator makes of one predicts."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

validator = pytest.importorskip("openapi_spec_validator")

from server import EXAMPLES, Server

VERSION = "7.14.0"
JAR = f"https://repo1.maven.org/maven2/org/openapitools/openapi-generator-cli/{VERSION}/openapi-generator-cli-{VERSION}.jar"
SHA256 = "e03186835022ca02da4aa95e3967b6a3b6d44c2e5f7606e6d5c22466f519c757"
CACHE = pathlib.Path(os.environ.get("NEREID_CLIENTS_CACHE") or pathlib.Path(__file__).resolve().parents[1] / "target" / "clients")


def document(server, path):
    status, headers, body = server.ask("GET", path)
    assert status == 200, body
    assert headers["content-type"] == "application/json"
    return json.loads(body)


def models(server):
    return json.loads(server.ask("GET", "/v2/models")[2])["models"]


def test_the_document_of_the_server_is_valid(server):
    validator.validate(document(server, "/openapi.json"))


def test_the_documents_of_all_models_are_valid(server):
    names = models(server)
    assert len(names) > 20
    for name in names:
        for protocol in ("v1", "v2"):
            validator.validate(document(server, f"/{protocol}/models/{name}/openapi.json"))
        validator.validate(document(server, f"/v2/models/{name}/versions/1/openapi.json"))


def test_a_document_with_credentials_is_valid(tmp_path):
    access = tmp_path / "access.yaml"
    access.write_text("anonymous: [health, metadata]\nlocal: [admin]\nroles:\n  metadata:\n    permissions: [metadata]\n")
    with_access = Server(str(EXAMPLES), "--model-control-mode", "none", "--access-config", str(access))
    try:
        described = document(with_access, "/openapi.json")
        validator.validate(described)
        assert set(described["components"]["securitySchemes"]) == {"bearer", "apiKey", "basic"}
        infer = described["paths"]["/v2/models/{model}/infer"]["post"]
        assert infer["x-nereid-permission"] == "infer"
        assert {} not in infer["security"] and {"bearer": []} in infer["security"]
        assert {} in described["paths"]["/v2/health/ready"]["get"]["security"]
    finally:
        with_access.stop()


@pytest.fixture(scope="module")
def generator():
    CACHE.mkdir(parents=True, exist_ok=True)
    jar = CACHE / f"openapi-generator-cli-{VERSION}.jar"
    if not jar.exists():
        try:
            content = urllib.request.urlopen(JAR, timeout=60).read()
        except (urllib.error.URLError, OSError) as e:
            pytest.skip(f"NOT TESTED: a generated client; OpenAPI Generator could not be fetched: {e}")
        assert hashlib.sha256(content).hexdigest() == SHA256
        part = jar.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.rename(jar)
    return jar


def generate(generator, server, path, package, folder):
    """Makes a client of a document, and imports it."""
    file = folder / f"{package}.json"
    file.write_text(json.dumps(document(server, path)))
    made = subprocess.run(
        ["java", "-jar", str(generator), "generate", "-g", "python", "-i", str(file), "-o", str(folder / package),
         f"--additional-properties=packageName={package}"],
        capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder / package))
    return __import__(package)


def test_a_generated_client_of_open_inference_predicts(generator, server, tmp_path):
    client = generate(generator, server, "/v2/models/simple/openapi.json", "simple_v2", tmp_path)
    with client.ApiClient(client.Configuration(host=f"http://{server.base}")) as connection:
        api = client.OpenInferenceApi(connection)
        numbers = list(range(16))
        request = client.InferRequest(
            id="7",
            inputs=[
                client.InferRequestInputsInner(client.Input0(name="INPUT0", shape=[1, 16], datatype="INT32", data=numbers)),
                client.InferRequestInputsInner(client.Input1(name="INPUT1", shape=[1, 16], datatype="INT32", data=[1] * 16)),
            ])
        answer = api.model_infer(request)
        assert answer.id == "7"
        outputs = {output.actual_instance.name: output.actual_instance for output in answer.outputs}
        assert outputs["OUTPUT0"].data == [n + 1 for n in numbers]
        assert outputs["OUTPUT1"].data == [n - 1 for n in numbers]
        with pytest.raises(client.exceptions.ApiException) as failed:
            api.model_infer(client.InferRequest(inputs=request.inputs[:1] * 2))
        assert failed.value.status == 400


def test_a_generated_client_of_v1_predicts(generator, server, tmp_path):
    client = generate(generator, server, "/v1/models/iris/openapi.json", "iris_v1", tmp_path)
    with client.ApiClient(client.Configuration(host=f"http://{server.base}")) as connection:
        api = client.TensorFlowServingKServeV1Api(connection)
        answer = api.v1_predict(client.PredictRequest(instances=[[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]))
        assert len(answer.predictions) == 2
        assert answer.predictions[0].label == [0]
        assert len(answer.predictions[1].probabilities) == 3
