# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of plugins, from a directory without any configuration, through V1, V2 and gRPC."""

import subprocess

import numpy as np
import pytest
import requests
import tritonclient.grpc as grpc_client

from server import ROOT, Server, program

PLUGINS = {
    "pytorch": (ROOT / "backends" / "pytorch" / "src" / "test" / "resources" / "models" / "half_plus_two", "OUTPUT__0"),
    "tflite": (ROOT / "backends" / "tflite" / "src" / "test" / "resources" / "models" / "half_plus_two", "y"),
}


@pytest.fixture(scope="module", params=sorted(PLUGINS))
def served(request, tmp_path_factory):
    listed = subprocess.run([program(), "plugins", "list"], capture_output=True, text=True, check=True).stdout
    state = next(line for line in listed.splitlines() if line.split()[:1] == [request.param])
    if "not installed" in state:
        pytest.skip(f"the plugin is not installed: nereid plugins install {request.param}")
    models = tmp_path_factory.mktemp(request.param)
    source, output = PLUGINS[request.param]
    (models / "half").symlink_to(source)
    running = Server(models)
    yield running, output
    running.stop()


def test_v1(served):
    server, _ = served
    answer = requests.post("http://" + server.base + "/v1/models/half:predict", json={"instances": [1.0, 2.0, 5.0]}, timeout=30)
    assert answer.json()["predictions"] == [2.5, 3.0, 4.5]


def test_v2(served):
    server, output = served
    metadata = requests.get("http://" + server.base + "/v2/models/half", timeout=30).json()
    assert [i["name"] for i in metadata["inputs"]] == ["x"]
    assert [o["name"] for o in metadata["outputs"]] == [output]
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [1, 2, 5]}]}
    answer = requests.post("http://" + server.base + "/v2/models/half/infer", json=body, timeout=30).json()
    assert answer["outputs"][0]["data"] == [2.5, 3.0, 4.5]


def test_the_configuration_names_what_triton_fills_in(served):
    server, output = served
    config = requests.get("http://" + server.base + "/v2/models/half/config", timeout=30).json()
    shown = (config["platform"], config["backend"], config["default_model_filename"])
    assert shown == (("pytorch_libtorch", "pytorch", "model.pt") if output == "OUTPUT__0" else ("tensorflow_lite", "tflite", ""))
    assert "model_transaction_policy" not in config


def test_grpc(served):
    server, output = served
    with grpc_client.InferenceServerClient(server.base) as client:
        x = grpc_client.InferInput("x", [3], "FP32")
        x.set_data_from_numpy(np.array([1, 2, 5], np.float32))
        assert client.infer("half", [x]).as_numpy(output).tolist() == [2.5, 3.0, 4.5]


def test_the_configuration_names_the_kind_of_a_tensorflow_model(tmp_path):
    listed = subprocess.run([program(), "plugins", "list"], capture_output=True, text=True, check=True).stdout
    if any(line.split()[:1] == ["tensorflow"] and "not installed" in line for line in listed.splitlines()):
        pytest.skip("the plugin is not installed: nereid plugins install tensorflow")
    models = ROOT / "backends" / "tensorflow" / "src" / "test" / "resources" / "models"
    for name in ("echo", "graph"):
        (tmp_path / name).symlink_to(models / name)
    server = Server(tmp_path)
    try:
        for name, kind in (("echo", "savedmodel"), ("graph", "graphdef")):
            config = requests.get(f"http://{server.base}/v2/models/{name}/config", timeout=30).json()
            shown = (config["platform"], config["backend"], config["default_model_filename"])
            assert shown == (f"tensorflow_{kind}", "tensorflow", f"model.{kind}")
    finally:
        server.stop()


def test_an_integer_output_of_torchscript_needs_no_configuration(tmp_path):
    listed = subprocess.run([program(), "plugins", "list"], capture_output=True, text=True, check=True).stdout
    if any(line.split()[:1] == ["pytorch"] and "not installed" in line for line in listed.splitlines()):
        pytest.skip("the plugin is not installed: nereid plugins install pytorch")
    for name in ("grown", "scores"):
        (tmp_path / name).symlink_to(PLUGINS["pytorch"][0].parent / name)
    server = Server(tmp_path)
    try:
        body = {"inputs": [{"name": "size", "datatype": "FP32", "shape": [1], "data": [3]}]}
        answer = requests.post("http://" + server.base + "/v2/models/grown/infer", json=body, timeout=30)
        assert answer.json()["outputs"] == [{"name": "OUTPUT__0", "shape": [3], "datatype": "INT64", "data": [0, 1, 2]}]
        with grpc_client.InferenceServerClient(server.base) as client:
            logits = grpc_client.InferInput("logits", [1, 2], "FP32")
            logits.set_data_from_numpy(np.array([[0, 1]], np.float32))
            answer = client.infer("scores", [logits])
            assert answer.as_numpy("label").dtype == np.int64 and answer.as_numpy("label").tolist() == [1]
    finally:
        server.stop()
