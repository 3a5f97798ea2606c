# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Model directories that the mlflow package saved, over MLflow's own protocol, V1, V2 REST and V2 gRPC; and PMML documents,
with the plugin that they need."""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")

from server import ROOT, Server, program

MLFLOW = ROOT / "backends" / "mlflow" / "src" / "test" / "resources" / "mlflow"
PMML = ROOT / "backends" / "pmml" / "src" / "test" / "resources" / "pmml"
REFUSED = ["pyfunc", "lightgbm-truth"]
SERVED = sorted(d.name for d in MLFLOW.iterdir() if (d / "expected.json").exists() and d.name not in REFUSED)
# The value that pandas sends for a column of each type.
NUMPY = {"FP64": np.float64, "FP32": np.float32, "INT64": np.int64, "INT32": np.int32, "BOOL": np.bool_}
CASES = [(n, i) for n in SERVED for i in range(len(json.loads((MLFLOW / n / "expected.json").read_text())))]


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """A directory with the plugin for PMML, or None."""
    directory = tmp_path_factory.mktemp("plugins")
    run = subprocess.run(
        [program(), "plugins", "install", "pmml", "--plugin-dir", str(directory)], capture_output=True, text=True
    )
    return directory if run.returncode == 0 else None


@pytest.fixture(scope="module")
def server(tmp_path_factory, plugins):
    repository = tmp_path_factory.mktemp("mlflow")
    # An interpreter without packages: what needs Python is refused, and the other models are served.
    bare = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    for name in [*SERVED, *REFUSED]:
        # Every other model without a version directory.
        place = repository / name if len(name) % 2 else repository / name / "1"
        shutil.copytree(MLFLOW / name, place, ignore=shutil.ignore_patterns("expected.json"))
    if plugins:
        os.environ["NEREID_PLUGIN_DIR"] = str(plugins)
        for name in ("iris-tree", "mixed"):
            (repository / name / "1").mkdir(parents=True)
            shutil.copy(PMML / f"{name}.pmml", repository / name / "1" / "model.pmml")
        shutil.copy(PMML / "iris-logistic.pmml", repository / "alone.pmml")
    try:
        # Rejected models must not keep the others from being served.
        server = Server(repository, "--exit-on-error=false", "--backend-config", f"python,python={bare}/bin/python")
    finally:
        os.environ.pop("NEREID_PLUGIN_DIR", None)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.base) as client:
        yield client


def post(server, path, body, content_type="application/json"):
    text = body if isinstance(body, str) else json.dumps(body)
    status, headers, answer = server.ask("POST", path, text, {"Content-Type": content_type})
    return status, json.loads(answer) if headers.get("content-type", "").startswith("application/json") else answer


def flat(value):
    if isinstance(value, list):
        return [v for item in value for v in flat(item)]
    if isinstance(value, dict):
        return [v for key in sorted(value) for v in flat(value[key])]
    return [value]


def same(found, wanted):
    found, wanted = flat(found), flat(wanted)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        if isinstance(w, float):
            assert f == pytest.approx(w, abs=1e-6)
        else:
            assert f == w


def columnar(predictions):
    """Converts rows of named values to named columns."""
    if predictions and isinstance(predictions, list) and isinstance(predictions[0], dict):
        return {k: [row[k] for row in predictions] for k in predictions[0]}
    return predictions


@pytest.mark.parametrize("name,case", CASES)
def test_invocations_answer_as_the_package_does(server, name, case):
    expected = json.loads((MLFLOW / name / "expected.json").read_text())[case]
    for path in (f"/invocations?model={name}", f"/models/{name}/invocations", f"/models/{name}/versions/1/invocations"):
        status, answer = post(server, path, expected["request"])
        assert status == 200, answer
        same(columnar(answer["predictions"]), expected["answer"])
    if "dataframe_split" in expected["request"]:
        split = expected["request"]["dataframe_split"]
        records = [dict(zip(split["columns"], row)) for row in split["data"]]
        for body in ({"dataframe_records": records}, {"instances": records}):
            status, answer = post(server, f"/invocations?model={name}", body)
            assert status == 200, answer
            same(columnar(answer["predictions"]), expected["answer"])
        csv = "\n".join(",".join(map(str, row)) for row in [split["columns"], *split["data"]])
        status, answer = post(server, f"/invocations?model={name}", csv + "\n", "text/csv")
        assert status == 200, answer
        same(columnar(answer["predictions"]), expected["answer"])
        status, answer = post(server, f"/v1/models/{name}:predict", {"instances": records})
        assert status == 200, answer
        same(columnar(answer["predictions"]), expected["answer"])


@pytest.mark.parametrize("name", [n for n in SERVED])
@pytest.mark.parametrize("shape,double", [((9,), True), ((9, 1), False)])
def test_columns_are_tensors_over_v2(server, client, name, shape, double):
    expected = json.loads((MLFLOW / name / "expected.json").read_text())[0]
    if "dataframe_split" not in expected["request"]:
        pytest.skip("it has no columns")
    split = expected["request"]["dataframe_split"]
    metadata = client.get_model_metadata(name)
    inputs, body = [], []
    for spec in metadata.inputs:
        values = [row[split["columns"].index(spec.name)] for row in split["data"]]
        kind = "FP32" if spec.datatype == "FP64" and not double else spec.datatype
        tensor = triton.InferInput(spec.name, list(shape), kind)
        array = np.array(values, dtype=object if kind == "BYTES" else NUMPY[kind])
        tensor.set_data_from_numpy(array.reshape(shape))
        inputs.append(tensor)
        body.append({"name": spec.name, "shape": list(shape), "datatype": kind, "data": values})
    result = client.infer(name, inputs)
    status, rest = post(server, f"/v2/models/{name}/infer", {"inputs": body})
    assert status == 200, rest
    for output in metadata.outputs:
        wanted = expected["answer"]
        wanted = wanted[output.name] if isinstance(wanted, dict) else wanted
        values = result.as_numpy(output.name)
        same([v.decode() if isinstance(v, bytes) else v for v in values.ravel().tolist()], wanted)
        same(next(o["data"] for o in rest["outputs"] if o["name"] == output.name), wanted)


def test_the_signature_is_the_metadata(client):
    metadata = client.get_model_metadata("sklearn-mixed-skops")
    assert metadata.platform == "mlflow_sklearn"
    assert [(i.name, i.datatype, list(i.shape)) for i in metadata.inputs] == [
        ("age", "INT64", [-1]),
        ("city", "BYTES", [-1]),
        ("income", "FP64", [-1]),
    ]


def test_the_input_example_is_a_request(server):
    config = json.loads(server.ask("GET", "/v2/models/sklearn-skops/config")[2])
    example = config["parameters"]["mlflow_input_example"]["string_value"]
    status, answer = post(server, "/models/sklearn-skops/invocations", example)
    assert status == 200 and len(answer["predictions"]) == 2


def test_the_server_is_healthy_and_tells_its_version(server):
    assert server.ask("GET", "/ping")[0] in (200, 404)
    assert server.ask("GET", "/health")[2] == b"\n"
    assert server.ask("GET", "/version")[2].strip()


def test_a_request_must_say_which_of_many_models_is_meant(server):
    status, answer = post(server, "/invocations", {"inputs": [[1]]})
    assert status == 400
    assert answer["error_code"] == "BAD_REQUEST" and "/invocations?model=NAME" in answer["message"]
    assert post(server, "/models/absent/invocations", {"inputs": [[1]]})[0] == 404


def test_a_missing_column_is_named(server):
    frame = {"dataframe_split": {"columns": ["sepal length"], "data": [[1.0]]}}
    status, answer = post(server, "/models/xgboost-booster/invocations", frame)
    assert status == 400
    assert answer["message"].startswith("Model is missing inputs [sepal width, petal length, petal width]")
    assert post(server, "/models/xgboost-booster/invocations", "x", "application/vnd.apache.parquet")[0] == 415


def test_what_only_python_can_run_says_what_it_needs(server):
    index = {m["name"]: m for m in json.loads(server.ask("POST", "/v2/repository/index")[2])}
    assert "No module named 'mlflow'" in index["pyfunc"]["reason"]
    assert "-m pip install mlflow" in index["pyfunc"]["reason"]
    assert index["lightgbm-truth"]["state"] == "READY"


def test_the_only_model_needs_no_name(tmp_path):
    shutil.copytree(MLFLOW / "sklearn-skops", tmp_path / "flowers")
    server = Server(tmp_path / "flowers")
    try:
        expected = json.loads((MLFLOW / "sklearn-skops" / "expected.json").read_text())[0]
        status, answer = post(server, "/invocations", expected["request"])
        assert status == 200, answer
        same(answer["predictions"], expected["answer"])
        assert server.ask("GET", "/ping")[0] == 200
    finally:
        server.stop()


# ---------------------------------------------------------------- PMML

SETOSA = {
    "Species": "setosa",
    "Probability_setosa": 1.0,
    "Probability_versicolor": 0.0,
    "Probability_virginica": 0.0,
    "Node_Id": "2",
}
FIELDS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
ROW = [5.1, 3.5, 1.4, 0.2]


@pytest.fixture
def pmml(plugins):
    if not plugins:
        pytest.skip("the plugin could not be installed")


def test_pmml_answers_v1_as_kserve_does(server, pmml):
    record = dict(zip(FIELDS, ROW))
    for instances in ([record], [ROW]):
        status, answer = post(server, "/v1/models/iris-tree:predict", {"instances": instances})
        assert status == 200, answer
        assert answer["predictions"] == [SETOSA]


def test_pmml_answers_v2_as_kserve_does(server, client, pmml):
    body = {"inputs": [{"name": "input-0", "shape": [1, 4], "datatype": "FP32", "data": [ROW]}]}
    status, answer = post(server, "/v2/models/iris-tree/infer", body)
    assert status == 200, answer
    assert [(o["name"], o["datatype"], o["shape"], o["data"]) for o in answer["outputs"]] == [
        (name, "BYTES" if isinstance(value, str) else "FP64", [1], [value]) for name, value in SETOSA.items()
    ]
    tensor = triton.InferInput("input-0", [1, 4], "FP32")
    tensor.set_data_from_numpy(np.array([ROW], dtype=np.float32))
    result = client.infer("iris-tree", [tensor])
    assert result.as_numpy("Species").tolist() == [b"setosa"]
    assert result.as_numpy("Node_Id").tolist() == [b"2"]


def test_pmml_fields_are_tensors_of_their_types(server, client, pmml):
    metadata = client.get_model_metadata("mixed")
    assert [(i.name, i.datatype) for i in metadata.inputs] == [
        ("age", "INT64"),
        ("city", "BYTES"),
        ("member", "BOOL"),
        ("income", "FP64"),
    ]
    rows = [line.split(",") for line in (PMML / "mixed.expected").read_text().splitlines()]
    wanted = [float(r[4]) for r in rows]
    columns = {
        "age": np.array([int(r[0]) for r in rows], dtype=np.int64),
        "city": np.array([r[1] for r in rows], dtype=object),
        "member": np.array([r[2] == "true" for r in rows]),
        "income": np.array([float(r[3] or "nan") for r in rows]),
    }
    inputs = []
    for spec in metadata.inputs:
        tensor = triton.InferInput(spec.name, [len(rows)], spec.datatype)
        tensor.set_data_from_numpy(columns[spec.name])
        inputs.append(tensor)
    same(client.infer("mixed", inputs).as_numpy("cost").tolist(), wanted)
    records = [
        {"age": int(r[0]), "city": r[1] or None, "member": r[2] == "true", "income": float(r[3]) if r[3] else None}
        for r in rows
    ]
    status, answer = post(server, "/models/mixed/invocations", {"dataframe_records": records})
    assert status == 200, answer
    same(answer["predictions"], wanted)
    # Values of several types in the order of the fields.
    status, answer = post(server, "/v1/models/mixed:predict", {"instances": [[30, "Chur", True, 50.5]]})
    assert status == 200, answer


def test_pmml_says_which_category_it_does_not_know(server, pmml):
    body = {"instances": [{"age": 30, "city": "Wien"}]}
    status, answer = post(server, "/v1/models/mixed:predict", body)
    assert status == 400
    assert "field 'city' is 'Wien' in row 0 (expected: one of Bern, Basel, Chur)" in answer["error"]


def test_a_pmml_file_alone_is_a_model(server, pmml):
    status, answer = post(server, "/v1/models/alone:predict", {"instances": [dict(zip(FIELDS, ROW))]})
    assert status == 200 and answer["predictions"][0]["Species"] == "setosa"


def test_without_the_plugin_the_command_is_named(tmp_path):
    (tmp_path / "models" / "iris" / "1").mkdir(parents=True)
    shutil.copy(PMML / "iris-tree.pmml", tmp_path / "models" / "iris" / "1" / "model.pmml")
    (tmp_path / "plugins").mkdir()
    run = subprocess.run(
        [program(), "serve", str(tmp_path / "models"), "--port", "0", "--exit-on-error=true"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NEREID_PLUGIN_DIR": str(tmp_path / "plugins")},
    )
    assert run.returncode != 0
    assert "nereid plugins install pmml" in run.stdout + run.stderr
