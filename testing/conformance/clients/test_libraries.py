# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Models that the Python libraries train during the test, in their current versions and in two older ones: each has an environment of its
own, which trains and saves the models of make_fixtures.py; served without configuration, they answer as the libraries do."""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from server import ROOT, Server

SCRIPT = ROOT / "backends" / "sklearn" / "src" / "test" / "scripts" / "make_fixtures.py"
CACHE = pathlib.Path(os.environ.get("NEREID_CLIENTS_CACHE", ROOT / "testing" / "conformance" / "target" / "clients")) / "libraries"
VERSIONS = {
    "current": ["scikit-learn", "numpy", "pandas", "joblib", "skops", "xgboost-cpu", "lightgbm", "catboost"],
    "1.5.2": ["scikit-learn==1.5.2", "numpy<2", "pandas<3", "joblib<1.5", "xgboost-cpu==2.1.4", "lightgbm==4.6.0", "catboost==1.2.5"],
    "1.1.3": ["scikit-learn==1.1.3", "numpy==1.23.5", "pandas<2", "scipy<1.11", "joblib<1.4", "xgboost==1.7.6", "lightgbm==3.3.5",
              "catboost==1.2"],
}
# What scikit-learn has and Nereid does not compute.
LEFT_OUT = {"transform", "predict_log_proba"}


def environment(version):
    """The interpreter of an environment with the libraries."""
    directory = CACHE / version
    python = directory / "bin" / "python"
    # Made again when the list above has changed, and never used half made.
    mark = directory / "installed.txt"
    wanted = "\n".join(VERSIONS[version])
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(directory)], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no environment for scikit-learn {version}: {made.stderr.strip().splitlines()[-1:]}")
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "2", *VERSIONS[version]],
            capture_output=True, text=True, timeout=900)
        if done.returncode:
            pytest.skip(f"pip could not install scikit-learn {version}: {done.stderr.strip().splitlines()[-1:]}")
        mark.write_text(wanted)
    return python


def category(value):
    """A category; a missing one is an empty text."""
    return "" if value != value else str(value)


def inputs(metadata, case):
    """The inputs of a request with the rows of a case."""
    rows = [[math.nan if v is None else v for v in row] for row in case["rows"]]
    specs = metadata["inputs"]
    if len(specs) == 1:
        width = len(rows[0])
        text = specs[0]["datatype"] == "BYTES"
        shape = [len(rows)] if text and width == 1 and len(specs[0]["shape"]) == 1 else [len(rows), width]
        data = [str(v) if text else float(v) for row in rows for v in row]
        return [{"name": specs[0]["name"], "shape": shape, "datatype": specs[0]["datatype"], "data": data}]
    return [
        {"name": s["name"], "shape": [len(rows)], "datatype": s["datatype"],
         "data": [category(row[i]) if s["datatype"] == "BYTES" else float(row[i]) for row in rows]}
        for i, s in enumerate(specs)]


def differences(name, method, case, output):
    """What differs between an output and the library's answer, in words."""
    wanted = np.array([[math.nan if v is None else v for v in row] if isinstance(row, list) else row for row in case["answers"][method]])
    got = np.array(output["data"])
    if output["datatype"] == "BYTES":
        return [] if got.tolist() == wanted.ravel().tolist() else [f"{name} {method}: labels differ"]
    # Of numbers, NaN and the infinities are texts in the file.
    wanted, got = wanted.astype(np.float64), got.astype(np.float64)
    if list(wanted.shape) != output["shape"]:
        return [f"{name} {method}: shape {output['shape']}, not {list(wanted.shape)}"]
    wanted = wanted.ravel()
    finite = np.isfinite(wanted)
    if not np.array_equal(wanted[~finite], got[~finite], equal_nan=True):
        return [f"{name} {method}: what is missing or infinite differs"]
    largest = np.max(np.abs(wanted[finite]), initial=0)
    error = np.max(np.abs(wanted[finite] - got[finite]), initial=0)
    allowed = case.get("tolerance", 1e-9) * largest
    return [] if error <= allowed else [f"{name} {method}: differs by {error} (allowed: {allowed})"]


@pytest.mark.parametrize("version", list(VERSIONS))
def test_models_answer_as_the_library_that_trained_them(tmp_path, version):
    if version != "current" and os.environ.get("NEREID_LIBRARIES") != "all":
        pytest.skip(f"scikit-learn {version}: minutes of training; NEREID_LIBRARIES=all includes it")
    python = environment(version)
    made = subprocess.run(
        [str(python), str(SCRIPT), str(tmp_path / "made")], capture_output=True, text=True, timeout=900, cwd=tmp_path)
    assert made.returncode == 0, made.stderr[-2000:]
    (directory,) = (tmp_path / "made").iterdir()
    cases = json.loads((directory / "expected.json").read_text())
    for name, case in cases.items():
        (tmp_path / "models" / name / "1").mkdir(parents=True)
        file = directory / case["file"]
        shutil.copy(file, tmp_path / "models" / name / "1" / ("model" + file.suffix))
    server = Server(tmp_path / "models", "--exit-on-error=false")
    wrong, compared = [], 0
    try:
        for name, case in cases.items():
            status, _, answer = server.ask("GET", f"/v2/models/{name}")
            if status != 200:
                wrong.append(f"{name}: {answer.decode()[:300]}")
                continue
            given = inputs(json.loads(answer), case)
            for method in case["answers"]:
                body = {"inputs": given, "outputs": [{"name": method}]}
                status, _, answer = server.ask("POST", f"/v2/models/{name}/infer", json.dumps(body))
                if status == 200:
                    wrong += differences(name, method, case, json.loads(answer)["outputs"][0])
                    compared += 1
                elif method not in LEFT_OUT or b"unexpected inference output" not in answer:
                    wrong.append(f"{name} {method}: {answer.decode()[:300]}")
    finally:
        server.stop()
    assert not wrong, "\n".join(wrong[:20])
    assert len(cases) > 200 and compared > 300
    print(f"scikit-learn {directory.name}: {len(cases)} models, {compared} results")
