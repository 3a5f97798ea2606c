# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures of the control plane suites: models, a server for each suite, and common requests."""
import concurrent.futures
import json
import shutil
import tarfile
import time

import pytest

pytest.importorskip("yaml")

from cluster import NODE, ClusterServer, cluster, on_cluster
from control_server import ControlServer, Web
from server import EXAMPLES, ROOT

SKLEARN = ROOT / "backends/sklearn/src/test/resources/models/1.9.1"
TREES = ROOT / "backends/trees/src/test/resources/models"
XGBOOST = TREES / "xgboost/multi-softprob-gbtree-missing"
LIGHTGBM = TREES / "lightgbm/multiclass-gbdt-missing"
IRIS = [[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]]


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    onnx = EXAMPLES / "iris/1/model.onnx"
    copy(SKLEARN / "forest.joblib", root / "sklearn/model.joblib")
    copy(XGBOOST.with_suffix(".json"), root / "xgboost/model.json")
    copy(LIGHTGBM.with_suffix(".txt"), root / "lightgbm/model.bst")
    copy(onnx, root / "onnx/model.onnx")
    for version in (1, 2):
        copy(onnx, root / f"versions/{version}/model.onnx")
    for model in ("iris", "simple"):
        shutil.copytree(EXAMPLES / model, root / "repository" / model)
    (root / "broken").mkdir()
    (root / "broken/model.onnx").write_bytes(b"this is not a model")
    with tarfile.open(root / "iris.tar.gz", "w:gz") as archive:
        archive.add(onnx, "model.onnx")
    return root


@pytest.fixture(scope="module")
def web(models):
    web = Web(models, NODE) if on_cluster() else Web(models)
    yield web
    web.close()


def here_only(reason):
    """A test of what only the control plane of one machine has."""
    return pytest.mark.skipif(on_cluster(), reason=f"one machine only: {reason}")


def over(server):
    """The server still runs, and stops at once, because no request is in progress."""
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    start = time.monotonic()
    assert server.stop() == 0, "".join(server.lines)
    assert time.monotonic() - start < 10, "something was under way:\n" + "".join(server.lines)


@pytest.fixture(scope="module")
def plane(tmp_path_factory, models, web):
    if on_cluster():
        server = ClusterServer(cluster(), models)
        yield server
        server.close()
        return
    root = tmp_path_factory.mktemp("plane")
    # No plugin is installed, whatever the machine has: the suite tests the resulting messages.
    without = {"NEREID_PLUGIN_DIR": str(root / "plugins")}
    server = ControlServer(root, values={"models": models}, environment=without)
    yield server
    over(server)


def applied(plane, file, name, /, **values):
    plane.apply(file, **values)
    return plane.steady(name)


def sklearn_rows():
    entry = json.loads((SKLEARN / "expected.json").read_text())["forest"]
    return entry["rows"][:2], entry["answers"]


def shares(plane, name, count):
    """Counts the returned sums, over kept-alive connections."""
    def some(part):
        return [plane.predict(name, [[1]])[0] for _ in range(part)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [a for part in pool.map(some, [count // 4] * 4) for a in part]
    return {a: answers.count(a) / len(answers) for a in set(answers)}


def replicas(plane, name):
    return plane.get(name)["status"]["modelStatus"]["copies"]["totalCopies"]
