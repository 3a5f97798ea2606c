# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Nothing that was acknowledged is lost: not by kill -9, not by a full disk, not by processes and stores that fail."""
import contextlib
import random
import subprocess
import threading
import time

import pytest

pytest.importorskip("yaml")

from control_fixtures import IRIS, models
from control_server import ControlServer, Refused, until

def small(name, namespace="storm"):
    return f"""
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  predictor:
    model:
      modelFormat: {{name: onnx}}
      storageUri: file://${{models}}/onnx
"""


def test_what_was_acknowledged_outlives_a_killed_server(tmp_path, models):
    acknowledged, deleted, generator = {}, [], random.Random(7)
    server = ControlServer(tmp_path, values={"models": models})
    server.apply("custom.yaml")
    server.steady("custom-model")
    for _ in range(2):
        stop = threading.Event()

        def applying():
            while not stop.is_set():
                # One that was deleted is not applied again: it would be gone once its deletion is through.
                name = f"storm-{generator.randrange(30)}-{len(deleted)}"
                try:
                    if generator.random() < 0.2 and acknowledged:
                        name = generator.choice(sorted(acknowledged))
                        acknowledged.pop(name)
                        deleted.append(name)
                        server.delete(name, "storm")
                    else:
                        acknowledged.pop(name, None)
                        label = str(generator.randrange(10**6))
                        server.apply(small(name).replace("namespace: storm}", f"namespace: storm, labels: {{run: '{label}'}}}}"))
                        acknowledged[name] = label
                except (OSError, Refused):
                    acknowledged.pop(name, None)
                    continue
                except Exception:
                    acknowledged.pop(name, None)
                    if server.process.poll() is not None:
                        return

        thread = threading.Thread(target=applying)
        thread.start()
        time.sleep(1 + generator.random())
        server.process.kill()
        stop.set()
        thread.join()
        server.process.wait()
        server = ControlServer(tmp_path, values={"models": models})
        for name, label in acknowledged.items():
            assert server.get(name, "storm")["metadata"]["labels"]["run"] == label
    assert acknowledged
    for name in acknowledged:
        server.steady(name, "storm")
        assert len(server.predict(name, IRIS, namespace="storm")) == 2
    server.steady("custom-model")
    assert server.predict("custom-model", [[1]]) == [10]
    assert server.stop() in (0, 143, -15)
    restarted = ControlServer(tmp_path, values={"models": models})
    for name in acknowledged:
        restarted.steady(name, "storm")
    restarted.steady("custom-model")
    assert restarted.predict("custom-model", [[2]]) == [20]
    assert restarted.stop() in (0, 143, -15)


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path, models):
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"A FULL DISK IS NOT TESTED: no tmpfs can be mounted here ({done.stderr.strip()})")
    try:
        server = ControlServer(disk, values={"models": models})
        server.apply(small("before"))
        server.steady("before", "storm")
        filler = disk / "filler"
        refused, acknowledged = [], ["before"]
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        for i in range(60):
            try:
                server.apply(small(f"full-{i}"))
                acknowledged.append(f"full-{i}")
            except Refused as e:
                refused.append(e)
        assert refused and all(e.status >= 500 for e in refused), [e.status for e in refused]
        assert len(server.predict("before", IRIS, namespace="storm")) == 2
        filler.unlink()
        until(lambda: try_apply(server, small("after")), "changes are taken again")
        acknowledged.append("after")
        server.steady("after", "storm")
        server.process.kill()
        server.process.wait()
        server = ControlServer(disk, values={"models": models})
        for name in acknowledged:
            server.get(name, "storm")
        server.steady("after", "storm")
        assert server.stop() in (0, 143, -15)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def try_apply(server, text):
    try:
        return server.apply(text)
    except Refused:
        return None


