# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models that MLflow saved as Python functions, which the Python backend runs with mlflow.pyfunc: over MLflow's own protocol they
answer what MLflow's scoring server answers, and over V1 and V2 the same values."""
import json
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("mlflow.pyfunc")
import mlflow.pyfunc
from mlflow.models import infer_signature
from mlflow.pyfunc import scoring_server

from server import Server, program

PYTHON = ["--backend-config", f"python,python={sys.executable}"]
NO = {"pip_requirements": ["mlflow-skinny"]}

# A file of Python code, as a team writes it: MLflow loads the model with it, without an object that was pickled.
LOADER = """
import pandas


class Model:
    def predict(self, frame):
        return frame["x"] ** 2


def _load_pyfunc(path):
    return Model()
"""


class Frame(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        f = model_input
        return pandas.DataFrame(
            {"score": f["age"] * 2.5 + f["income"], "who": f["city"].str.upper(), "old": f["age"] > 40})


class Sums(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input.sum(axis=(1, 2))


class Named(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return {"sum": model_input["a"] + model_input["b"], "text": np.array(["x"] * len(model_input["a"]))}


class Doubled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input * 2


class Scaled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input["x"] * params["factor"] + sum(params["more"])


class Reversed(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input: list[str]) -> list[str]:
        return [t[::-1] for t in model_input]


class Days(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return pandas.DataFrame({"next": model_input["t"] + pandas.Timedelta(days=1), "day": model_input["t"].dt.day})


class Chat(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [m["messages"][0]["content"].upper() for m in model_input.to_dict("records")]


class Broken(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        raise ValueError("no such calendar")


FRAME = pandas.DataFrame({"age": [30, 50], "city": ["Bern", "Chur"], "income": [1.5, 2.5]})
CUBE = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
PAIRS = {"a": np.array([[1, 2]], np.int64), "b": np.array([[3, 4]], np.int64)}
TIMES = pandas.DataFrame({"t": pandas.to_datetime(["2024-01-31", "2024-02-28"])})
TALK = [{"messages": [{"role": "user", "content": "hi"}]}]
X = pandas.DataFrame({"x": [1.0, 2.0]})


def save(directory):
    """Saves the models as the mlflow package does; those that are pickled are of this file."""

    def model(name, python_model, signature=None):
        mlflow.pyfunc.save_model(str(directory / name), python_model=python_model, signature=signature, **NO)

    model("frame", Frame(), infer_signature(FRAME, Frame().predict(None, FRAME)))
    model("cube", Sums(), infer_signature(CUBE, CUBE.sum(axis=(1, 2))))
    model("named", Named(), infer_signature(PAIRS, Named().predict(None, PAIRS)))
    model("unsigned", Doubled())
    model("params", Scaled(), infer_signature(X, [1.0], params={"factor": 2.0, "more": [0.5, 1.0]}))
    model("hints", Reversed())
    model("days", Days(), infer_signature(TIMES, Days().predict(None, TIMES)))
    model("chat", Chat(), infer_signature(TALK, ["HI"]))
    model("broken", Broken())
    code = directory.parent / "square_loader.py"
    code.write_text(LOADER)
    mlflow.pyfunc.save_model(
        str(directory / "loader"), loader_module="square_loader", code_paths=[str(code)],
        signature=infer_signature(X, X["x"]), **NO)
    # A flavour that this server does not have, as statsmodels and prophet, beside the Python function.
    described = directory / "loader" / "MLmodel"
    described.write_text(described.read_text().replace("flavors:\n", "flavors:\n  statsmodels:\n    data: model\n"))
    (directory / "loader" / "config.pbtxt").write_text("instance_group [{ count: 2 }]\n")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("functions") / "models"
    directory.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(directory)
    return directory


@pytest.fixture(scope="module")
def server(directory):
    # The pickles name the classes of this file.
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    server = Server(
        directory, "--ports-after-models", "--exit-on-error=true", *PYTHON, start_timeout=300, environment={"PYTHONPATH": path})
    yield server
    assert server.stop() == 0


def post(server, path, body):
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/csv" if isinstance(body, str) else "application/json"
    status, _, answer = server.ask("POST", path, text, {"Content-Type": kind}, timeout=120)
    return status, json.loads(answer)


CASES = {
    "frame": [
        {"dataframe_split": {"columns": ["income", "city", "age"], "data": [[1.5, "Bern", 30], [2.5, "Chur", 50]]}},
        {"dataframe_records": [{"age": 1, "city": "x", "income": 3}]},
        {"inputs": {"age": [1, 2], "city": ["a", "b"], "income": [1.0, 2.0]}},
        "age,city,income\n30,Bern,1.5\n",
    ],
    "cube": [{"inputs": CUBE.tolist()}, {"instances": CUBE.tolist()}],
    "named": [{"inputs": {"a": [[1, 2]], "b": [[5, 6]]}}],
    "unsigned": [
        {"inputs": [[1.5, 2.5]]},
        {"dataframe_split": {"columns": ["a", "b"], "data": [[1.5, 2.0], [3.0, 4.0]]}},
    ],
    "params": [
        {"dataframe_split": {"columns": ["x"], "data": [[1.0], [2.0]]}, "params": {"factor": 3.5, "more": [1.0, 2.5]}},
        {"dataframe_split": {"columns": ["x"], "data": [[1.0]]}},
    ],
    "hints": [{"inputs": ["abc", "de"]}],
    "days": [{"dataframe_split": {"columns": ["t"], "data": [["2024-01-31T00:00:00"], ["2024-02-28T10:00:00"]]}}],
    "chat": [{"inputs": TALK}, {"dataframe_split": {"columns": ["messages"], "data": [[TALK[0]["messages"]]]}}],
    "loader": [{"dataframe_records": [{"x": 3.0}, {"x": 4.0}]}],
}


@pytest.mark.parametrize("name,case", [(n, i) for n, cases in CASES.items() for i in range(len(cases))])
def test_invocations_answer_as_the_scoring_server_does(server, directory, name, case):
    body = CASES[name][case]
    model = mlflow.pyfunc.load_model(str(directory / name))
    text, kind = (body, "text/csv") if isinstance(body, str) else (json.dumps(body), "application/json")
    wanted = scoring_server.invocations(text, kind, model, model.metadata.get_input_schema())
    status, answer = post(server, f"/models/{name}/invocations", body)
    assert (status, answer) == (wanted.status, json.loads(wanted.response))


def test_the_signature_is_the_metadata(server):
    metadata = json.loads(server.ask("GET", "/v2/models/frame")[2])
    assert metadata["platform"] == "mlflow_python_function"
    assert [(i["name"], i["datatype"], i["shape"]) for i in metadata["inputs"]] == [
        ("age", "INT64", [-1]), ("city", "BYTES", [-1]), ("income", "FP64", [-1])]
    assert [(i["name"], i["datatype"], i["shape"]) for i in metadata["outputs"]] == [
        ("score", "FP64", [-1]), ("who", "BYTES", [-1]), ("old", "BOOL", [-1])]
    cube = json.loads(server.ask("GET", "/v2/models/cube")[2])
    assert [(i["name"], i["datatype"], i["shape"]) for i in cube["inputs"]] == [("input-0", "FP32", [-1, 2, 3])]


def test_v1_takes_rows(server):
    status, answer = post(server, "/v1/models/frame:predict", {"instances": [{"age": 1, "city": "x", "income": 3}]})
    assert (status, answer) == (200, {"predictions": [{"score": 5.5, "who": "X", "old": False}]})
    assert post(server, "/v1/models/hints:predict", {"instances": ["abc"]}) == (200, {"predictions": ["cba"]})
    assert post(server, "/v1/models/unsigned:predict", {"instances": [[1.5, 2]]}) == (200, {"predictions": [[3.0, 4.0]]})


def v2(*inputs, **more):
    return {"inputs": [{"name": n, "datatype": t, "shape": s, "data": d} for n, t, s, d in inputs], **more}


def test_v2_takes_columns_and_tensors(server):
    body = v2(("age", "INT64", [2, 1], [1, 2]), ("city", "BYTES", [2], ["a", "b"]), ("income", "FP32", [2], [1, 2]))
    status, answer = post(server, "/v2/models/frame/infer", body)
    assert status == 200, answer
    assert [(o["name"], o["datatype"], o["data"]) for o in answer["outputs"]] == [
        ("score", "FP64", [3.5, 7.0]), ("who", "BYTES", ["A", "B"]), ("old", "BOOL", [False, False])]
    status, answer = post(server, "/v2/models/frame/infer", {**body, "outputs": [{"name": "who"}]})
    assert [o["name"] for o in answer["outputs"]] == ["who"]
    status, answer = post(server, "/v2/models/cube/infer", v2(("input-0", "FP32", [2, 2, 3], CUBE.ravel().tolist())))
    assert (status, answer["outputs"][0]["datatype"], answer["outputs"][0]["data"]) == (200, "FP32", [15.0, 51.0])
    status, answer = post(
        server, "/v2/models/params/infer", v2(("x", "FP64", [2], [1, 2]), parameters={"factor": 10, "more": "[1, 2]"}))
    assert (status, answer["outputs"][0]["data"]) == (200, [13.0, 23.0])
    status, answer = post(
        server, "/v2/models/chat/infer", v2(("messages", "BYTES", [1], [json.dumps(TALK[0]["messages"])])))
    assert (status, answer["outputs"][0]["data"]) == (200, ["HI"])


def test_what_is_wrong_with_a_request_is_said(server):
    body = v2(("age", "INT64", [1], [1]), ("city", "BYTES", [2], ["a", "b"]), ("income", "FP64", [1], [1]))
    status, answer = post(server, "/v2/models/frame/infer", body)
    assert status == 400 and "column 'city' has 2 values (expected: 1, as 'age')" in answer["error"]
    status, answer = post(
        server, "/models/params/invocations",
        {"dataframe_split": {"columns": ["x"], "data": [[1.0]]}, "params": {"factor": "much"}})
    assert status == 400 and "factor" in answer["message"]
    status, answer = post(server, "/v2/models/chat/infer", v2(("messages", "BYTES", [1], ["[{"])))
    assert status == 400 and "is not JSON" in answer["error"]
    status, answer = post(server, "/v2/models/broken/infer", v2(("input-0", "FP64", [1, 1], [1])))
    assert status == 500 and "ValueError: no such calendar" in answer["error"]


def test_a_folder_alone_is_served_and_convert_says_so(directory):
    said = subprocess.run([program(), "convert", str(directory / "loader")], capture_output=True, text=True)
    assert said.returncode == 0
    assert "flavor python_function" in said.stdout and f"-r {directory / 'loader' / 'requirements.txt'}" in said.stdout
    assert not (directory / "loader" / "model.py").exists()
    server = Server(directory / "loader", "--ports-after-models", *PYTHON, start_timeout=300)
    try:
        assert post(server, "/invocations", CASES["loader"][0]) == (200, {"predictions": [{"x": 9.0}, {"x": 16.0}]})
    finally:
        server.stop()


def test_a_function_that_is_also_of_another_flavor_is_run_by_python_where_the_configuration_says_so(tmp_path):
    from test_mlflow import MLFLOW

    import shutil

    pytest.importorskip("sklearn")
    pytest.importorskip("cloudpickle")
    shutil.copytree(MLFLOW / "sklearn-cloudpickle", tmp_path / "flowers")
    (tmp_path / "flowers" / "config.pbtxt").write_text(
        'parameters { key: "flavor" value { string_value: "python_function" } }\n')
    server = Server(tmp_path / "flowers", "--ports-after-models", *PYTHON, start_timeout=300)
    try:
        assert json.loads(server.ask("GET", "/v2/models/flowers")[2])["platform"] == "mlflow_python_function"
        expected = json.loads((MLFLOW / "sklearn-cloudpickle" / "expected.json").read_text())[0]
        status, answer = post(server, "/invocations", expected["request"])
        assert (status, answer) == (200, {"predictions": expected["answer"]})
    finally:
        server.stop()


def test_without_mlflow_the_command_that_installs_it_is_named(directory, tmp_path):
    # An interpreter without packages.
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    run = subprocess.run(
        [program(), "serve", str(directory / "loader"), "--port", "0", "--exit-on-error=true",
         "--backend-config", f"python,python={bare}/bin/python"],
        capture_output=True, text=True, timeout=120,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert run.returncode != 0
    assert (f"'{bare}/bin/python -m pip install -r {directory / 'loader' / 'requirements.txt'}'"
            in run.stdout), run.stdout + run.stderr
    assert "not a version" not in run.stdout + run.stderr
