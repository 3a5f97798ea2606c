# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of skl2onnx and onnxruntime-extensions through V2 gRPC, V2 REST and V1: the outputs of ONNX Runtime in Python."""
import json
import pathlib
import platform
import shutil
import zipfile

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")
extensions = pytest.importorskip("onnxruntime_extensions")

from server import ROOT, Server

PACKAGES = ROOT / "backends" / "onnx" / "src" / "test" / "resources" / "packages"
EXPECTED = json.loads((PACKAGES / "expected.json").read_text(encoding="utf-8"))
PLAIN = [name for name, case in EXPECTED.items() if not case["library"]]
CUSTOM = [name for name, case in EXPECTED.items() if case["library"]]
LIBRARY = "libonnxruntime_extensions4j_jni.so"


def add(repository, name, library=None):
    (repository / name / "1").mkdir(parents=True)
    shutil.copy(PACKAGES / f"{name}.onnx", repository / name / "1" / "model.onnx")
    if library:
        (repository / name / "config.pbtxt").write_text(
            f'max_batch_size: 0\nmodel_operations {{ op_library_filename: "{library}" }}\n'
        )
    return repository / name


def java_library(target):
    """The library for Java, from the jar that the build's tests use."""
    if platform.machine() != "x86_64":
        pytest.skip("NOT TESTED: operators of onnxruntime-extensions; their library is looked for on x86-64 only")
    place = pathlib.Path.home() / ".m2/repository/com/microsoft/onnxruntime/onnxruntime-extensions"
    jars = sorted(place.glob("*/onnxruntime-extensions-*.jar"))
    if not jars:
        pytest.skip(f"NOT TESTED: operators of onnxruntime-extensions; no jar in {place} (the build's tests bring it)")
    with zipfile.ZipFile(jars[-1]) as jar:
        target.write_bytes(jar.read(f"ai/onnxruntime/extensions/native/linux-x64/{LIBRARY}"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("packages")
    for name in PLAIN:
        add(repository, name)
    server = Server(repository)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def custom_server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("operators")
    for name in CUSTOM:
        java_library(add(repository, name, LIBRARY) / LIBRARY)
    server = Server(repository)
    yield server
    assert server.stop() == 0


def arrays(case):
    for name, given in case["inputs"].items():
        kind = object if given["type"] == "object" else given["type"]
        values = [v.encode() for v in given["data"]] if kind is object else given["data"]
        yield name, np.array(values, dtype=kind).reshape(given["shape"])


def same(got, wanted):
    wanted = np.array(wanted)
    if wanted.dtype.kind == "U":
        got = [v.decode() if isinstance(v, bytes) else v for v in np.array(got).ravel()]
        assert got == wanted.ravel().tolist()
    else:
        assert np.allclose(np.array(got, dtype=np.float64).reshape(wanted.shape), wanted, atol=1e-6)


def answers_as_its_package(server, name):
    case = EXPECTED[name]
    with triton.InferenceServerClient(server.base) as client:
        inputs = []
        for key, array in arrays(case):
            inputs.append(triton.InferInput(key, list(array.shape), "BYTES" if array.dtype == object else "FP32"))
            inputs[-1].set_data_from_numpy(array)
        result = client.infer(name, inputs)
        for output, wanted in case["outputs"].items():
            same(result.as_numpy(output), wanted)
    body = {
        "inputs": [
            {"name": k, "shape": v["shape"], "datatype": "BYTES" if v["type"] == "object" else "FP32", "data": v["data"]}
            for k, v in case["inputs"].items()
        ]
    }
    status, _, answer = server.ask("POST", f"/v2/models/{name}/infer", json.dumps(body))
    assert status == 200, answer
    outputs = {o["name"]: o["data"] for o in json.loads(answer)["outputs"]}
    for output, wanted in case["outputs"].items():
        same(outputs[output], wanted)
    columns = {k: np.array(v["data"], dtype=object).reshape(v["shape"]).tolist() for k, v in case["inputs"].items()}
    status, _, answer = server.ask("POST", f"/v1/models/{name}:predict", json.dumps({"inputs": columns}))
    assert status == 200, answer
    got = json.loads(answer)["outputs"]
    for output, wanted in case["outputs"].items():
        same(got[output] if len(case["outputs"]) > 1 else got, wanted)


@pytest.mark.parametrize("name", PLAIN)
def test_converted_classifiers_answer_as_in_python(server, name):
    answers_as_its_package(server, name)


@pytest.mark.parametrize("name", CUSTOM)
def test_operators_of_a_library_answer_as_in_python(custom_server, name):
    answers_as_its_package(custom_server, name)


def test_classes_come_with_their_names(server):
    case = EXPECTED["forest"]
    with triton.InferenceServerClient(server.base) as client:
        (key, array), = arrays(case)
        given = triton.InferInput(key, list(array.shape), "FP32")
        given.set_data_from_numpy(array)
        wanted = triton.InferRequestedOutput("output_probability", class_count=1)
        best = client.infer("forest", [given], outputs=[wanted]).as_numpy("output_probability")
    assert [b.decode().split(":")[2] for b in best.ravel()] == case["outputs"]["output_label"]


def test_the_library_for_python_is_told_apart(tmp_path):
    name = CUSTOM[0]
    library = pathlib.Path(extensions.get_library_path())
    shutil.copy(library, add(tmp_path, name, library.name) / library.name)
    server = Server(tmp_path, "--exit-on-error", "false")
    try:
        status, _, answer = server.ask("POST", f"/v2/repository/models/{name}/load", "{}")
        said = answer.decode() + "".join(server.lines)
        assert "is a module for Python" in said, said
    finally:
        server.stop()
