# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The process: drain, invalid command lines, ports in use."""
import json
import socket
import subprocess
import threading

import pytest

import models
from server import Server, program, samples, until

ONE = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})


@pytest.fixture
def slow(tmp_path):
    models.add_identity(tmp_path, "slow", "FP32", models.delay(3000))
    return tmp_path


def test_sigterm_lets_requests_finish_and_says_not_ready_first(slow):
    server = Server(slow, environment=samples())
    answers = []
    worker = threading.Thread(target=lambda: answers.append(server.ask("POST", "/v2/models/slow/infer", ONE)))
    health = socket.create_connection((server.host, server.port), 10)
    health.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 200 " in health.recv(65536)
    worker.start()
    until(lambda: server.metric("nereid_exchanges_in_flight") > 1, "the request is in flight")
    server.terminate()
    until(lambda: any("draining" in line for line in server.lines), "it says that it drains")

    def refuses():
        try:
            health.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
            return b" 503 " in health.recv(65536)
        except OSError:
            return False

    not_ready = refuses()
    worker.join(20)
    assert answers and answers[0][0] == 200, answers
    server.process.wait(20)
    assert not_ready, "an open connection did not get the answer that the server is not ready"
    assert any("stopped" in line for line in server.lines)


def test_the_drain_is_bounded(slow):
    (slow / "slow" / "config.pbtxt").write_text((slow / "slow" / "config.pbtxt").read_text().replace("3000", "20000"))
    server = Server(slow, "--drain-timeout", "1s", environment=samples())

    def ask():
        try:
            server.ask("POST", "/v2/models/slow/infer", ONE)
        except OSError:
            pass

    threading.Thread(target=ask, daemon=True).start()
    until(lambda: server.metric("nereid_exchanges_in_flight") > 1, "the request is in flight")
    server.terminate()
    server.process.wait(10)


def run(*arguments):
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def test_a_port_in_use(slow):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", slow, "--port", taken.getsockname()[1])
    assert done.returncode == 1
    assert "Address already in use" in done.stderr and "choose another" in done.stderr
    assert "\tat " not in done.stderr


@pytest.mark.parametrize("arguments,code,text", [
    (["serve", "/nonexistent"], 1, "there is no"),
    (["serve"], 1, "no models given"),
    (["serve", ".", "--prot", "1"], 2, "--port"),
    (["serve", ".", "--port", "x"], 2, "port"),
    (["serve", ".", "--drain-timeout", "soon"], 2, "soon"),
    (["frobnicate"], 2, "frobnicate"),
])
def test_a_wrong_command_line(arguments, code, text):
    done = run(*arguments)
    assert (done.returncode, text in done.stderr) == (code, True), done.stderr
    assert "\tat " not in done.stderr


def test_a_wrong_key_is_named_with_its_line(slow):
    config = slow / "slow" / "config.pbtxt"
    config.write_text(config.read_text() + "max_batch_sise: 3\n")
    done = run("validate", slow)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "max_batch_sise" in said and "config.pbtxt" in said and "max_batch_size" in said
