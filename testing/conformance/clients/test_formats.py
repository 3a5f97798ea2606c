# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models straight from Python, without configuration, through V2 gRPC, V2 REST and V1: the answers of their own packages."""
import json
import shutil
import struct

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")

from server import ROOT, Server

TREES = ROOT / "backends" / "trees" / "src" / "test" / "resources" / "models"
SKLEARN = ROOT / "backends" / "sklearn" / "src" / "test" / "resources" / "models"


def trees(kind):
    for expected in sorted((TREES / kind).glob("*.expected")):
        file = next(f for f in expected.parent.glob(expected.stem + ".*") if f.suffix != ".expected")
        yield f"{kind}-{expected.stem}", file, expected


def read_expected(file):
    """Rows and answers: four ints (rows, features, answers, margins), then doubles."""
    data = file.read_bytes()
    rows, features, answers, _ = struct.unpack_from("<4i", data)
    x = np.frombuffer(data, "<f8", rows * features, 16).reshape(rows, features)
    return x, np.frombuffer(data, "<f8", rows * answers, 16 + 8 * rows * features).reshape(rows, answers)


MODELS = [*trees("xgboost"), *trees("lightgbm")]
PLAIN = ["bagging", "elasticnet", "boost", "calibrated"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("formats")
    for name, file, _ in MODELS:
        (repository / name / "1").mkdir(parents=True)
        shutil.copy(file, repository / name / "1" / ("model" + file.suffix))
    for version in sorted(p.name for p in SKLEARN.iterdir() if p.is_dir()):
        listed = json.loads((SKLEARN / version / "expected.json").read_text())
        for name in PLAIN:
            if name in listed:
                file = SKLEARN / version / listed[name]["file"]
                (repository / f"sklearn-{version}-{name}" / "1").mkdir(parents=True)
                shutil.copy(file, repository / f"sklearn-{version}-{name}" / "1" / ("model" + file.suffix))
    server = Server(repository)
    yield server
    assert server.stop() in (0, 143, -15)


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.base) as client:
        yield client


def ask_all_ways(server, client, model, x):
    """The first output through gRPC, REST and V1, as rows of doubles."""
    metadata = client.get_model_metadata(model)
    kind = metadata.inputs[0].datatype
    name, output = metadata.inputs[0].name, metadata.outputs[0].name
    tensor = triton.InferInput(name, list(x.shape), kind)
    tensor.set_data_from_numpy(x.astype({"FP32": np.float32, "FP64": np.float64}[kind]))
    yield "gRPC", client.infer(model, [tensor]).as_numpy(output)
    body = {"inputs": [{"name": name, "shape": list(x.shape), "datatype": kind, "data": x.ravel().tolist()}]}
    status, _, answer = server.ask("POST", f"/v2/models/{model}/infer", json.dumps(body))
    assert status == 200, answer
    outputs = {o["name"]: o for o in json.loads(answer)["outputs"]}
    yield "REST", np.array(outputs[output]["data"], dtype=np.float64).reshape(outputs[output]["shape"])
    status, _, answer = server.ask("POST", f"/v1/models/{model}:predict", json.dumps({"instances": x.tolist()}))
    assert status == 200, answer
    rows = json.loads(answer)["predictions"]
    yield "V1", np.array([row[output] if isinstance(row, dict) else row for row in rows], dtype=np.float64)


@pytest.mark.parametrize("name,file,expected", MODELS, ids=[m[0] for m in MODELS])
def test_trees_answer_as_their_packages(server, client, name, file, expected):
    x, answers = read_expected(expected)
    if client.get_model_metadata(name).inputs[0].datatype == "FP32":
        # What does not survive 32 bits (a threshold's neighbour) is for the tests in process.
        keep = np.all((x == x.astype(np.float32)) | np.isnan(x), axis=1)
        x, answers = x[keep], answers[keep]
    x, answers = x[:20], answers[:20]
    if not len(x):
        pytest.skip("no row of the fixture survives 32 bits")
    for way, got in ask_all_ways(server, client, name, x):
        assert np.allclose(got.reshape(answers.shape), answers, rtol=1e-6, atol=1e-6), way


def sklearn_cases():
    for version in sorted(p.name for p in SKLEARN.iterdir() if p.is_dir()):
        listed = json.loads((SKLEARN / version / "expected.json").read_text())
        yield from ((version, name) for name in PLAIN if name in listed)


@pytest.mark.parametrize("version,name", list(sklearn_cases()))
def test_scikit_learn_answers_as_itself(server, client, version, name):
    case = json.loads((SKLEARN / version / "expected.json").read_text())[name]
    x, answers = np.array(case["rows"]), np.array(case["answers"]["predict"], dtype=np.float64)
    for way, got in ask_all_ways(server, client, f"sklearn-{version}-{name}", x):
        assert np.allclose(got.reshape(answers.shape).astype(np.float64), answers, rtol=1e-6, atol=1e-6), way
