# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel into a new environment on a machine without Java, and uses the command and the Python API."""

import glob
import os
import re
import subprocess
import sys
import time

# Bytes: the limit of a file on PyPI is 100 MB until more is granted.
MOST = 130e6
SCRIPT = """
import pathlib, sys
import nereid

model, onnx = sys.argv[1:]
with nereid.serve(model, onnx) as server:
    client = server.client()
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("model")
    assert not client.is_model_ready("other")
    first = client.get_model_metadata("model")["inputs"][0]
    columns = first["shape"][-1]
    one = client.infer("model", {first["name"]: [[0.5] * columns, [1.5] * columns]})
    assert all(len(value) == 2 for value in one.values()), one
    iris = client.infer("iris", {"input": [[5.1, 3.5, 1.4, 0.2]]}, outputs=["label"])
    assert list(iris) == ["label"] and str(iris["label"]).strip("[]") == "0", iris
    try:
        import numpy
    except ImportError:
        numpy = None
    if numpy is not None:
        array = numpy.array([[5.1, 3.5, 1.4, 0.2]], dtype=numpy.float32)
        assert client.infer("iris", {"input": array})["probabilities"].shape == (1, 3)
    for wrong, status in ((lambda: client.infer("iris", {"input": [[1.0]]}), 400), (lambda: client.get_model_metadata("none"), 404)):
        try:
            wrong()
            raise SystemExit("it was not refused")
        except nereid.InferenceServerException as e:
            assert e.status == status, (e.status, e)
    url = server.url
assert not server.running()
try:
    nereid.Client(url, timeout=5).is_server_live()
    raise SystemExit("it still answers")
except nereid.InferenceServerException as e:
    assert e.status == 0
try:
    nereid.serve(__file__)
    raise SystemExit("it served a Python file")
except nereid.ServerError as e:
    assert "ended with 1" in str(e), e
try:
    nereid.serve("absent.onnx")
    raise SystemExit("it served what is not there")
except FileNotFoundError:
    pass
print("numpy" if numpy is not None else "lists", nereid.__version__)
"""


def check_wheel(release, work, tools, root, check, skip, wait_ready, free_port):
    [wheel] = glob.glob(os.path.join(release, "nereid-*_x86_64.whl"))
    size = os.path.getsize(wheel)
    check(size <= MOST, f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB, at most {MOST / 1e6:.0f}")
    venv = os.path.join(work, "venv")
    try:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except subprocess.CalledProcessError as e:
        skip(f"the wheel: Python has no venv here ({e.stderr.decode(errors='replace').strip()[-200:]})")
        return
    python = os.path.join(venv, "bin/python")
    # Nothing of this machine but the shell's tools: no Java.
    env = {"PATH": os.path.join(venv, "bin") + ":" + tools, "HOME": os.path.join(work, "absent"), "PYTHONDONTWRITEBYTECODE": "1"}
    begun = time.monotonic()
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel], env=env, check=True
    )
    installed = time.monotonic() - begun
    models = os.path.join(work, "wheel-models")
    os.makedirs(models)
    pickled = sorted(glob.glob(os.path.join(root, "backends/sklearn/src/test/resources/models/*/knn_reg.joblib")))[-1]
    model, onnx = os.path.join(models, "model.joblib"), os.path.join(models, "iris.onnx")
    os.symlink(pickled, model)
    os.symlink(os.path.join(root, "examples/models/iris/1/model.onnx"), onnx)

    port = free_port()
    begun = time.monotonic()
    process = subprocess.Popen(
        [os.path.join(venv, "bin/nereid"), "serve", model, "--port", str(port)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    ready = wait_ready(port, lambda: process.poll() is None)
    process.terminate()
    output = process.communicate(timeout=60)[0].decode(errors="replace")
    check(ready is not None, f"pip install took {installed:.1f} s; nereid serve model.joblib is ready after {time.monotonic() - begun:.1f} s" if ready else output)
    shared = subprocess.run(
        [os.path.join(venv, "bin/nereid"), "version"], env={**env, "NEREID_JAVA_OPTS": "-Xlog:class+load:stdout"}, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    loaded = re.search(r"io\.nereid\.app\.Main source: (.*)", shared)
    check(loaded is not None and "shared objects file" in loaded.group(1), f"installed, its classes come from the archive: {loaded and loaded.group(1)}")

    script = os.path.join(work, "use.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    used = subprocess.run([python, script, model, onnx], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(used.returncode == 0, f"nereid.serve and nereid.Client without NumPy: {used.stdout.strip()[-1500:]}")
    more = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "numpy"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if more.returncode != 0:
        skip(f"the wheel's client with NumPy: pip could not install it ({more.stdout.strip()[-200:]})")
    else:
        used = subprocess.run([python, script, model, onnx], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        check(used.returncode == 0 and used.stdout.startswith("numpy"), f"with NumPy: {used.stdout.strip()[-1500:]}")
    subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "nereid"], env=env, check=True)
    left = glob.glob(os.path.join(venv, "lib/python*/site-packages/nereid*"))
    check(not left, f"pip uninstall leaves nothing {left or ''}")
