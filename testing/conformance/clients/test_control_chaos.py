# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Nothing that was acknowledged is lost: not by kill -9, not by a full disk, not by processes and stores that fail."""
import contextlib
import http.client
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest

pytest.importorskip("yaml")

from control_fixtures import IRIS, models
from control_server import ControlServer, Refused, until
from s3_server import S3

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
                # A deleted service is not applied again: it would vanish when its deletion completes.
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
    assert server.stop() == 0
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
        assert server.stop() == 0
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def try_apply(server, text):
    try:
        return server.apply(text)
    except Refused:
        return None




# --- all of it at once ----------------------------------------------------------------------------------------------------

TRY_AGAIN = (502, 503, 504)


class Storm:
    """A server under constant requests and resource changes, while its environment fails."""

    def __init__(self, disk, s3, values):
        self.disk, self.s3, self.values = disk, s3, values
        self.server = self.serve()
        self.over = threading.Event()
        self.answered, self.again, self.wrong = {}, {}, []
        self.acknowledged, self.refusals, self.accepted = {}, 0, 0
        self.threads = []

    def serve(self):
        # fetched models are stored elsewhere, because their cache keeps a gigabyte of disk free
        return ControlServer(
            None, "--control-directory", self.disk / "control", "--model-cache", self.disk.parent / "cache", values=self.values)

    def begin(self):
        asking = [("custom-model", [[1, 2]], [30.0]), ("custom-model", [[5]], [50.0]), ("before", IRIS, [[0], [2]]),
                  ("from-s3", IRIS, [[0], [2]]), ("transformer-v1", [[10 * x for x in row] for row in IRIS], [[0], [2]])]
        for name, rows, expected in asking:
            self.threads.append(threading.Thread(target=self.ask, args=(name, rows, expected)))
        self.threads.append(threading.Thread(target=self.write))
        for thread in self.threads:
            thread.start()

    def ask(self, name, rows, expected):
        """Sends requests continuously. A failed request is retried; every response must be correct."""
        namespace = "storm" if name == "before" else "demo"
        while not self.over.is_set():
            try:
                status, headers, answer = self.server.call(
                    name, f"/v1/models/{name}:predict", {"instances": rows}, namespace, timeout=20)
            except (OSError, http.client.HTTPException):
                self.again["no connection"] = self.again.get("no connection", 0) + 1
                self.over.wait(0.05)
                continue
            if status == 200:
                said = [p["label"] if isinstance(p, dict) else p for p in answer["predictions"]]
                if said != expected:
                    self.wrong.append((name, said))
                self.answered[name] = self.answered.get(name, 0) + 1
            elif status in TRY_AGAIN:
                self.again[status] = self.again.get(status, 0) + 1
                self.over.wait(0.05)
            else:
                self.wrong.append((name, status, answer))

    def write(self):
        generator, made = random.Random(11), 0
        while not self.over.is_set():
            try:
                if len(self.acknowledged) > 12:
                    name = generator.choice(sorted(self.acknowledged))
                    self.acknowledged.pop(name)
                    self.server.delete(name, "storm")
                else:
                    made += 1
                    self.server.apply(
                        small(f"storm-{made}").replace("namespace: storm}", f"namespace: storm, labels: {{run: 'r{made}'}}}}"))
                    self.acknowledged[f"storm-{made}"] = f"r{made}"
                self.accepted += 1
            except Refused as e:
                self.refusals += 1
                if e.status < 500:
                    self.wrong.append(("apply", str(e)))
            except (OSError, http.client.HTTPException):
                pass
            self.over.wait(0.1)

    # the failures

    def kill_a_child(self, generator):
        def pid():
            try:
                name = generator.choice(["custom-model", "transformer-v1"])
                return self.server.call(name, f"/v1/models/{name}", timeout=5)[1].get("x-process")
            except OSError:
                return None

        with contextlib.suppress(ProcessLookupError):
            os.kill(int(until(pid, "there is a process to kill")), signal.SIGKILL)

    def break_the_store(self, generator):
        folder = f"fresh-{generator.randrange(10**9)}"
        shutil.copytree(self.s3.folder / "bucket/onnx", self.s3.folder / "bucket" / folder)
        self.s3.down = True
        text = self.server.text("s3.yaml", name="from-s3", endpoint=self.s3.address, secret="open sesame")
        self.server.apply(text.replace("bucket/onnx", f"bucket/{folder}"))
        until(lambda: self.server.get("from-s3")["status"]["modelStatus"].get("lastFailureInfo"), "the store's failure is reported")
        self.s3.down = False
        self.server.steady("from-s3")

    def fill_the_disk(self, generator):
        if not self.disk.is_mount():
            return
        before = self.refusals
        filler = self.disk / "filler"
        try:
            with open(filler, "wb", buffering=0) as file:
                def full():
                    with contextlib.suppress(OSError):
                        while True:
                            file.write(b"x" * 4096)
                    return self.refusals > before

                until(full, "changes are refused")
        finally:
            filler.unlink()
        accepted = self.accepted
        until(lambda: self.accepted > accepted, "changes are taken again")

    def kill_the_server(self, generator):
        self.server.process.kill()
        self.server.process.wait()
        self.server = self.serve()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def test_a_storm_loses_nothing(tmp_path, models):
    disk, generator = tmp_path / "disk", random.Random(17)
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(disk)], capture_output=True, text=True)
    if mounted.returncode != 0:
        print(f"THE DISK DOES NOT FILL IN THIS STORM: no tmpfs can be mounted here ({mounted.stderr.strip()})")
    shutil.copytree(models / "onnx", tmp_path / "s3/bucket/onnx")
    s3 = S3(tmp_path / "s3", "reader", "open sesame")
    storm = Storm(disk, s3, {"models": models})
    try:
        storm.server.apply("custom.yaml")
        storm.server.apply("transformer-v1.yaml")
        storm.server.apply("s3.yaml", name="from-s3", endpoint=s3.address, secret="open sesame")
        storm.server.apply(small("before"))
        for name, namespace in (("custom-model", "demo"), ("transformer-v1", "demo"), ("from-s3", "demo"), ("before", "storm")):
            storm.server.steady(name, namespace)
        storm.begin()
        troubles = [storm.kill_a_child, storm.kill_a_child, storm.fill_the_disk, storm.break_the_store] * 2
        generator.shuffle(troubles)
        for i, trouble in enumerate([*troubles[:3], storm.kill_the_server, *troubles[3:6], storm.kill_the_server, *troubles[6:]]):
            trouble(generator)
            reported = dict(storm.answered)
            until(lambda: storm.wrong or sum(storm.answered.values()) > sum(reported.values()) + 50, f"answers go on after {trouble}")
            assert not storm.wrong, (i, trouble, storm.wrong[:5], "".join(storm.server.lines[-30:]))
        asked = ("custom-model", "transformer-v1", "from-s3", "before")
        reported = dict(storm.answered)
        until(lambda: all(storm.answered[n] > reported[n] + 10 for n in asked), "every service answers again")
        storm.end()
        assert not storm.wrong, storm.wrong[:5]
        print("answered", storm.answered, "retried", storm.again, "changes", storm.accepted, "rejected", storm.refusals)
        assert storm.acknowledged
        for name, label in storm.acknowledged.items():
            assert storm.server.get(name, "storm")["metadata"]["labels"]["run"] == label
        for name in storm.acknowledged:
            storm.server.steady(name, "storm")
            assert len(storm.server.predict(name, IRIS, namespace="storm")) == 2
        for name in ("custom-model", "transformer-v1", "from-s3"):
            storm.server.steady(name)
        assert storm.server.stop() in (0, 143, -15)
    finally:
        storm.end()
        storm.server.process.kill()
        s3.close()
        subprocess.run(["umount", "-l", str(disk)], check=False, capture_output=True)
