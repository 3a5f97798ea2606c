# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Who may do what: plain HTTP requests to the program as a user starts it, with and without credentials."""
import base64
import concurrent.futures
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time

import pytest

from access import SecuredServer, nereid
from server import EXAMPLES, Server, until

PYTHON_MODEL = b"""
import triton_python_backend_utils as pb_utils

open(%r, "w").write("ran")


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""
CONFIG = {
    "backend": "python",
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
}


def upload(proof):
    code = PYTHON_MODEL.replace(b"%r", repr(str(proof)).encode())
    return json.dumps(
        {"parameters": {"config": json.dumps(CONFIG), "file:1/model.py": base64.b64encode(code).decode()}}
    )


@pytest.fixture(scope="module")
def local():
    server = Server(EXAMPLES)
    yield server
    server.stop()


def own_address():
    """An address of this machine that is not a loopback address; None without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Host": "evil.example"},
    {"Host": "evil.example:8080", "Origin": "http://evil.example:8080"},
    {"X-Forwarded-For": "192.0.2.7"},
    {"X-Forwarded-User": "someone"},
    {"Forwarded": "for=192.0.2.7"},
    {"Via": "1.1 proxy"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=lambda h: " ".join(f"{k}={v}" for k, v in h.items()))
def test_a_web_page_and_a_proxy_may_not_change_anything(local, headers, tmp_path):
    changes = [
        ("POST", "/v2/repository/models/simple/unload", "{}"),
        ("POST", "/v2/repository/models/evil/load", upload(tmp_path / "proof")),
        ("POST", "/admin/model-config", ""),
        ("POST", "/v2/logging", '{"log_verbose_level": 1}'),
        ("POST", "/v2/trace/setting", '{"trace_rate": "1"}'),
        ("POST", "/v2/systemsharedmemory/unregister", ""),
    ]
    for method, path, body in changes:
        status, _, answer = local.ask(method, path, body, {"Content-Type": "text/plain", **headers})
        assert status == 403, (path, status, answer)
        assert "error" in json.loads(answer)
    assert not (tmp_path / "proof").exists()
    assert local.ask("GET", "/v2/models/simple", headers=headers)[0] == 200


def test_nobody_uploads_code_unless_the_operator_allows_it(local, tmp_path):
    status, _, answer = local.ask("POST", "/v2/repository/models/evil/load", upload(tmp_path / "proof"))
    assert status == 403, answer
    assert b"--allow-model-upload" in answer
    assert not (tmp_path / "proof").exists()


def test_a_local_client_loads_and_unloads_what_lies_in_the_repository(local):
    assert local.ask("POST", "/v2/repository/models/simple/unload", "{}")[0] == 200
    assert local.ask("POST", "/v2/repository/models/simple/load", "{}")[0] == 200


def test_a_model_list_of_a_client_writes_no_files_elsewhere(tmp_path):
    target = tmp_path / "elsewhere"
    listed = f"""model_config_list {{ config {{
        name: "simple" base_path: "{EXAMPLES / 'simple'}" model_platform: "tensorflow"
        logging_config {{ log_collector_config {{ type: "tfrecord" filename_prefix: "{target}" }}
                          sampling_config {{ sampling_rate: 1 }} }} }} }}"""
    start = tmp_path / "models.config"
    start.write_text(f'model_config_list {{ config {{ name: "simple" base_path: "{EXAMPLES / "simple"}" model_platform: "tensorflow" }} }}')
    server = Server("--model_config_file", start)
    try:
        status, _, answer = server.ask("POST", "/admin/model-config", listed)
        assert status == 403, answer
        assert b"--request-log-root" in answer
    finally:
        server.stop()


@pytest.mark.skipif(own_address() is None, reason="this machine has no address besides the loopback one")
def test_where_other_machines_reach_the_port_management_is_closed(tmp_path):
    server = Server(EXAMPLES, "--host", "0.0.0.0")
    try:
        server.base = f"{own_address()}:{server.port}"
        for base in (server.base, f"127.0.0.1:{server.port}"):
            server.base = base
            for path in ("/v2/repository/models/simple/unload", "/v2/repository/models/evil/load", "/admin/model-config"):
                status, _, answer = server.ask("POST", path, "{}")
                assert status == 403, (base, path, answer)
            assert server.ask("GET", "/v2/models/simple")[0] == 200
            assert server.ask("GET", "/v2/models/stats")[0] == 200
            assert server.ask("GET", "/metrics")[0] == 200
        assert any("closed" in line and "--open-management" in line for line in server.lines)
    finally:
        server.stop()
    opened = Server(EXAMPLES, "--host", "0.0.0.0", "--open-management")
    try:
        opened.base = f"{own_address()}:{opened.port}"
        assert opened.ask("POST", "/v2/repository/models/simple/unload", "{}")[0] == 200
    finally:
        opened.stop()


def test_a_given_control_mode_is_tritons_rule():
    server = Server(EXAMPLES, "--model-control-mode", "poll")
    try:
        status, _, answer = server.ask("POST", "/v2/repository/models/simple/unload", "{}")
        assert status == 503, answer
        assert b"explicit model load / unload is not allowed if polling is enabled" in answer
    finally:
        server.stop()


RESTRICTED = [
    ("POST", "/v1/models/simple:predict"),
    ("POST", "/v1/models/simple/versions/1:predict"),
    ("POST", "/v1/models/simple:explain"),
    ("POST", "/v2/models/simple/infer"),
    ("POST", "/v2/models/simple/generate"),
    ("POST", "/v2/models/simple/explain"),
    ("POST", "/invocations"),
    ("POST", "/models/simple/invocations"),
    ("POST", "/v1/embeddings"),
    ("POST", "/openai/v1/rerank"),
    ("POST", "/admin/model-config"),
    ("POST", "/v2/repository/models/simple/unload"),
]


def test_a_restricted_api_is_restricted_in_every_protocol():
    server = Server(EXAMPLES, "--http-restricted-api", "inference,model-repository:x-key=secret")
    try:
        for method, path in RESTRICTED:
            for headers in ({}, {"x-key": "guess"}, {"Content-Type": "application/grpc"}):
                status, _, answer = server.ask(method, path, "{}", headers)
                assert status == 403, (path, status, answer)
                assert b"expecting header 'x-key'" in answer
            assert server.ask(method, path, "{}", {"x-key": "secret"})[0] not in (401, 403), path
        assert server.ask("GET", "/v2/models")[0] == 200
    finally:
        server.stop()


# ---- credentials


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    server = SecuredServer(tmp_path_factory.mktemp("access"), EXAMPLES)
    yield server
    server.stop()


INPUTS = json.dumps(
    {"inputs": [{"name": n, "shape": [1, 16], "datatype": "INT32", "data": [1] * 16} for n in ("INPUT0", "INPUT1")]}
)


def test_without_credentials_only_health_is_open(secured):
    assert secured.ask("GET", "/v2/health/ready")[0] == 200
    for method, path in [("GET", "/v2/models/simple"), ("GET", "/metrics"), *RESTRICTED]:
        status, headers, answer = secured.ask(method, path, "{}")
        assert status == 401, (path, status, answer)
        assert headers["www-authenticate"].startswith("Bearer")


def test_a_key_may_do_what_its_roles_say(secured):
    assert secured.ask("POST", "/v2/models/simple/infer", INPUTS, secured.bearer("app"))[0] == 200
    assert secured.ask("POST", "/v2/models/simple/infer", INPUTS, {"X-API-Key": secured.keys["app"]})[0] == 200
    basic = base64.b64encode(f"app:{secured.keys['app']}".encode()).decode()
    assert secured.ask("POST", "/v2/models/simple/infer", INPUTS, {"Authorization": "Basic " + basic})[0] == 200
    assert secured.ask("POST", "/v2/repository/models/simple/unload", "{}", secured.bearer("app"))[0] == 403
    assert secured.ask("POST", "/v2/logging", '{"log_verbose_level": 0}', secured.bearer("ops"))[0] == 200


def test_a_key_for_some_models_is_refused_at_others_and_does_not_see_them(secured):
    names = json.loads(secured.ask("GET", "/v2/models", headers=secured.bearer("narrow"))[2])["models"]
    assert names and all(n.startswith("sim") for n in names)
    listed = json.loads(secured.ask("GET", "/v1/models", headers=secured.bearer("narrow"))[2])["models"]
    assert sorted(listed) == sorted(names)
    others = json.loads(secured.ask("GET", "/v2/models", headers=secured.bearer("app"))[2])["models"]
    other = next(n for n in others if not n.startswith("sim"))
    assert secured.ask("POST", "/v2/models/simple/infer", INPUTS, secured.bearer("narrow"))[0] == 200
    for method, path in [
        ("GET", f"/v2/models/{other}"),
        ("POST", f"/v2/models/{other}/infer"),
        ("POST", f"/v1/models/{other}:predict"),
        ("POST", f"/models/{other}/invocations"),
        ("POST", f"/invocations?model={other}"),
    ]:
        status, _, answer = secured.ask(method, path, '{"instances": [1], "inputs": []}', secured.bearer("narrow"))
        assert status in (403, 400, 415), (path, status, answer)
        if status == 400 or status == 415:
            assert b"may not" not in answer


def test_wrong_keys_are_refused_and_slowed_down(secured):
    wrong = secured.keys["app"][:-1] + ("0" if secured.keys["app"][-1] != "0" else "1")
    def attempt(_):
        return secured.ask("GET", "/v2/models/simple", headers={"Authorization": "Bearer " + wrong})[0]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(attempt, range(100)))
    assert 401 in statuses
    assert 429 in statuses
    assert set(statuses) == {401, 429}
    assert secured.ask("POST", "/v2/models/simple/infer", INPUTS, secured.bearer("app"))[0] == 200
    assert not any(wrong in line or secured.keys["app"] in line for line in secured.lines)


def test_a_quota_is_a_429_with_the_time_to_wait(secured):
    answers = [secured.ask("POST", "/v2/models/simple/infer", INPUTS, secured.bearer("slow")) for _ in range(5)]
    assert answers[0][0] == 200
    refused = [a for a in answers if a[0] == 429]
    assert refused
    assert int(refused[0][1]["retry-after"]) >= 1
    page = secured.ask("GET", "/metrics", headers=secured.bearer("ops"))[2].decode()
    assert 'nereid_access_quota_rejections_total{key="slow",model="simple",quota="key"}' in page


def test_a_revoked_key_stops_working_without_a_restart(secured):
    made = nereid("keys", "create", "short", "--file", secured.key_file, "--role", "client").stdout.strip().splitlines()
    secured.keys["short"] = made[-1]
    until(
        lambda: secured.ask("GET", "/v2/models/simple", headers=secured.bearer("short"))[0] == 200,
        "the new key works",
    )
    nereid("keys", "revoke", "short", "--file", secured.key_file)
    until(
        lambda: secured.ask("GET", "/v2/models/simple", headers=secured.bearer("short"))[0] == 401,
        "the revoked key does not work",
    )
    assert "short" in nereid("keys", "list", "--file", secured.key_file).stdout


# ---- client certificates


def certificates(directory):
    """An authority, a certificate of it for the server, and one for each client, with the machine's openssl."""

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=directory)

    days = ("-days", "2")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", *days, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt")
    for name, subject in {"server": "/CN=localhost", "ops": "/O=Example/CN=ops", "app": "/O=Example/CN=app"}.items():
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", *days,
                "-extfile", "names", "-out", f"{name}.crt")


def audited(file, count):
    """Returns the entries of the audit log once there are count of them: the server writes them after the answers."""
    end = time.monotonic() + 30
    while True:
        lines = file.read_text().splitlines()
        if len(lines) >= count or time.monotonic() > end:
            return [json.loads(line) for line in lines]
        time.sleep(0.05)


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl to make certificates with")
def test_the_subject_of_a_client_certificate_has_roles(tmp_path):
    certificates(tmp_path)
    (tmp_path / "access.yaml").write_text(
        """
bindings:
  - {certificate: "CN=ops,*", roles: [admin]}
  - {certificate: "CN=app,*", roles: [client]}
"""
    )
    server = Server(
        EXAMPLES, "--tls-cert", tmp_path / "server.crt", "--tls-key", tmp_path / "server.key",
        "--tls-client-ca", tmp_path / "ca.crt", "--access-config", tmp_path / "access.yaml",
        "--audit-log", tmp_path / "audit.json",
    )
    try:

        def ask(name, method, path, body=None):
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
            context.load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
            connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=context)
            try:
                connection.request(method, path, body)
                reply = connection.getresponse()
                return reply.status, reply.read()
            finally:
                connection.close()

        assert ask("app", "POST", "/v2/models/simple/infer", INPUTS)[0] == 200
        status, answer = ask("app", "POST", "/v2/repository/models/simple/unload", "{}")
        assert status == 403 and b"manage" in answer
        assert ask("ops", "POST", "/v2/repository/models/simple/unload", "{}")[0] == 200
        entries = audited(tmp_path / "audit.json", 2)
        assert [(e["caller"].split(",")[0], e["outcome"]) for e in entries] == [("CN=app", "denied"), ("CN=ops", "ok")]
    finally:
        server.stop()
