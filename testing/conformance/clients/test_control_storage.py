# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models from stores that require credentials, configured as in KServe's documentation, and from stores that fail."""
import shutil

import pytest

pytest.importorskip("yaml")

from control_fixtures import IRIS, applied, models, plane, sklearn_rows, web
from control_server import Refused, until
from s3_server import S3


@pytest.fixture(scope="module")
def s3(tmp_path_factory, models):
    root = tmp_path_factory.mktemp("s3")
    for model in ("onnx", "sklearn"):
        shutil.copytree(models / model, root / "bucket" / model)
    # shares the prefix, and is not part of the model
    (root / "bucket/onnx-other").mkdir()
    (root / "bucket/onnx-other/model.onnx").write_bytes(b"this is not a model")
    store = S3(root, "reader", "open sesame")
    yield store
    store.close()


def failure(plane, name):
    def reported():
        return plane.get(name).get("status", {}).get("modelStatus", {}).get("lastFailureInfo")

    return until(reported, "the failure is reported")


def labels(plane, name):
    return [p["label"] for p in plane.predict(name, IRIS)]


def test_a_bucket_is_read_with_the_secret_of_the_service_account(plane, s3):
    applied(plane, "s3.yaml", "from-s3", name="from-s3", endpoint=s3.address, secret="open sesame")
    assert labels(plane, "from-s3") == [[0], [2]]
    assert s3.refused == 0
    secret = plane.api("GET", "/api/v1/namespaces/demo/secrets/from-s3")
    assert "open sesame" not in str(secret) and "stringData" not in secret


def test_a_wrong_secret_is_told_without_saying_it_and_a_right_one_helps_at_once(plane, s3):
    plane.apply("s3.yaml", name="locked-out", endpoint=s3.address, secret="open barley")
    reported = failure(plane, "locked-out")
    assert reported["reason"] == "ModelLoadFailed" and "403" in reported["message"], reported
    assert "barley" not in str(plane.get("locked-out"))
    applied(plane, "s3.yaml", "locked-out", name="locked-out", endpoint=s3.address, secret="open sesame")
    assert labels(plane, "locked-out") == [[0], [2]]


def test_storage_and_storage_config_say_where_models_are(plane, s3):
    rows, answers = sklearn_rows()
    applied(plane, "storage-config.yaml", "storage-spec", endpoint=s3.address)
    assert plane.predict("storage-spec", rows) == answers["predict"][:2]
    text = plane.text("storage-config.yaml", endpoint=s3.address).replace("key: localMinIO", "key: absent")
    plane.apply(text.replace("name: storage-spec", "name: storage-absent"))
    assert "absent" in failure(plane, "storage-absent")["message"]
    plane.delete("storage-absent")


def test_headers_of_a_secret_open_a_web_server(plane, web):
    web.wanted = {"X-Token": "open sesame"}
    try:
        plane.apply(plane.text("archive.yaml", url=f"{web.url}/iris.tar.gz?closed").replace("archived", "closed"))
        assert "401" in failure(plane, "closed")["message"]
        plane.apply(f"""
apiVersion: v1
kind: Secret
metadata: {{name: token, namespace: demo}}
stringData:
  https-host: {web.url.removeprefix("http://")}
  headers: '{{"X-Token": "open sesame"}}'
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: visitor, namespace: demo}}
secrets: [{{name: token}}]
""")
        text = plane.text("archive.yaml", url=f"{web.url}/iris.tar.gz?closed").replace("archived", "closed")
        plane.apply(text.replace("  predictor:", "  predictor:\n    serviceAccountName: visitor"))
        plane.steady("closed")
        assert labels(plane, "closed") == [[0], [2]]
    finally:
        web.wanted = {}


def test_a_store_that_is_down_is_asked_again_until_it_is_up(plane, s3):
    shutil.copytree(s3.folder / "bucket/onnx", s3.folder / "bucket/not-seen-before")
    s3.down = True
    try:
        text = plane.text("s3.yaml", name="patient", endpoint=s3.address, secret="open sesame")
        plane.apply(text.replace("bucket/onnx", "bucket/not-seen-before"))
        assert "503" in failure(plane, "patient")["message"]
        assert plane.condition("patient")["status"] != "True"
    finally:
        s3.down = False
    plane.steady("patient")
    assert labels(plane, "patient") == [[0], [2]]


def test_bodies_that_end_halfway_are_fetched_to_their_end(plane, s3, models):
    big = s3.folder / "bucket/big"
    big.mkdir()
    shutil.copy(models / "onnx/model.onnx", big)
    (big / "notes.bin").write_bytes(bytes(range(256)) * 4096)
    s3.cut = 2
    plane.apply(plane.text("s3.yaml", name="cut", endpoint=s3.address, secret="open sesame").replace("bucket/onnx", "bucket/big"))
    plane.steady("cut")
    assert s3.cut == 0 and labels(plane, "cut") == [[0], [2]]


def test_what_was_fetched_serves_when_the_store_is_down(plane, s3):
    applied(plane, "s3.yaml", "from-s3", name="from-s3", endpoint=s3.address, secret="open sesame")
    s3.down = True
    try:
        text = plane.text("s3.yaml", name="from-s3", endpoint=s3.address, secret="open sesame")
        plane.apply(text.replace("modelFormat:", "env: [{name: NEW, value: revision}]\n      modelFormat:"))
        plane.steady("from-s3")
        assert labels(plane, "from-s3") == [[0], [2]]
    finally:
        s3.down = False


@pytest.mark.parametrize("uri, word", [
    ("s3:///nothing", "bucket"),
    ("git://example.com/a.git", "git"),
    ("models/iris", "models/iris"),
])
def test_places_that_cannot_be_are_told(plane, uri, word):
    try:
        plane.apply(plane.text("archive.yaml", url=uri).replace("archived", "nowhere"))
        message = failure(plane, "nowhere")["message"]
        plane.delete("nowhere")
        plane.gone("nowhere")
    except Refused as e:
        message = e.message
    assert word in message
