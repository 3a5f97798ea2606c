# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts the program from its distribution on a free port, and sends it plain HTTP requests."""
import glob
import http.client
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell that starts the tests in the background ignores Ctrl-C for them, and programs started from here would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "models"
FIXTURES = ROOT / "backends" / "onnx" / "src" / "test" / "resources" / "models"


def samples():
    """The environment of a server with the test backends of testing/samples, and with no other plugin."""
    directory = ROOT / "testing" / "samples" / "target" / "plugins"
    if not list(directory.glob("samples/*.jar")):
        raise RuntimeError(f"no test backends in {directory} (expected: ./mvnw -Pquick -DskipTests package)")
    return {"NEREID_PLUGIN_DIR": str(directory)}


def program():
    given = os.environ.get("NEREID_BIN")
    if given:
        return given
    found = sorted(glob.glob(str(ROOT / "apps/nereid/target/dist/nereid-*/bin/nereid")))
    if not found:
        raise RuntimeError("no distribution in apps/nereid/target/dist (expected: ./mvnw -Pquick -DskipTests package)")
    return found[-1]


class Address:
    """Plain HTTP requests to `base`, which is host:port."""

    base = None

    @property
    def host(self):
        return self.base.split(":")[0]

    @property
    def port(self):
        return int(self.base.split(":")[1])

    def ask(self, method, path, body=None, headers=None, timeout=30):
        """(status, headers, body bytes)"""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
        finally:
            connection.close()


class Server(Address):
    """One process of the server. `base` is host:port; `environment` is added to that of the tests."""

    def __init__(self, *arguments, start_timeout=120, environment=None):
        self.lines = []
        self.ready = threading.Event()
        self.base = None
        self.process = subprocess.Popen(
            [program(), "serve", *map(str, arguments), "--port", "0"],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._read, daemon=True).start()
        if not self.ready.wait(start_timeout) or not self.base:
            self.process.kill()
            raise RuntimeError("the server did not start:\n" + "".join(self.lines))

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            address = re.search(r"listening on https?://(\S+:\d+)", line)
            if address:
                self.base = address.group(1)
                self.ready.set()
        self.ready.set()

    def metric(self, name):
        page = self.ask("GET", "/metrics")[2].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if re.match(name + r"[ {]", line))

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        if self.process.poll() is None:
            self.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        return self.process.returncode


def until(condition, what, timeout=20):
    """Waits until a condition holds; fails with its description."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"within {timeout} s it did not happen that {what}")
