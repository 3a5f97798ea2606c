# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models straight from Python, without configuration, through V2 gRPC, V2 REST and V1: the answers of their own packages."""
import json
import os
import shutil
import struct
import subprocess

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")

from server import ROOT, Server, program

TREES = ROOT / "backends" / "trees" / "src" / "test" / "resources" / "models"
SKLEARN = ROOT / "backends" / "sklearn" / "src" / "test" / "resources" / "models"


def trees(kind):
    for expected in sorted((TREES / kind).glob("*.expected")):
        file = next(f for f in expected.parent.glob(expected.stem + ".*") if f.suffix not in (".expected", ".contributions"))
        yield f"{kind}-{expected.stem}", file, expected


def read_expected(file):
    """Rows and expected outputs: four ints (rows, features, outputs, margins), then doubles."""
    data = file.read_bytes()
    rows, features, answers, _ = struct.unpack_from("<4i", data)
    x = np.frombuffer(data, "<f8", rows * features, 16).reshape(rows, features)
    return x, np.frombuffer(data, "<f8", rows * answers, 16 + 8 * rows * features).reshape(rows, answers)


def read_margins(file):
    """The raw scores, which follow the outputs."""
    data = file.read_bytes()
    rows, features, answers, margins = struct.unpack_from("<4i", data)
    return np.frombuffer(data, "<f8", rows * margins, 16 + 8 * rows * (features + answers)).reshape(rows, margins)


MODELS = [*trees("xgboost"), *trees("lightgbm")]
PLAIN = ["bagging", "elasticnet", "boost", "calibrated", "ada", "rest_trees", "forest_many", "sgd_sparse"]
# XGBoost, LightGBM and CatBoost in pickles, alone and inside scikit-learn's classes.
BOOSTERS = [
    "xgb", "xgb_three", "xgb_early", "xgb_names", "xgb_booster", "xgb_pipeline", "xgb_calibrated", "lgbm", "lgbm_three", "lgbm_early",
    "lgbm_booster", "lgbm_pipeline", "cat", "cat_three", "cat_reg", "cat_pipeline", "vote_boosters", "stack_boosters", "xgb_skops"]
PLAIN += BOOSTERS
PLAIN += [
    "select_pipeline", "select_boosters", "rfe", "target_log", "target_quantile", "iterative_model", "qda", "mixture_full",
    "spline_model", "threshold", "threshold_tuned", "xgb_target"]
CATBOOST = ROOT / "backends" / "catboost" / "src" / "test" / "resources" / "models"
PADDLE = ROOT / "backends" / "onnx-import" / "src" / "test" / "resources" / "nets"
CATBOOST_EXPECTED = json.loads((CATBOOST / "expected.json").read_text())


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
    for name in CATBOOST_EXPECTED:
        (repository / f"catboost-{name}" / "1").mkdir(parents=True)
        shutil.copy(CATBOOST / f"{name}.json", repository / f"catboost-{name}" / "1" / "model.json")
        (repository / f"cbm-{name}" / "1").mkdir(parents=True)
        shutil.copy(CATBOOST / f"{name}.cbm", repository / f"cbm-{name}" / "1" / f"{name}.cbm")
    for name in ["pp_mlp", "pp_convnet", "pp_fluid"]:
        shutil.copytree(PADDLE / name, repository / name / "1", ignore=shutil.ignore_patterns("case.txt"))
    newest = sorted(p.name for p in SKLEARN.iterdir() if p.is_dir())[-1]
    for name in ["frame_numbers", "frame_model", "linear", "lgbm_kinds"]:
        file = SKLEARN / newest / json.loads((SKLEARN / newest / "expected.json").read_text())[name]["file"]
        (repository / name / "1").mkdir(parents=True)
        shutil.copy(file, repository / name / "1" / ("model" + file.suffix))
    # Its libraries are the distribution's: nothing is fetched.
    plugins = {"NEREID_PLUGIN_DIR": str(tmp_path_factory.mktemp("plugins"))}
    subprocess.run([program(), "plugins", "install", "onnx-import"], env={**os.environ, **plugins}, check=True, timeout=60)
    server = Server(repository, environment=plugins)
    yield server
    assert server.stop() == 0


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
    yield "REST", numbers(outputs[output]["data"]).reshape(outputs[output]["shape"])
    status, _, answer = server.ask("POST", f"/v1/models/{model}:predict", json.dumps({"instances": x.tolist()}))
    assert status == 200, answer
    rows = json.loads(answer)["predictions"]
    yield "V1", numbers([row[output] if isinstance(row, dict) else row for row in rows])


def numbers(data):
    """Converts values to doubles, unless they are texts."""
    values = np.array(data)
    return values if values.dtype.kind in "UO" else values.astype(np.float64)


@pytest.mark.parametrize("name,file,expected", MODELS, ids=[m[0] for m in MODELS])
def test_trees_answer_as_their_packages(server, client, name, file, expected):
    x, answers = read_expected(expected)
    if client.get_model_metadata(name).inputs[0].datatype == "FP32":
        # Values that do not survive 32 bits (next to a threshold) are left to the in-process tests.
        keep = np.all((x == x.astype(np.float32)) | np.isnan(x), axis=1)
        x, answers = x[keep], answers[keep]
    x, answers = x[:20], answers[:20]
    if not len(x):
        pytest.skip("no row of the fixture survives 32 bits")
    for way, got in ask_all_ways(server, client, name, x):
        assert np.allclose(got.reshape(answers.shape), answers, rtol=1e-6, atol=1e-6), way


@pytest.mark.parametrize("name", [
    "xgboost-multi-softmax-gbtree", "xgboost-binary-logistic-gbtree", "lightgbm-multiclass-gbdt-missing",
    "lightgbm-binary-rf-missing"])
def test_a_request_may_ask_for_the_margin(server, client, name):
    expected = next(e for n, _, e in MODELS if n == name)
    x, margins = read_expected(expected)[0][:20], read_margins(expected)[:20]
    metadata = client.get_model_metadata(name)
    kind = metadata.inputs[0].datatype
    keep = np.all((x == x.astype(np.float32)) | np.isnan(x), axis=1)
    x, margins = x[keep], margins[keep]
    assert len(x) > 3
    tensor = triton.InferInput("input-0", list(x.shape), kind)
    tensor.set_data_from_numpy(x.astype({"FP32": np.float32, "FP64": np.float64}[kind]))
    parameter = "output_margin" if name.startswith("xgboost") else "raw_score"
    got = client.infer(name, [tensor], parameters={parameter: True}).as_numpy("predict")
    assert np.allclose(got.reshape(margins.shape), margins, rtol=1e-6, atol=1e-6)
    body = {"parameters": {parameter: True},
            "inputs": [{"name": "input-0", "shape": list(x.shape), "datatype": kind, "data": x.ravel().tolist()}]}
    status, _, answer = server.ask("POST", f"/v2/models/{name}/infer", json.dumps(body))
    assert status == 200, answer
    got = numbers(json.loads(answer)["outputs"][0]["data"])
    assert np.allclose(got.reshape(margins.shape), margins, rtol=1e-6, atol=1e-6)
    body = {"signature_name": "margin", "instances": x.tolist()}
    status, _, answer = server.ask("POST", f"/v1/models/{name}:predict", json.dumps(body))
    assert status == 200, answer
    got = numbers(json.loads(answer)["predictions"])
    assert np.allclose(got.reshape(margins.shape), margins, rtol=1e-6, atol=1e-6)
    body = {"parameters": {parameter: "perhaps"},
            "inputs": [{"name": "input-0", "shape": list(x.shape), "datatype": kind, "data": x.ravel().tolist()}]}
    status, _, answer = server.ask("POST", f"/v2/models/{name}/infer", json.dumps(body))
    assert status == 400 and "(expected: true or false)" in json.loads(answer)["error"]


def infer(server, model, inputs):
    status, _, answer = server.ask("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": inputs}))
    assert status == 200, answer
    return json.loads(answer)["outputs"]


def sklearn_newest(name):
    newest = sorted(p.name for p in SKLEARN.iterdir() if p.is_dir())[-1]
    return json.loads((SKLEARN / newest / "expected.json").read_text())[name]


@pytest.mark.parametrize("datatype", ["FP64", "FP32", "INT64", "INT32", "INT8", "UINT8"])
@pytest.mark.parametrize("name", ["input-0", "whatever"])
def test_numbers_of_any_type_and_the_only_input_under_any_name(server, client, datatype, name):
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    plain = infer(server, "linear", [{"name": "input-0", "shape": [2, 4], "datatype": "FP64", "data": x.ravel().tolist()}])
    got = infer(server, "linear", [{"name": name, "shape": [2, 4], "datatype": datatype, "data": x.ravel().tolist()}])
    assert got[0]["data"] == plain[0]["data"]
    tensor = triton.InferInput(name, [2, 4], datatype)
    kinds = {"FP64": "f8", "FP32": "f4", "INT64": "i8", "INT32": "i4", "INT8": "i1", "UINT8": "u1"}
    tensor.set_data_from_numpy(x.astype(kinds[datatype]))
    assert client.infer("linear", [tensor]).as_numpy("predict").tolist() == plain[0]["data"]


@pytest.mark.parametrize("upright", [False, True])
def test_a_data_frame_comes_as_one_input_for_each_column(server, upright):
    case = sklearn_newest("frame_numbers")
    x = np.array(case["rows"])
    shape = [len(x), 1] if upright else [len(x)]
    inputs = [{"name": c, "shape": shape, "datatype": "FP64", "data": x[:, i].tolist()} for i, c in enumerate(case["columns"])]
    got = infer(server, "frame_numbers", inputs[::-1])
    assert np.allclose(got[0]["data"], case["answers"]["predict"], rtol=1e-9)


@pytest.mark.parametrize("upright", [False, True])
def test_columns_of_numbers_and_texts_are_found_by_name(server, upright):
    case = sklearn_newest("frame_model")
    rows = case["rows"]
    shape = [len(rows), 1] if upright else [len(rows)]
    inputs = []
    for i, c in enumerate(case["columns"]):
        text = isinstance(rows[0][i], str)
        data = [row[i] if row[i] is not None else float("nan") for row in rows]
        inputs.append({"name": c, "shape": shape, "datatype": "BYTES" if text else "FP32", "data": data})
    got = infer(server, "frame_model", inputs)
    assert got[0]["data"] == case["answers"]["predict"]
    instances = [dict(zip(case["columns"], row)) for row in rows if None not in row]
    status, _, answer = server.ask("POST", "/v1/models/frame_model:predict", json.dumps({"instances": instances}))
    assert status == 200, answer
    wanted = [a for a, row in zip(case["answers"]["predict"], rows) if None not in row]
    assert json.loads(answer)["predictions"] == wanted


@pytest.mark.parametrize("form", ["catboost", "cbm"])
@pytest.mark.parametrize("name", sorted(CATBOOST_EXPECTED))
def test_catboost_answers_as_itself(server, client, name, form):
    case = CATBOOST_EXPECTED[name]
    wanted = case["answers"]["predict"]
    rows = [[float("nan") if v is None else v for v in row] for row in case["rows"]]
    metadata = client.get_model_metadata(f"{form}-{name}")
    if case["columns"] is None:
        ways = dict(ask_all_ways(server, client, f"{form}-{name}", np.array(rows)))
    else:
        assert [i.name for i in metadata.inputs] == case["columns"]
        # Numeric categories are sent as texts.
        rows = [[str(v) if i.datatype == "BYTES" else v for i, v in zip(metadata.inputs, row)] for row in rows]
        inputs = [
            {"name": i.name, "shape": [len(rows)], "datatype": i.datatype, "data": [row[c] for row in rows]}
            for c, i in enumerate(metadata.inputs)]
        ways = {"REST": np.array(infer(server, f"{form}-{name}", inputs)[0]["data"])}
        instances = [dict(zip(case["columns"], row)) for row in rows]
        status, _, answer = server.ask("POST", f"/v1/models/{form}-{name}:predict", json.dumps({"instances": instances}))
        assert status == 200, answer
        ways["V1"] = np.array(json.loads(answer)["predictions"])
    for way, got in ways.items():
        if isinstance(wanted[0], str):
            assert [v.decode() if isinstance(v, bytes) else str(v) for v in got.ravel()] == wanted, way
        else:
            assert np.allclose(np.array(got, dtype=float).ravel(), np.array(wanted, dtype=float).ravel(), rtol=1e-6, atol=1e-6), way


def sklearn_cases():
    for version in sorted(p.name for p in SKLEARN.iterdir() if p.is_dir()):
        listed = json.loads((SKLEARN / version / "expected.json").read_text())
        yield from ((version, name) for name in PLAIN if name in listed)


@pytest.mark.parametrize("version,name", list(sklearn_cases()))
def test_scikit_learn_answers_as_itself(server, client, version, name):
    case = json.loads((SKLEARN / version / "expected.json").read_text())[name]
    x = np.array([[np.nan if v is None else v for v in row] for row in case["rows"]], dtype=np.float64)
    answers = np.array(case["answers"]["predict"])
    for way, got in ask_all_ways(server, client, f"sklearn-{version}-{name}", x):
        if answers.dtype.kind == "U":
            assert [v.decode() if isinstance(v, bytes) else str(v) for v in got.ravel()] == answers.tolist(), way
            continue
        assert np.allclose(got.reshape(answers.shape).astype(np.float64), answers, rtol=1e-6, atol=1e-6), way


def test_a_request_chooses_what_a_classifier_computes(server, client):
    newest = sorted(p.name for p in SKLEARN.iterdir() if p.is_dir())[-1]
    model, case = f"sklearn-{newest}-xgb_three", sklearn_newest("xgb_three")
    x = np.array(case["rows"])
    rows = {"name": "input-0", "shape": list(x.shape), "datatype": "FP64", "data": x.ravel().tolist()}

    def outputs(**more):
        status, _, answer = server.ask("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [rows], **more}))
        assert status == 200, answer
        return {o["name"]: o["data"] for o in json.loads(answer)["outputs"]}

    proba = np.ravel(case["answers"]["predict_proba"])
    assert list(outputs()) == ["predict"]
    for got in [outputs(outputs=[{"name": "predict_proba"}]), outputs(parameters={"method": "predict_proba"})]:
        assert list(got) == ["predict_proba"]
        assert np.allclose(got["predict_proba"], proba, rtol=1e-6, atol=1e-6)
    both = outputs(outputs=[{"name": "predict_proba"}, {"name": "predict"}])
    assert both["predict"] == case["answers"]["predict"]
    assert np.allclose(both["predict_proba"], proba, rtol=1e-6, atol=1e-6)
    status, _, answer = server.ask("POST", f"/v2/models/{model}/infer", json.dumps(
        {"inputs": [rows], "outputs": [{"name": "probabilities"}]}))
    assert status == 400 and "unexpected inference output 'probabilities'" in json.loads(answer)["error"]
    status, _, answer = server.ask("POST", f"/v1/models/{model}:predict", json.dumps(
        {"signature_name": "predict_proba", "instances": x.tolist()}))
    assert status == 200, answer
    assert np.allclose(json.loads(answer)["predictions"], proba.reshape(len(x), -1), rtol=1e-6, atol=1e-6)
    tensor = triton.InferInput("input-0", list(x.shape), "FP64")
    tensor.set_data_from_numpy(x)
    got = client.infer(model, [tensor], outputs=[triton.InferRequestedOutput("predict_proba")]).as_numpy("predict_proba")
    assert np.allclose(got.ravel(), proba, rtol=1e-6, atol=1e-6)
    status, _, answer = server.ask("POST", f"/v2/models/{model}/infer", json.dumps(
        {"inputs": [rows], "parameters": {"method": "transform"}}))
    assert status == 400 and "parameter 'method' is 'transform'" in json.loads(answer)["error"]


def test_null_is_a_missing_value_of_a_table(server):
    newest = sorted(p.name for p in SKLEARN.iterdir() if p.is_dir())[-1]
    model, case = f"sklearn-{newest}-xgb", sklearn_newest("xgb")
    assert any(None in row for row in case["rows"])
    status, _, answer = server.ask("POST", f"/v1/models/{model}:predict", json.dumps({"instances": case["rows"]}))
    assert status == 200, answer
    assert json.loads(answer)["predictions"] == case["answers"]["predict"]
    rows = {"name": "input-0", "shape": [len(case["rows"]), 4], "datatype": "FP64", "data": case["rows"]}
    assert infer(server, model, [rows])[0]["data"] == case["answers"]["predict"]
    status, _, answer = server.ask("POST", "/v1/models/pp_mlp:predict", json.dumps({"instances": [[None]]}))
    assert status == 400, answer


def test_categories_of_a_data_frame_are_texts_and_null_is_a_missing_one(server):
    case = sklearn_newest("lgbm_kinds")
    assert any(row[1] is None for row in case["rows"]) and any(row[2] is None for row in case["rows"])
    instances = [dict(zip(case["columns"], row)) for row in case["rows"]]
    status, _, answer = server.ask("POST", "/v1/models/lgbm_kinds:predict", json.dumps({"instances": instances}))
    assert status == 200, answer
    assert json.loads(answer)["predictions"] == case["answers"]["predict"]
    columns = [
        {"name": name, "shape": [len(case["rows"]), 1], "datatype": "BYTES" if name in ("city", "size") else "FP64",
         "data": [row[i] for row in case["rows"]]}
        for i, name in enumerate(case["columns"])]
    body = {"inputs": columns, "outputs": [{"name": "predict_proba"}]}
    status, _, answer = server.ask("POST", "/v2/models/lgbm_kinds/infer", json.dumps(body))
    assert status == 200, answer
    assert np.allclose(json.loads(answer)["outputs"][0]["data"], np.ravel(case["answers"]["predict_proba"]), rtol=1e-9)


def test_rows_are_objects_for_a_model_fitted_to_a_data_frame_of_numbers(server):
    case = sklearn_newest("frame_numbers")
    instances = [dict(zip(case["columns"], row)) for row in case["rows"]]
    status, _, answer = server.ask("POST", "/v1/models/frame_numbers:predict", json.dumps({"instances": instances}))
    assert status == 200, answer
    assert np.allclose(json.loads(answer)["predictions"], case["answers"]["predict"], rtol=1e-9)


def test_formats_that_are_not_served_say_what_they_are_and_the_next_command(tmp_path):
    llama = tmp_path / "llama" / "1"
    llama.mkdir(parents=True)
    (llama / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
    (llama / "tokenizer.json").write_text("{}")
    (llama / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (tmp_path / "digits" / "1").mkdir(parents=True)
    (tmp_path / "digits" / "1" / "model.keras").write_bytes(b"PK\x03\x04")
    (tmp_path / "weights" / "1").mkdir(parents=True)
    (tmp_path / "weights" / "1" / "weights.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (tmp_path / "own" / "1").mkdir(parents=True)
    (tmp_path / "own" / "1" / "model.pkl").write_bytes(b"cstatsmodels.regression.linear_model\nOLSResults\n.")
    server = Server(tmp_path, "--exit-on-error=false")
    try:
        status, _, answer = server.ask("POST", "/v2/repository/index", "{}")
        assert status == 200, answer
        reasons = {m["name"]: m["reason"] for m in json.loads(answer)}
    finally:
        server.stop()
    said = "\n".join(server.lines)
    assert "LlamaForCausalLM" in reasons["llama"]
    assert f"optimum-cli export onnx --model {llama}" in said
    assert "Keras" in reasons["digits"] and "model.savedmodel" in said
    assert "weights only" in reasons["weights"] and "torch.onnx.export" in said
    assert "statsmodels" in reasons["own"] and "nereid convert" in said


def test_convert_says_what_a_file_is_and_writes_what_serves_it(tmp_path):
    def convert(file):
        done = subprocess.run([program(), "convert", str(file)], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    newest = sorted(p.name for p in SKLEARN.iterdir() if p.is_dir())[-1]
    for name, written in [("xgb_three", "model.ubj"), ("lgbm_three", "model.txt"), ("cat", "model.cbm"), ("qda", None)]:
        directory = tmp_path / name / "1"
        directory.mkdir(parents=True)
        file = directory / ("model" + (SKLEARN / newest / sklearn_newest(name)["file"]).suffix)
        shutil.copy(SKLEARN / newest / sklearn_newest(name)["file"], file)
        code, said = convert(file)
        assert code == 0 and f"nereid serve {file}" in said, said
        assert sorted(p.name for p in directory.iterdir()) == sorted([file.name] + ([written] if written else [])), said
        if written:
            file.unlink()
    other = tmp_path / "other" / "1"
    other.mkdir(parents=True)
    (other / "model.pkl").write_bytes(b"cfractions\nFraction\n(I1\nI2\ntR.")
    code, said = convert(other / "model.pkl")
    assert code == 0 and "fractions.Fraction" in said and "trust" in said
    assert "joblib.load" in (other / "model.py").read_text()
    code, said = convert(other / "model.pkl")
    assert code != 0 and "--force" in said
    shutil.rmtree(tmp_path / "other")
    server = Server(tmp_path)
    try:
        case = sklearn_newest("xgb_three")
        x = np.array(case["rows"])
        rows = {"name": "input-0", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}
        got = infer(server, "xgb_three", [rows])[0]["data"]
        assert np.allclose(got, np.ravel(case["answers"]["predict_proba"]), rtol=1e-6, atol=1e-6)
        assert infer(server, "qda", [{**rows, "datatype": "FP64"}])[0]["data"] == sklearn_newest("qda")["answers"]["predict"]
    finally:
        server.stop()


@pytest.mark.parametrize("name", ["pp_mlp", "pp_convnet", "pp_fluid"])
def test_paddle_answers_as_itself(server, client, name):
    lines = [line.split(" ") for line in (PADDLE / name / "case.txt").read_text().splitlines()[1:]]
    (x,), (wanted,) = (
        [np.array(list(map(float, words[4:])), np.float32).reshape(list(map(int, words[3].split(","))))
         for words in lines if words[0] == side]
        for side in ("input", "output"))
    x, wanted = x[:4], wanted[:4]  # the maximum batch size
    for way, got in ask_all_ways(server, client, name, x):
        assert np.allclose(got, wanted, rtol=1e-5, atol=1e-5), way
    # As KServe's server for PaddlePaddle does: the input under any name, of any type of numbers.
    body = {"inputs": [{"name": "whatever", "shape": list(x.shape), "datatype": "FP64", "data": x.ravel().tolist()}]}
    status, _, answer = server.ask("POST", f"/v2/models/{name}/infer", json.dumps(body))
    assert status == 200, answer
    assert np.allclose(json.loads(answer)["outputs"][0]["data"], wanted.ravel(), rtol=1e-5, atol=1e-5)
