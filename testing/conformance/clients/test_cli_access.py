# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands and the real kubectl against a server that other machines can reach, with roles for namespaces."""
import os
import re
import shutil
import socket
import stat
import subprocess

import pytest

from server import Server, program, until

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: iris}
spec:
  predictor:
    minReplicas: 0
    model:
      modelFormat: {name: sklearn}
      storageUri: file:///models/iris
"""
ROLES = """
roles:
  team-a:
    permissions: [control]
    namespaces: [team-a]
"""


class Control:
    def __init__(self, directory, *options):
        self.directory = directory
        self.environment = {
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "HOME": str(directory),
            "KUBECONFIG": str(directory / "none"),
        }
        self.server = Server("--control", "--control-port", "0", *options, environment=self.environment)
        line = until(
            lambda: next((x for x in self.server.lines if "control API on" in x), None), "the control API listens"
        )
        self.line = line
        self.url = re.search(r"control API on (http://[^;\s]+)", line).group(1)
        self.secure = self.url.replace("http://", "https://")

    def nereid(self, *arguments, stdin=None):
        return self._run([program(), *map(str, arguments)], stdin)

    def kubectl(self, *arguments):
        return self._run(["kubectl", *map(str, arguments)], None)

    def _run(self, command, stdin):
        return subprocess.run(
            command,
            env={**os.environ, **self.environment},
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=90,
        )


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    directory = tmp_path_factory.mktemp("control")
    (directory / "access.yaml").write_text(ROLES)
    keys = directory / "keys.json"
    made = subprocess.run(
        [program(), "keys", "create", "team", "--role", "team-a", "--file", keys], capture_output=True, text=True
    )
    (directory / "team.key").write_text(made.stdout)
    (directory / "iris.yaml").write_text(SERVICE)
    running = Control(
        directory, "--host", "0.0.0.0", "--api-keys", keys, "--access-config", directory / "access.yaml"
    )
    yield running
    running.server.stop()


needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@needs_kubectl
def test_kubectl_needs_the_kubeconfig_where_other_machines_reach_the_port(control):
    assert "nereid kubeconfig" in control.line
    refused = control.kubectl("--server", control.url, "get", "ns")
    assert refused.returncode != 0
    assert "credentials" in refused.stderr
    file = control.directory / "owner.kubeconfig"
    written = control.nereid("kubeconfig", "--server", control.url, "--output", file)
    assert written.returncode == 0, written.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listed = control.kubectl("--kubeconfig", file, "get", "ns")
    assert "default" in listed.stdout, listed.stderr


@needs_kubectl
def test_a_key_for_a_namespace_is_forbidden_elsewhere(control):
    owner, team = control.directory / "o.kubeconfig", control.directory / "team.kubeconfig"
    control.nereid("kubeconfig", "--server", control.url, "-o", owner)
    control.nereid(
        "kubeconfig", "--server", control.url, "--token-file", control.directory / "team.key", "-n", "team-a", "-o", team
    )
    assert control.kubectl("--kubeconfig", owner, "create", "ns", "team-a").returncode == 0
    applied = control.kubectl("--kubeconfig", team, "apply", "-f", control.directory / "iris.yaml")
    assert "created" in applied.stdout, applied.stderr
    assert "iris" in control.kubectl("--kubeconfig", team, "get", "isvc").stdout
    for command in (
        ["apply", "-n", "default", "-f", control.directory / "iris.yaml"],
        ["get", "isvc", "-n", "default"],
        ["get", "isvc", "-A"],
        ["get", "ns"],
        ["delete", "ns", "team-a"],
    ):
        forbidden = control.kubectl("--kubeconfig", team, *command)
        assert forbidden.returncode != 0, command
        assert "Forbidden" in forbidden.stderr, (command, forbidden.stderr)
    assert control.kubectl("--kubeconfig", team, "delete", "isvc", "iris").returncode == 0


def test_the_commands_speak_tls_and_verify_the_certificate(control):
    certificate = control.directory / "data" / "nereid" / "control-cert.pem"
    known = control.nereid("get", "ns", "--server", control.secure, "--ca-cert", certificate)
    assert "default" in known.stdout, known.stderr
    unknown = control.nereid("get", "ns", "--server", control.secure)
    assert unknown.returncode == 1
    assert "--ca-cert" in unknown.stderr
    skipped = control.nereid("get", "ns", "--server", control.secure, "--insecure-skip-tls-verify")
    assert skipped.returncode == 0
    assert "is not verified" in skipped.stderr
    plain = control.nereid("models", "--url", f"https://127.0.0.1:{control.server.port}")
    assert plain.returncode == 1
    assert "http://" in plain.stderr


def test_login_keeps_the_token_and_the_authority(control):
    certificate = control.directory / "data" / "nereid" / "control-cert.pem"
    key = (control.directory / "team.key").read_text()
    assert control.nereid("login", control.secure, "--ca-cert", certificate, stdin="nrd_wrong").returncode == 1
    done = control.nereid("login", control.secure, "--ca-cert", certificate, stdin=key)
    assert done.returncode == 0, done.stderr
    stored = control.directory / "config" / "nereid" / "credentials.yaml"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    forbidden = control.nereid("get", "isvc", "-A", "--server", control.secure)
    assert forbidden.returncode == 1
    assert "nereid login has stored" in forbidden.stderr
    assert key.strip() not in done.stdout + done.stderr + forbidden.stderr
    assert control.nereid("logout", control.secure).returncode == 0


@needs_kubectl
def test_on_loopback_kubectl_needs_no_token(tmp_path):
    running = Control(tmp_path)
    try:
        listed = running.kubectl("--server", running.url, "get", "ns")
        assert "default" in listed.stdout, listed.stderr
        assert running.nereid("get", "ns", "--server", running.url).returncode == 0
    finally:
        running.server.stop()


def test_doctor_finds_a_port_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        done = subprocess.run(
            [program(), "doctor", "--port", port, "--control-directory", tmp_path], capture_output=True, text=True
        )
    assert done.returncode == 1, done.stdout
    assert re.search(rf"FAIL +ports +--port 127.0.0.1:{port}", done.stdout)
