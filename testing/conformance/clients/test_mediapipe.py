# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""MediaPipe's face detectors (Apache-2.0), fetched from npm, find the face in a drawing as TensorFlow's interpreter does."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
import requests
import tritonclient.grpc as grpc_client

from server import Server, program

PACKAGE = "@mediapipe/face_detection@0.4.1657300184"
SHA256 = "a118cde74923dc4435257fbfbb613464a0f58d115dff6314d4ff96c8aebf6419"
# file, size of its picture, its outputs, anchor with the best score in TensorFlow 2.21's interpreter, its score, its box
DETECTORS = {
    "short": ("face_detection_short_range.tflite", 128, "regressors", "classificators", 724, 1.63543),
    "full": ("face_detection_full_range.tflite", 192, "reshaped_regressor_face_4", "reshaped_classifier_face_4", 1272, 0.63161),
    "sparse": ("face_detection_full_range_sparse.tflite", 192, "Identity", "Identity_1", 1224, 1.11587),
}


def picture(size):
    """A face as children draw it, from -1 to 1."""
    y, x = np.mgrid[0:size, 0:size] / size - 0.5
    image = np.full((size, size, 3), -0.2, np.float32)
    image[(x / 0.30) ** 2 + (y / 0.40) ** 2 < 1] = [0.75, 0.45, 0.25]
    for side in (-0.12, 0.12):
        image[((x - side) / 0.05) ** 2 + ((y + 0.10) / 0.03) ** 2 < 1] = [0.9, 0.9, 0.9]
        image[((x - side) / 0.02) ** 2 + ((y + 0.10) / 0.025) ** 2 < 1] = [-0.9, -0.9, -0.9]
        image[((x - side) / 0.07) ** 2 + ((y + 0.17) / 0.01) ** 2 < 1] = [-0.6, -0.7, -0.8]
    image[(x / 0.025) ** 2 + ((y - 0.03) / 0.07) ** 2 < 1] = [0.55, 0.25, 0.1]
    image[(x / 0.11) ** 2 + ((y - 0.19) / 0.03) ** 2 < 1] = [0.3, -0.6, -0.6]
    return image[None]


def package():
    """The package's archive, fetched once."""
    cache = pathlib.Path(os.environ.get("NEREID_CLIENTS_CACHE", pathlib.Path(__file__).parent.parent / "target" / "clients"))
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / "mediapipe-face_detection-0.4.1657300184.tgz"
    if not archive.exists():
        if shutil.which("npm") is None:
            pytest.skip("MediaPipe's models have not been fetched: there is no npm here")
        done = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=cache, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0 or not archive.exists():
            pytest.skip(f"MediaPipe's models could not be fetched: {done.stderr.strip()[-200:]}")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == SHA256
    return archive


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    listed = subprocess.run([program(), "plugins", "list"], capture_output=True, text=True, check=True).stdout
    if "not installed" in next(line for line in listed.splitlines() if line.split()[:1] == ["tflite"]):
        pytest.skip("the plugin is not installed: nereid plugins install tflite")
    models = tmp_path_factory.mktemp("mediapipe")
    with tarfile.open(package()) as archive:
        for name, (file, *_) in DETECTORS.items():
            (models / name / "1").mkdir(parents=True)
            (models / name / "1" / "model.tflite").write_bytes(archive.extractfile("package/" + file).read())
    (models / "batched" / "1").mkdir(parents=True)
    shutil.copy(models / "short" / "1" / "model.tflite", models / "batched" / "1" / "model.tflite")
    (models / "batched" / "config.pbtxt").write_text('backend: "tflite"\nmax_batch_size: 4\n')
    running = Server(models)
    yield running
    running.stop()


@pytest.mark.parametrize("name", DETECTORS)
def test_metadata_is_that_of_the_file(server, name):
    _, size, boxes, scores, _, _ = DETECTORS[name]
    metadata = requests.get(f"http://{server.base}/v2/models/{name}", timeout=30).json()
    places = 896 if size == 128 else 2304
    assert [i["shape"] for i in metadata["inputs"]] == [[1, size, size, 3]]
    assert {o["name"]: o["shape"] for o in metadata["outputs"]} == {boxes: [1, places, 16], scores: [1, places, 1]}


@pytest.mark.parametrize("name", DETECTORS)
def test_the_face_is_found_over_grpc(server, name):
    _, size, boxes, scores, place, score = DETECTORS[name]
    with grpc_client.InferenceServerClient(server.base) as client:
        kind = client.get_model_metadata(name).inputs[0]
        tensor = grpc_client.InferInput(kind.name, [1, size, size, 3], "FP32")
        tensor.set_data_from_numpy(picture(size))
        answer = client.infer(name, [tensor])
    found = answer.as_numpy(scores)[0, :, 0]
    assert int(found.argmax()) == place
    assert found.max() == pytest.approx(score, abs=2e-3)
    # The centre of the box is the centre of the picture, relative to the anchor that detects it.
    assert answer.as_numpy(boxes).shape[1:] == (found.size, 16)


def test_the_face_is_found_over_v1_and_v2(server):
    _, size, boxes, scores, place, score = DETECTORS["short"]
    image = picture(size)
    answer = requests.post(
        f"http://{server.base}/v1/models/short:predict", json={"instances": image.tolist()}, timeout=60).json()
    found = np.array(answer["predictions"][0][scores])[:, 0]
    assert (int(found.argmax()), float(found.max())) == (place, pytest.approx(score, abs=2e-3))
    body = {
        "inputs": [{"name": "input", "datatype": "FP32", "shape": [1, size, size, 3], "data": image.ravel().tolist()}],
        "outputs": [{"name": scores}]}
    answer = requests.post(f"http://{server.base}/v2/models/short/infer", json=body, timeout=60).json()
    found = np.array(answer["outputs"][0]["data"])
    assert (int(found.argmax()), float(found.max())) == (place, pytest.approx(score, abs=2e-3))


def test_more_pictures_than_the_file_takes_are_refused(server):
    image = picture(128).tolist()
    answer = requests.post(f"http://{server.base}/v1/models/short:predict", json={"instances": image * 2}, timeout=60)
    assert answer.status_code == 400
    assert "[2,128,128,3]" in json.dumps(answer.json()) and "[1,128,128,3]" in json.dumps(answer.json())


def test_with_batches_configured_each_picture_is_answered(server):
    _, size, boxes, scores, place, score = DETECTORS["short"]
    images = np.concatenate([picture(size), np.zeros((1, size, size, 3), np.float32), picture(size)])
    with grpc_client.InferenceServerClient(server.base) as client:
        tensor = grpc_client.InferInput("input", [3, size, size, 3], "FP32")
        tensor.set_data_from_numpy(images)
        answer = client.infer("batched", [tensor])
    found = answer.as_numpy(scores)[:, :, 0]
    assert answer.as_numpy(boxes).shape == (3, 896, 16)
    assert [int(f.argmax()) for f in found[[0, 2]]] == [place, place]
    assert found.max(axis=1)[[0, 2]] == pytest.approx([score, score], abs=2e-3)
    assert found[1].max() < 0, "there is no face in nothing"
