# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The built-in explainers as components of services: the values of XGBoost, LightGBM and the shap package."""
import json
import struct

import numpy as np
import pytest

pytest.importorskip("yaml")
triton = pytest.importorskip("tritonclient.grpc")

from control_fixtures import IRIS, LIGHTGBM, SKLEARN, XGBOOST, applied, models, plane, web
from control_server import until
from test_formats import read_expected


STEP = 3


def read_contributions(expected):
    """The package's values for every third row, from `.expected`: three ints (rows, outputs, features + 1), then doubles."""
    data = expected.with_suffix(".contributions").read_bytes()
    return np.frombuffer(data, "<f8", -1, 12).reshape(struct.unpack_from("<3i", data))


@pytest.fixture(scope="module")
def background(models):
    """Background rows from the training data."""
    rows = json.loads((SKLEARN / "expected.json").read_text())["forest"]["rows"]
    (models / "background").mkdir()
    (models / "background/background.json").write_text(json.dumps(rows[2:12]))
    return rows


def explain(plane, name, body, status=200, **more):
    got, headers, answer = plane.call(name, f"/v1/models/{name}:explain", body, **more)
    assert got == status, (got, answer)
    return answer


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_trees_are_explained_as_their_packages_do(plane, background, kind):
    expected = {"xgboost": XGBOOST, "lightgbm": LIGHTGBM}[kind].with_suffix(".expected")
    x, y = (all_rows[::STEP] for all_rows in read_expected(expected))
    wanted = read_contributions(expected)
    name = f"{kind}-explained"
    service = applied(plane, "explainer.yaml", name, name=name, format=kind, method="shap")
    assert "explainer" in service["status"]["components"]
    rows = [[None if np.isnan(v) else v for v in row] for row in x[:6].tolist()]
    for by in ("host", "path"):
        answer = explain(plane, name, {"instances": rows}, by=by)
        assert (answer["method"], answer["algorithm"], answer["model_name"]) == ("shap", "tree_shap", name)
        for i, one in enumerate(answer["explanations"]):
            values = np.array(one["shap_values"], float)
            assert np.allclose(values, wanted[i, :, :-1], atol=1e-6), i
            assert np.allclose(np.ravel(one["base_value"]), wanted[i, :, -1], atol=1e-6)
            assert np.allclose(values.sum(axis=1) + np.ravel(one["base_value"]), np.ravel(one["explained_value"]), atol=1e-6)
            assert np.allclose(np.ravel(one["prediction"]), y[i], rtol=1e-4, atol=1e-6)
    # the predictor answers as before, in every protocol
    whole = [i for i in range(len(x)) if not np.isnan(x[i]).any()][:4]
    assert np.allclose(np.array(plane.predict(name, x[whole].tolist())).reshape(len(whole), -1), y[whole], rtol=1e-4, atol=1e-6)
    into = plane.call(name, f"/v2/models/{name}")[2]["inputs"][0]
    with triton.InferenceServerClient(plane.base, channel_args=[("grpc.default_authority", f"{name}-demo.example.com")]) as client:
        array = x[:6].astype({"FP32": np.float32, "FP64": np.float64}[into["datatype"]])
        tensor = triton.InferInput(into["name"], list(array.shape), into["datatype"])
        tensor.set_data_from_numpy(array)
        answer = client.infer(name, [tensor]).get_response().outputs[0].name
        assert np.allclose(client.infer(name, [tensor]).as_numpy(answer).reshape(6, -1), y[:6], rtol=1e-4, atol=1e-6)
    v2 = plane.call(name, f"/v2/models/{name}/explain", {"instances": rows})[2]
    assert v2["explanations"] == answer_of(plane, name, rows)


def answer_of(plane, name, rows):
    return explain(plane, name, {"instances": rows})["explanations"]


def test_other_models_are_explained_as_the_shap_package_does(plane, background, models):
    """Kernel SHAP of all sets of features is exact, as that package's exact explainer is."""
    name = "sklearn-explained"
    applied(plane, "explainer.yaml", name, name=name, format="sklearn", method="shap")
    rows = background[:2]
    answer = explain(plane, name, {"instances": rows})
    assert answer["algorithm"] == "kernel_shap_exact", answer["algorithm"]
    for one in answer["explanations"]:
        total = np.array(one["shap_values"], float).reshape(-1, len(rows[0])).sum(axis=1)
        assert np.allclose(total + np.ravel(one["base_value"]), np.ravel(one["explained_value"]), atol=1e-9)
    shap = pytest.importorskip("shap", reason="SHAP VALUES ARE NOT COMPARED: there is no shap package; they add up, that is all")

    def predict(x):
        got = plane.call(name, f"/v2/models/{name}", None)[2]
        out = answer["explains"]
        tensor = {"name": got["inputs"][0]["name"], "shape": list(x.shape), "datatype": got["inputs"][0]["datatype"],
                  "data": x.ravel().tolist()}
        body = {"inputs": [tensor], "outputs": [{"name": out}]}
        status, _, said = plane.call(name, f"/v2/models/{name}/infer", body)
        assert status == 200, said
        return np.array(said["outputs"][0]["data"]).reshape(said["outputs"][0]["shape"])

    exact = shap.explainers.Exact(predict, shap.maskers.Independent(np.array(background[2:12]), max_samples=10))
    wanted = exact(np.array(rows))
    for i, one in enumerate(answer["explanations"]):
        values = np.array(one["shap_values"], float).reshape(-1, len(rows[0]))
        assert np.allclose(values, wanted.values[i].reshape(len(rows[0]), -1).T, atol=1e-6)


def test_an_onnx_model_is_explained_in_every_way(plane, background):
    name = "onnx-explained"
    applied(plane, "explainer.yaml", name, name=name, format="onnx", method="lime")
    ways = {"background": [[5, 3, 1.5, 0.2], [6, 3, 4, 1.2], [6.5, 3, 5.5, 2], [5.5, 2.5, 4, 1.3]]}
    by_default = explain(plane, name, {"instances": IRIS, "parameters": ways})
    assert by_default["method"] == "lime" and np.shape(by_default["explanations"][0]["coefficients"])[-1] == 4
    again = explain(plane, name, {"instances": IRIS, "parameters": ways})
    assert again["explanations"] == by_default["explanations"], "the seed of the service makes answers the same"
    turned = explain(plane, name, {"instances": IRIS[:1], "parameters": {
        **ways, "method": "counterfactual", "desired": 2, "output": "probabilities"}})
    assert turned["method"] == "counterfactual"
    found = turned["explanations"][0]
    found = found.get("counterfactuals", [found])[0]
    answers = plane.predict(name, [found["instance"]])
    assert answers[0]["label"] == [2]
    important = explain(plane, name, {"instances": IRIS * 4, "parameters": {
        "method": "permutation", "targets": [0, 2] * 4, "output": "probabilities"}})
    assert important["explanations"]


def test_what_cannot_be_explained_is_told(plane, background):
    name = "onnx-explained"
    applied(plane, "explainer.yaml", name, name=name, format="onnx", method="lime")
    assert "metod" in str(explain(plane, name, {"instances": IRIS, "parameters": {"metod": "shap"}}, 400))
    assert "instances" in str(explain(plane, name, {}, 400))
    plane.apply("explainer.yaml", name="unexplained", format="onnx", method="guess")
    message = until(lambda: "guess" in (m := plane.condition("unexplained", "ExplainerReady").get("message", "")) and m, "it is reported")
    assert "shap" in message
    plane.delete("unexplained")
