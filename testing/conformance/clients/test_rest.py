# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Every route over a plain socket and over curl; bad input; disconnects. Requires only numpy."""
import gzip
import json
import shutil
import socket
import struct
import subprocess
import zlib

import numpy as np
import pytest

from models import BROKEN, TYPES, add_broken
from server import until

SIMPLE = {
    "inputs": [
        {"name": n, "datatype": "INT32", "shape": [1, 16], "data": list(range(16))} for n in ("INPUT0", "INPUT1")
    ]
}
ONE = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}


def post(server, path, body, **headers):
    text = body if isinstance(body, (bytes, str)) else json.dumps(body)
    status, head, reply = server.ask("POST", path, text, {k.replace("_", "-"): v for k, v in headers.items()})
    return status, head, json.loads(reply) if reply[:1] in b"{[" and reply else reply


def infer(server, model, body, **headers):
    return post(server, f"/v2/models/{model}/infer", body, **headers)


def still_answers(server):
    status, _, reply = infer(server, "identity_fp32", ONE)
    assert status == 200 and reply["outputs"][0]["data"] == [1, 2]


# Route, status, and the shape of the body: a type, or keys with shapes, or a list with the shape of its elements.
TENSORS = [{"name": str, "datatype": str, "shape": [int]}]
METADATA = {"name": str, "versions": [str], "platform": str, "inputs": TENSORS, "outputs": TENSORS}
ERROR = {"error": str}
ANSWER = {"model_name": str, "model_version": str, "outputs": [{"name": str, "datatype": str, "shape": [int], "data": list}]}
ROUTES = [
    ("GET", "/", None, 200, {"status": str}),
    ("GET", "/v2", None, 200, {"name": str, "version": str, "extensions": [str]}),
    ("GET", "/v2/health/live", None, 200, {"live": bool}),
    ("GET", "/v2/health/ready", None, 200, {"ready": bool}),
    ("GET", "/v2/models", None, 200, {"models": [str]}),
    ("GET", "/v2/models/simple", None, 200, METADATA),
    ("GET", "/v2/models/simple/versions/1", None, 200, METADATA),
    ("GET", "/v2/models/simple/ready", None, 200, {"name": str, "ready": bool}),
    ("GET", "/v2/models/simple/versions/1/ready", None, 200, {"name": str, "ready": bool}),
    ("GET", "/v2/models/simple/config", None, 200, {"name": str, "max_batch_size": int}),
    ("GET", "/v2/models/simple/versions/1/config", None, 200, {"name": str}),
    ("POST", "/v2/models/simple/infer", SIMPLE, 200, ANSWER),
    ("POST", "/v2/models/simple/versions/1/infer", SIMPLE, 200, ANSWER),
    ("POST", "/v2/repository/index", None, 200, [{"name": str}]),
    ("POST", "/v2/repository/index", {"ready": True}, 200, [{"name": str, "version": str, "state": str}]),
    ("POST", "/v2/repository/models/matrix/unload", None, 200, {"name": str, "unload": bool}),
    ("POST", "/v2/repository/models/matrix/load", None, 200, {"name": str, "load": bool}),
    ("POST", "/v2/repository/r/models/simple/load", None, 501, ERROR),
    ("GET", "/v1/models", None, 200, {"models": [str]}),
    ("GET", "/v1/models/iris", None, 200, {"name": str, "ready": bool, "model_version_status": [{"version": str, "state": str}]}),
    ("POST", "/v1/models/iris:predict", {"instances": [[5.1, 3.5, 1.4, 0.2]]}, 200, {"predictions": list}),
    ("POST", "/v1/models/iris:predict", {"inputs": [[5.1, 3.5, 1.4, 0.2]]}, 200, {"outputs": dict}),
    ("POST", "/v1/models/iris/versions/1:predict", {"instances": [[5.1, 3.5, 1.4, 0.2]]}, 200, {"predictions": list}),
    ("GET", "/v2/models/nosuch", None, 404, ERROR),
    ("GET", "/v2/models/nosuch/ready", None, 404, ERROR),
    ("GET", "/v2/models/simple/versions/7", None, 404, ERROR),
    ("POST", "/v2/models/nosuch/infer", SIMPLE, 404, ERROR),
    ("GET", "/v1/models/nosuch", None, 404, ERROR),
    ("POST", "/v1/models/nosuch:predict", {"instances": [1]}, 404, ERROR),
    ("GET", "/nosuch", None, 404, ERROR),
    ("GET", "/v2/models/simple/infer", None, 405, ERROR),
    ("POST", "/v2", None, 405, ERROR),
]


def check_shape(value, shape, where="body"):
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        for key, inner in shape.items():
            assert key in value, f"{where} lacks {key}: {value}"
            check_shape(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list) and value, f"{where}: {value}"
        for element in value:
            check_shape(element, shape[0], where + "[]")
    else:
        assert isinstance(value, shape), f"{where} is {value!r}, not a {shape}"


@pytest.mark.parametrize("http", ["--http1.1", "--http2-prior-knowledge"])
@pytest.mark.parametrize("method,path,body,status,shape", ROUTES, ids=[f"{r[0]} {r[1]} {r[3]}" for r in ROUTES])
def test_curl(server, http, method, path, body, status, shape):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    command = ["curl", "-sS", http, "-w", "\n%{http_code} %{content_type}", "-X", method, f"http://{server.base}{path}"]
    if body is not None:
        command += ["-d", json.dumps(body)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if "option" in done.stderr and "http2" in http:
        pytest.skip("this curl has no HTTP/2")
    assert done.returncode == 0, done.stderr
    text, last = done.stdout.rsplit("\n", 1)
    assert last == f"{status} application/json", f"{last}: {text}"
    check_shape(json.loads(text), shape)


def test_metrics_count_requests(server):
    before = server.metric("nv_inference_request_success")
    still_answers(server)
    assert server.metric("nv_inference_request_success") == before + 1


@pytest.mark.parametrize("datatype", TYPES)
def test_json_of_every_type(server, datatype):
    data = ["a", ""] if datatype == "BYTES" else [True, False] if datatype == "BOOL" else [1, 2]
    body = {"inputs": [{"name": "INPUT0", "datatype": datatype, "shape": [1, 2], "data": [data]}]}
    status, _, reply = infer(server, f"identity_{datatype.lower()}", body)
    assert status == 200, reply
    assert reply["outputs"] == [{"name": "OUTPUT0", "datatype": datatype, "shape": [1, 2], "data": data}]


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_small_floats_in_json_are_rounded_and_range_checked(server, datatype):
    body = {"inputs": [{"name": "INPUT0", "datatype": datatype, "shape": [1, 1], "data": [1.0009765625 if datatype == "FP16" else 1.0078125]}]}
    assert infer(server, f"identity_{datatype.lower()}", body)[2]["outputs"][0]["data"] == body["inputs"][0]["data"]
    body["inputs"][0]["data"] = [1e39]
    assert infer(server, f"identity_{datatype.lower()}", body)[0] == 400
    still_answers(server)


def test_mixed_json_and_binary_in_and_out(server):
    a, b = np.arange(4, dtype="<f4"), np.full(4, 2, "<f4")
    head = json.dumps({
        "id": "m",
        "inputs": [
            {"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], "data": a.tolist()},
            {"name": "INPUT1", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}},
        ],
        "outputs": [{"name": "OUTPUT1", "parameters": {"binary_data": True}}, {"name": "OUTPUT0"}],
    }).encode()
    status, headers, reply = server.ask(
        "POST", "/v2/models/add_sub_fp32/infer", head + b.tobytes(), {"Inference-Header-Content-Length": str(len(head))}
    )
    assert status == 200, reply
    n = int(headers["inference-header-content-length"])
    answer = json.loads(reply[:n])
    assert headers["content-type"] == "application/octet-stream"
    assert [o["name"] for o in answer["outputs"]] == ["OUTPUT1", "OUTPUT0"]
    assert np.array_equal(np.frombuffer(reply[n:], "<f4"), a - b)
    assert answer["outputs"][1]["data"] == (a + b).tolist()


def test_raw_request(server):
    a = np.arange(6, dtype="<f4")
    status, headers, reply = server.ask(
        "POST", "/v2/models/identity_fp32/infer", a.tobytes(), {"Inference-Header-Content-Length": "0"}
    )
    n = int(headers["inference-header-content-length"])
    assert status == 200 and reply[n:] == a.tobytes()
    status, headers, reply = server.ask("POST", "/v2/models/one/infer", b"whole", {"Inference-Header-Content-Length": "0"})
    n = int(headers["inference-header-content-length"])
    assert status == 200 and reply[n:] == struct.pack("<i", 5) + b"whole"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compression(server, encoding):
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 5000], "data": [0] * 5000}]}).encode()
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    status, headers, reply = server.ask(
        "POST", "/v2/models/identity_fp32/infer", packed, {"Content-Encoding": encoding, "Accept-Encoding": encoding}
    )
    assert status == 200, reply
    assert headers.get("content-encoding") == encoding
    plain = gzip.decompress(reply) if encoding == "gzip" else zlib.decompress(reply)
    assert len(json.loads(plain)["outputs"][0]["data"]) == 5000


def changed(**fields):
    return {"inputs": [{**ONE["inputs"][0], **fields}]}


BAD = {
    "no JSON": ("identity_fp32", "nonsense", 400),
    "empty body": ("identity_fp32", "", 400),
    "truncated": ("identity_fp32", json.dumps(ONE)[:-5], 400),
    "text after the end": ("identity_fp32", json.dumps(ONE) + "x", 400),
    "an array": ("identity_fp32", [], 400),
    "deep nesting": ("identity_fp32", "[" * 100_000, 400),
    "deep nesting of data": ("identity_fp32", '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":' + "[" * 50_000, 400),
    "no inputs": ("identity_fp32", {}, 400),
    "wrong type": ("identity_fp32", changed(datatype="INT32"), 400),
    "unknown type": ("identity_fp32", changed(datatype="FP99"), 400),
    "negative dimension": ("identity_fp32", changed(shape=[1, -2]), 400),
    "zero dimension": ("identity_fp32", changed(shape=[1, 0]), 400),
    "overflowing shape": ("identity_fp32", changed(shape=[2**62, 2**62]), 400),
    "dimension beyond 64 bits": ("identity_fp32", changed(shape=[1, 2**70]), 400),
    "huge shape": ("identity_fp32", changed(shape=[1, 2**40]), 400),
    "a fraction as dimension": ("identity_fp32", changed(shape=[1, 2.5]), 400),
    "too few elements": ("identity_fp32", changed(data=[1]), 400),
    "too many elements": ("identity_fp32", changed(data=[1, 2, 3]), 400),
    "a string among numbers": ("identity_fp32", changed(data=[1, "x"]), 400),
    "out of range": ("identity_uint8", changed(datatype="UINT8", data=[1, 300]), 400),
    "negative unsigned": ("identity_uint8", changed(datatype="UINT8", data=[1, -1]), 400),
    "missing input": ("simple", {"inputs": SIMPLE["inputs"][:1]}, 400),
    "duplicate input": ("simple", {"inputs": [SIMPLE["inputs"][0]] * 2}, 400),
    "unknown input": ("identity_fp32", changed(name="X"), 400),
    "unknown output": ("identity_fp32", {**ONE, "outputs": [{"name": "X"}]}, 400),
    "duplicate output": ("identity_fp32", {**ONE, "outputs": [{"name": "OUTPUT0"}] * 2}, 400),
    "binary size without header": ("identity_fp32", changed(parameters={"binary_data_size": 8}), 400),
    "batch too large": ("identity_fp32", changed(shape=[9, 1], data=[0] * 9), 400),
    "reserved parameter": ("identity_fp32", {**ONE, "parameters": {"triton_x": 1}}, 400),
    "path-like name": ("..%2F..%2Fetc%2Fpasswd", ONE, 404),
    "bad version": ("identity_fp32/versions/-1", ONE, 400),
    "version too large": ("identity_fp32/versions/99999999999999999999", ONE, 400),
    "unknown version": ("identity_fp32/versions/2", ONE, 404),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input(server, what):
    model, body, expected = BAD[what]
    status, headers, reply = infer(server, model, body)
    assert status == expected, reply
    assert headers["content-type"] == "application/json"
    assert reply["error"] and "Exception" not in reply["error"] and "\tat " not in reply["error"]
    still_answers(server)


@pytest.mark.parametrize("length,size,blob", [(None, 8, 7), (None, 8, 9), (None, 9, 9), (0.5, 8, 8), (1000, 8, 8), (-1, 8, 8), ("x", 8, 8), (None, -1, 8), (None, 2**40, 8)])
def test_binary_sizes_that_do_not_add_up(server, length, size, blob):
    tensor = {k: v for k, v in ONE["inputs"][0].items() if k != "data"}
    head = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": size}}]}).encode()
    length = len(head) if length is None else int(len(head) * length) if isinstance(length, float) else length
    status, _, reply = server.ask("POST", "/v2/models/identity_fp32/infer", head + bytes(blob), {"Inference-Header-Content-Length": str(length)})
    assert status == 400, reply
    assert json.loads(reply)["error"]
    still_answers(server)


def test_unknown_and_damaged_encodings(server):
    assert infer(server, "identity_fp32", ONE, Content_Encoding="br")[0] in (415, 501)
    for encoding in ("gzip", "deflate"):
        assert infer(server, "identity_fp32", b"\x01\x02\x03", Content_Encoding=encoding)[0] == 400
    bomb = gzip.compress(bytes(200 << 20))
    assert infer(server, "identity_fp32", bomb, Content_Encoding="gzip")[0] in (400, 413)
    still_answers(server)


def test_a_body_over_the_limit_is_refused_before_it_is_sent(server):
    with socket.create_connection((server.host, server.port), 10) as s:
        s.sendall(b"POST /v2/models/identity_fp32/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in s.recv(65536).split(b"\r\n")[0]
    still_answers(server)


@pytest.mark.parametrize("text", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n"])
def test_what_is_not_http(server, text):
    with socket.create_connection((server.host, server.port), 10) as s:
        s.sendall(text)
        s.settimeout(10)
        try:
            first = s.recv(65536)
        except ConnectionResetError:
            first = b""
        assert first == b"" or first.split(b" ")[1][:1] in (b"4", b"5"), first
    still_answers(server)


def test_a_client_that_goes_away_is_forgotten(server):
    body = json.dumps(ONE).encode()
    with socket.create_connection((server.host, server.port), 10) as s:
        s.sendall(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: server.metric("nereid_exchanges_in_flight") > 1, "the request is in flight")
    until(lambda: server.metric("nereid_exchanges_in_flight") <= 1, "the request has ended")
    with socket.create_connection((server.host, server.port), 10) as s:
        s.sendall(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    still_answers(server)


def test_a_new_version_appears_and_a_broken_one_leaves_the_old(server, repository):
    (repository / "matrix" / "2").mkdir()
    until(lambda: b'"versions":["2"]' in server.ask("GET", "/v2/models/matrix")[2], "version 2 is served")
    target = repository / "onnx_identity_fp32" / "2"
    target.mkdir()
    (target / "model.onnx").write_bytes(b"half a mod")
    until(lambda: b"UNAVAILABLE" in b"".join(
        json.dumps(m).encode() for m in json.loads(server.ask("POST", "/v2/repository/index")[2]) if m["name"] == "onnx_identity_fp32"
    ), "version 2 has failed")
    assert infer(server, "onnx_identity_fp32", ONE)[2]["model_version"] == "1"
    shutil.rmtree(target)


def test_broken_models_fail_alone(server, repository):
    def states():
        index = json.loads(server.ask("POST", "/v2/repository/index")[2])
        return {m["name"]: (m.get("state"), m.get("reason", "")) for m in index if m["name"].startswith("broken_")}

    for name in BROKEN:
        add_broken(repository, name)
    try:
        until(lambda: [s for s, _ in states().values()] == ["UNAVAILABLE"] * len(BROKEN), "all of them have failed")
        for name in BROKEN:
            assert states()[f"broken_{name}"][1]
            status, _, reply = infer(server, f"broken_{name}", ONE)
            assert status in (404, 503), reply
            assert "Exception" not in reply["error"] and "\tat " not in reply["error"]
            assert server.ask("GET", f"/v2/models/broken_{name}/ready")[0] in (404, 503)
            still_answers(server)
    finally:
        for name in BROKEN:
            shutil.rmtree(repository / f"broken_{name}")
    until(lambda: not states() or server.ask("GET", "/v2/health/ready")[0] == 200, "the server is ready again")
    until(lambda: server.ask("GET", "/v2/health/ready")[0] == 200, "the server is ready again")
