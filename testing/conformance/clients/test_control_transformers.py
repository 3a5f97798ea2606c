# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Transformers: from a jar in the server process, and from a Python file in a child process."""
import concurrent.futures
import http.client
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("yaml")

from control_server import ControlServer, Refused, until
from server import EXAMPLES, ROOT, program

PROGRAM = ROOT / "control/local/src/main/resources/io/nereid/control/local/transformer_server.py"
LINES = ["5.1 3.5 1.4 0.2", "6.3 3.3 6.0 2.5", "6.0 2.2 4.0 1.0"]
FLOWERS = ["setosa", "virginica", "versicolor"]
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: ${name}, namespace: demo, annotations: ${annotations}}
spec:
  predictor:
    minReplicas: ${least}
    model: {modelFormat: {name: onnx}, storageUri: "file://${models}/iris"}
  transformer:
    minReplicas: ${least}
    nereid: {storageUri: "file://${models}/${steps}", config: {prefix: "${prefix} "} ${more}}
"""
PYTHON = '''
import helper

class Words:
    def __init__(self, config):
        self.prefix = config.get("prefix", "")

    def preprocess(self, payload, headers=None):
        if headers.get("x-fail"):
            raise RuntimeError(headers["x-fail"])
        if "instances" in payload:
            return {"instances": [helper.numbers(line) for line in payload["instances"]]}
        rows = [helper.numbers(line) for line in payload["inputs"][0]["data"]]
        return {"inputs": [{"name": "input", "shape": [len(rows), 4], "datatype": "FP32", "data": rows}]}

    def postprocess(self, result, headers=None):
        if "predictions" in result:
            return {"predictions": [self.prefix + helper.FLOWERS[p["label"][0] if isinstance(p["label"], list) else p["label"]] for p in result["predictions"]]}
        label = next(o for o in result["outputs"] if o["name"] == "label")
        words = [self.prefix + helper.FLOWERS[i] for i in label["data"]]
        return {**result, "outputs": [{"name": "flower", "shape": [len(words)], "datatype": "BYTES", "data": words}]}
'''
HELPER = '''
FLOWERS = ["setosa", "versicolor", "virginica"]

def numbers(line):
    return [float(x) for x in line.split()]
'''
JAVA = """
package com.example;

import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.transform.TensorMap;
import io.nereid.transform.Transformer;
import java.util.List;

public final class Words implements Transformer {
    private static final List<String> FLOWERS = List.of("setosa", "versicolor", "virginica");
    private String prefix = "";

    public void start(Settings settings) {
        prefix = settings.config().getOrDefault("prefix", "");
    }

    public List<TensorSpec> inputs(List<TensorSpec> predictor) {
        return List.of(new TensorSpec("text", DataType.BYTES, Shape.of(-1)));
    }

    public List<TensorSpec> outputs(List<TensorSpec> predictor) {
        return List.of(new TensorSpec("flower", DataType.BYTES, Shape.of(-1)));
    }

    public TensorMap preprocess(TensorMap request) {
        String[] lines = request.texts("text");
        float[][] rows = new float[lines.length][4];
        for (int i = 0; i < lines.length; i++) {
            String[] words = lines[i].split(" ");
            for (int j = 0; j < 4; j++) {
                rows[i][j] = Float.parseFloat(words[j]);
            }
        }
        return TensorMap.of("input", rows);
    }

    public TensorMap postprocess(TensorMap answer, TensorMap request) {
        long[] labels = answer.longs("label");
        String[] names = new String[labels.length];
        for (int i = 0; i < labels.length; i++) {
            names[i] = prefix + FLOWERS.get((int) labels[i]);
        }
        return TensorMap.of("flower", names);
    }
}
"""
PLAIN = """
package com.example;

import io.nereid.transform.JsonTransformer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

public final class Plain implements JsonTransformer {
    public Object preprocess(Object payload, Map<String, String> headers) {
        List<?> lines = (List<?>) ((Map<?, ?>) payload).get("lines");
        return Map.of("instances", lines.stream()
                .map(line -> Arrays.stream(((String) line).split(" ")).map(Double::valueOf).toList())
                .toList());
    }

    public Object postprocess(Object result, Map<String, String> headers) {
        return Map.of("by", headers.getOrDefault("x-who", "absent"), "result", result);
    }
}
"""
NAMED = """
package com.example;

import io.nereid.transform.JsonTransformer;
import java.util.LinkedHashMap;
import java.util.Map;

public final class Named implements JsonTransformer {
    @SuppressWarnings("unchecked")
    public Object postprocess(Object result, Map<String, String> headers) {
        Map<String, Object> more = new LinkedHashMap<>((Map<String, Object>) result);
        more.put("parameters", Map.of("by", headers.getOrDefault("x-who", "absent")));
        return more;
    }
}
"""


def built(where):
    """Compiles the transformer against the distribution's classes, into a jar."""
    home = os.environ.get("JAVA_HOME")
    javac = str(pathlib.Path(home) / "bin/javac") if home else shutil.which("javac")
    if not javac or not os.path.exists(javac):
        pytest.skip("no javac on this machine: transformers in Java are NOT tested")
    sources = where / "source/com/example"
    sources.mkdir(parents=True)
    (sources / "Words.java").write_text(JAVA)
    (sources / "Plain.java").write_text(PLAIN)
    (sources / "Named.java").write_text(NAMED)
    libraries = pathlib.Path(program()).resolve().parents[1] / "lib"
    subprocess.run(
        [javac, "--release", "17", "-d", where / "classes", "-cp", f"{libraries}/*", *sources.iterdir()], check=True,
        timeout=120)
    jar = where / "transformer.jar"
    with zipfile.ZipFile(jar, "w") as out:
        for name in ("Words", "Plain", "Named"):
            out.write(where / f"classes/com/example/{name}.class", f"com/example/{name}.class")
        out.writestr("META-INF/services/io.nereid.transform.Transformer", "com.example.Words\n")
    return jar


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    where = tmp_path_factory.mktemp("transformers")
    shutil.copytree(EXAMPLES / "iris/1", where / "iris")
    (where / "python").mkdir()
    (where / "python/transformer.py").write_text(PYTHON)
    (where / "python/helper.py").write_text(HELPER)
    (where / "java").mkdir()
    return where


@pytest.fixture(scope="module")
def plane(models, tmp_path_factory):
    server = ControlServer(tmp_path_factory.mktemp("plane"), values={"models": models})
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


@pytest.fixture(scope="module")
def java(plane, models, tmp_path_factory):
    shutil.copy(built(tmp_path_factory.mktemp("jar")), models / "java/transformer.jar")
    applied(plane, "java", "java")
    plane.steady("java")
    return plane


@pytest.fixture(scope="module")
def python(plane):
    applied(plane, "python", "python")
    plane.steady("python")
    return plane


def applied(plane, name, steps, prefix="a", least=1, annotations="{}", more=""):
    plane.apply(SERVICE, name=name, steps=steps, prefix=prefix, least=least, annotations=annotations, more=more)


def words(plane, name, lines, **more):
    status, _, answer = plane.call(name, f"/v1/models/{name}:predict", {"instances": lines}, **more)
    assert status == 200, (status, answer)
    return answer["predictions"]


def v2(lines):
    return {"id": "7", "inputs": [{"name": "text", "shape": [len(lines)], "datatype": "BYTES", "data": lines}]}


# --- from a jar -------------------------------------------------------------------------------------------------------


def test_steps_of_a_jar_are_reached_by_v1(java):
    assert words(java, "java", LINES) == ["a " + f for f in FLOWERS]
    assert words(java, "java", LINES, by="path") == ["a " + f for f in FLOWERS]


def test_steps_of_a_jar_are_reached_by_v2(java):
    status, _, answer = java.call("java", "/v2/models/java/infer", v2(LINES))
    assert status == 200, answer
    assert answer["id"] == "7" and answer["model_name"] == "java"
    assert answer["outputs"] == [
        {"name": "flower", "shape": [3], "datatype": "BYTES", "data": ["a " + f for f in FLOWERS]}]


def test_steps_of_a_jar_are_reached_by_grpc(java):
    triton = pytest.importorskip("tritonclient.grpc")
    options = [("grpc.default_authority", "java-demo.example.com")]
    with triton.InferenceServerClient(java.base, channel_args=options) as client:
        text = triton.InferInput("text", [3], "BYTES")
        text.set_data_from_numpy(np.array([line.encode() for line in LINES], dtype=object))
        answer = client.infer("java", [text])
        assert answer.as_numpy("flower").tolist() == [("a " + f).encode() for f in FLOWERS]
        assert client.get_model_metadata("java").inputs[0].name == "text"


def test_metadata_are_the_transformers(java):
    reported = java.call("java", "/v2/models/java")[2]
    assert reported["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert reported["outputs"] == [{"name": "flower", "datatype": "BYTES", "shape": [-1]}]
    assert java.call("java", "/v2/models/java/ready")[0] == 200


def test_what_the_steps_refuse_is_the_clients_fault(java):
    status, _, answer = java.call("java", "/v1/models/java:predict", {"instances": ["a b c d"]})
    assert (status, answer["error"]) == (400, 'For input string: "a"')
    status, _, answer = java.call(
        "java", "/v2/models/java/infer",
        {"inputs": [{"name": "text", "shape": [1], "datatype": "FP32", "data": [1]}]})
    assert status == 400 and "is of type FP32, expected BYTES" in answer["error"]
    status, _, answer = java.call("java", "/v1/models/java:predict", {"instances": ["1 2"]})
    assert status == 500 and "preprocess of the transformer of model 'java' failed: ArrayIndexOutOfBounds" in answer["error"]
    assert "com.example" not in answer["error"] and "\tat " not in answer["error"]


def test_many_requests_at_once_get_their_own_answers(java):
    def one(i):
        return words(java, "java", [LINES[i % 3]]) == ["a " + FLOWERS[i % 3]]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(300)))


def test_another_jar_takes_over_while_requests_go_on(java, models, tmp_path):
    stop, wrong = threading.Event(), []

    def client():
        while not stop.is_set():
            got = words(java, "java", LINES[:1])
            if got not in (["a setosa"], ["b setosa"]):
                wrong.append(got)

    runner = threading.Thread(target=client)
    runner.start()
    try:
        applied(java, "java", "java", prefix="b")
        until(lambda: words(java, "java", LINES[:1]) == ["b setosa"], "the new revision answers", 40)
    finally:
        stop.set()
        runner.join()
    assert not wrong
    applied(java, "java", "java")
    until(lambda: words(java, "java", LINES[:1]) == ["a setosa"], "the first settings are back", 40)


def test_a_predictor_and_steps_that_sleep_are_woken_by_a_request(java):
    name = "sleepy-java"
    applied(java, name, "java", least=0, annotations='{autoscaling.knative.dev/window: "6s"}')
    java.steady(name)
    assert words(java, name, LINES[:1]) == ["a setosa"]

    def asleep(part):
        log = logs(java, name, part)
        return log.count("scaled from 1 to 0") > log.count("scaled from 0 to 1")

    until(lambda: asleep("transformer") and asleep("predictor"), "both sleep", 90)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: words(java, name, LINES), range(4))) == [["a " + f for f in FLOWERS]] * 4
    assert time.monotonic() - begin < 20


def test_steps_on_json_get_headers_and_ask_any_predictor(java):
    for name, predictor in (("plain", None), ("plain-custom", "custom")):
        text = SERVICE
        if predictor:
            text = text.replace(
                'model: {modelFormat: {name: onnx}, storageUri: "file://${models}/iris"}',
                'containers: [{name: kserve-container, command: ["${python}", "${control}/child.py"]}]')
        java.apply(text, name=name, steps="java", prefix="", least=1, annotations="{}", more=", class: com.example.Plain")
    for name in ("plain", "plain-custom"):
        java.steady(name)
        path = f"/v1/models/{name}:predict"
        status, _, answer = java.call(name, path, {"lines": LINES}, headers={"X-Who": "me"})
        assert status == 200, answer
        assert answer["by"] == "me" and len(answer["result"]["predictions"]) == 3
        assert java.call(name, f"/v1/models/{name}")[0] == 200
        status, _, answer = java.call(name, path, {"lines": ["a"]})
        assert (status, answer["error"]) == (400, 'For input string: "a"')
        java.delete(name)


def over_grpc(plane, name):
    triton = pytest.importorskip("tritonclient.grpc")
    options = [("grpc.default_authority", f"{name}-demo.example.com")]
    return triton, triton.InferenceServerClient(plane.base, channel_args=options)


def test_steps_on_json_are_reached_by_grpc(java):
    applied(java, "named", "java", more=", class: com.example.Named")
    java.steady("named")
    triton, client = over_grpc(java, "named")
    with client:
        rows = triton.InferInput("input", [2, 4], "FP32")
        rows.set_data_from_numpy(np.array([[float(x) for x in line.split()] for line in LINES[:2]], dtype=np.float32))
        answer = client.infer("named", [rows], headers={"x-who": "me"}, request_id="7")
        assert answer.as_numpy("label").ravel().tolist() == [0, 2]
        assert answer.get_response().parameters["by"].string_param == "me"
        assert answer.get_response().id == "7"
        assert client.is_server_ready() and client.is_model_ready("named")
        assert client.get_model_metadata("named").inputs[0].name == "input"
        with pytest.raises(triton.InferenceServerException, match="StatusCode.INVALID_ARGUMENT.*input"):
            client.infer("named", [triton_input(triton, "other", np.zeros((1, 4), dtype=np.float32))])
        with pytest.raises(triton.InferenceServerException, match="StatusCode.NOT_FOUND"):
            client.get_model_metadata("absent")
        with pytest.raises(triton.InferenceServerException, match="supports only REST"):
            client.get_inference_statistics("named")
    java.delete("named")


def triton_input(triton, name, values):
    made = triton.InferInput(name, list(values.shape), "FP32")
    made.set_data_from_numpy(values)
    return made


def logs(plane, name, part):
    found = subprocess.run(
        [program(), "logs", name, "-n", "demo", "-c", part, "--server", plane.control_url], capture_output=True, text=True,
        timeout=60)
    return found.stdout


def test_a_jar_without_steps_is_told_in_the_conditions(plane, models):
    (models / "empty").mkdir()
    with zipfile.ZipFile(models / "empty/some.jar", "w") as out:
        out.writestr("a.txt", "a")
    applied(plane, "empty", "empty")
    reported = until(
        lambda: next((c.get("message") for c in plane.get("empty").get("status", {}).get("conditions", [])
                      if "offers no transformer" in c.get("message", "")), None), "the condition says so", 30)
    assert "META-INF/services/io.nereid.transform.Transformer" in reported
    plane.delete("empty")


def test_specifications_that_cannot_be_are_refused(plane):
    with pytest.raises(Refused, match="spec.transformer.nereid.file: expected a .jar or .py file"):
        applied(plane, "wrong", "java", more=', file: "steps.sh"')


# --- from a Python file -----------------------------------------------------------------------------------------------


def test_steps_of_a_python_file_are_reached_by_v1(python):
    assert words(python, "python", LINES) == ["a " + f for f in FLOWERS]


def test_steps_of_a_python_file_are_reached_by_v2(python):
    status, _, answer = python.call("python", "/v2/models/python/infer", v2(LINES))
    assert status == 200, answer
    assert answer["id"] == "7" and answer["model_name"] == "python"
    assert answer["outputs"][0]["data"] == ["a " + f for f in FLOWERS]


def test_many_requests_at_once_reach_steps_of_a_python_file(python):
    def one(i):
        return words(python, "python", [LINES[i % 3]]) == ["a " + FLOWERS[i % 3]]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(300)))


def test_binary_tensors_reach_steps_of_a_python_file(python):
    triton = pytest.importorskip("tritonclient.http")
    with triton.InferenceServerClient(python.base) as client:
        text = triton.InferInput("text", [3], "BYTES")
        text.set_data_from_numpy(np.array([line.encode() for line in LINES], dtype=object), binary_data=True)
        answer = client.infer("python", [text], headers={"Host": "python-demo.example.com"})
        assert [x.decode() if isinstance(x, bytes) else x for x in answer.as_numpy("flower").tolist()] == [
            "a " + f for f in FLOWERS]


def test_steps_of_a_python_file_are_reached_by_grpc(python):
    triton, client = over_grpc(python, "python")
    with client:
        text = triton.InferInput("text", [3], "BYTES")
        text.set_data_from_numpy(np.array([line.encode() for line in LINES], dtype=object))
        answer = client.infer("python", [text])
        assert answer.as_numpy("flower").tolist() == [("a " + f).encode() for f in FLOWERS]
        assert client.get_model_metadata("python").inputs[0].name == "input"
        assert client.is_model_ready("python") and client.is_server_live()
        with pytest.raises(triton.InferenceServerException, match="StatusCode.INTERNAL.*RuntimeError: broken"):
            client.infer("python", [text], headers={"x-fail": "broken"})
        text.set_data_from_numpy(np.array([b"a", b"b", b"c"], dtype=object))
        with pytest.raises(triton.InferenceServerException, match="StatusCode.INVALID_ARGUMENT.*could not convert"):
            client.infer("python", [text])


def test_the_predictors_metadata_and_errors_come_through(python):
    reported = python.call("python", "/v2/models/python")[2]
    assert [x["name"] for x in reported["inputs"]] == ["input"]
    assert python.call("python", "/v1/models/python")[2]["ready"] is True
    status, _, answer = python.call("python", "/v1/models/python:predict", {"instances": ["1 2"]})
    assert status == 400 and "error" in answer
    status, _, answer = python.call("python", "/v1/models/python:predict", {"instances": ["a"]})
    assert (status, answer["error"]) == (400, "could not convert string to float: 'a'")
    status, _, answer = python.call(
        "python", "/v1/models/python:predict", {"instances": LINES}, headers={"x-fail": "broken"})
    assert (status, answer["error"]) == (500, "preprocess failed: RuntimeError: broken")


def test_a_process_of_a_python_file_that_dies_comes_again(python):
    pid = until(lambda: started(python), "the process is known", 10)
    os.kill(pid, signal.SIGKILL)
    until(lambda: started(python) not in (None, pid), "another process was started", 30)
    until(lambda: python.call("python", "/v1/models/python:predict", {"instances": LINES})[0] == 200, "it answers", 30)


def started(plane):
    lines = [x for x in logs(plane, "python", "transformer").splitlines() if "started as process" in x]
    return int(lines[-1].split("started as process ")[1].split(":")[0]) if lines else None


# --- transformer_server.py on its own ---------------------------------------------------------------------------------


class Predictor:
    """A fake predictor: returns configured responses and records the requests."""

    def __init__(self):
        predictor = self
        self.asked = []
        self.connections = set()
        self.answer = lambda path, body: (200, {"predictions": body.get("instances")})

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send({"asked": self.path}, 200)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                predictor.connections.add(self.client_address)
                predictor.asked.append((self.path, body, {k.lower(): v for k, v in self.headers.items()}))
                status, answer = predictor.answer(self.path, body)
                self.send(answer, status)

            def send(self, answer, status):
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("x-of", "predictor")
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Steps:
    """Starts the program with a file of the given text."""

    def __init__(self, folder, predictor, text, *arguments, config=None, environment=None):
        file = folder / "transformer.py"
        file.write_text(text)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, "--file", file, "--model_name", "m", "--predictor_host", predictor.host,
             "--http_port", str(self.port), *arguments],
            env={**os.environ, "NEREID_TRANSFORMER_CONFIG": json.dumps(config or {}), **(environment or {})},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first = self.process.stdout.readline()
        self.error = None if first.startswith("transformer of m") else first + self.process.communicate(timeout=10)[0]

    def ask(self, path, body=None, headers=None, connection=None):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        c.request("GET" if body is None else "POST", path, data, headers or {})
        reply = c.getresponse()
        answer = reply.read()
        if connection is None:
            c.close()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, json.loads(answer)

    def stop(self):
        self.process.terminate()
        return self.process.wait(40)


@pytest.fixture
def predictor():
    found = Predictor()
    yield found
    found.server.shutdown()


@pytest.fixture
def steps(tmp_path, predictor):
    made = []

    def make(text, *arguments, **more):
        made.append(Steps(tmp_path, predictor, text, *arguments, **more))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()


def test_functions_of_a_file_are_steps(steps, predictor):
    of = steps("""
def preprocess(payload):
    return {"instances": [x + 1 for x in payload["instances"]]}

async def postprocess(result, headers=None):
    return {**result, "by": headers["x-request-id"]}
""")
    assert of.ask("/v1/models/m:predict", {"instances": [1, 2]}, {"X-Request-Id": "r", "Cookie": "secret"})[2] == {
        "predictions": [2, 3], "by": "r"}
    path, _, headers = predictor.asked[0]
    assert path == "/v1/models/m:predict"
    assert headers["x-request-id"] == "r" and "cookie" not in headers


def test_connections_are_kept_on_both_sides(steps, predictor):
    of = steps("def preprocess(payload): return payload")
    connection = http.client.HTTPConnection("127.0.0.1", of.port, timeout=20)
    for i in range(5):
        assert of.ask("/v1/models/m:predict", {"instances": [i]}, connection=connection)[2] == {"predictions": [i]}
    assert len(predictor.connections) == 1


def test_steps_may_ask_in_the_other_protocol(steps, predictor):
    predictor.answer = lambda path, body: (200, {"outputs": body["inputs"], "model_name": "m"})
    of = steps("""
def preprocess(payload, headers):
    return {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": payload["instances"]}]}

def postprocess(result, headers):
    return {"predictions": result["outputs"][0]["data"]}
""")
    assert of.ask("/v1/models/m:predict", {"instances": [1]})[2] == {"predictions": [1]}
    assert predictor.asked[0][0] == "/v2/models/m/infer"


def test_the_protocol_that_is_named_is_spoken(steps, predictor):
    of = steps("def preprocess(payload): return payload", "--predictor_protocol", "v2")
    of.ask("/v1/models/m:predict", {"instances": [1]})
    assert predictor.asked[0][0] == "/v2/models/m/infer"


def test_errors_keep_their_status(steps, predictor):
    predictor.answer = lambda path, body: (418, {"error": "teapot"})
    of = steps("""
class Refused(Exception):
    status_code = 422
    detail = "no"

def preprocess(payload):
    if payload["instances"] == [0]:
        raise Refused()
    return payload
""")
    assert of.ask("/v1/models/m:predict", {"instances": [1]})[0::2] == (418, {"error": "teapot"})
    assert of.ask("/v1/models/m:predict", {"instances": [0]})[0::2] == (422, {"error": "no"})
    assert of.ask("/v1/models/m:predict", b"{")[0] == 400
    assert of.ask("/v1/models/m:predict", b"[1]")[0::2] == (400, {"error": "expected a JSON object"})
    assert of.ask("/v1/models/m:predict", {"inst": 1})[0::2] == (
        500, {"error": "preprocess failed: KeyError: 'instances'"})


def test_everything_else_is_the_predictors(steps, predictor):
    predictor.answer = lambda path, body: (200, {"explanations": path})
    of = steps("def preprocess(payload): return {}")
    status, headers, answer = of.ask("/v2/models/m?x=1")
    assert (status, headers["x-of"], answer) == (200, "predictor", {"asked": "/v2/models/m?x=1"})
    assert of.ask("/v1/models/m:explain", {"instances": [1]})[2] == {"explanations": "/v1/models/m:explain"}
    assert predictor.asked[0][1] == {"instances": [1]}
    assert of.ask("/")[2] == {"status": "alive"}


def test_a_predictor_that_is_not_there_is_told(steps, predictor):
    of = steps("def preprocess(payload): return payload")
    of.ask("/v1/models/m:predict", {"instances": [1]})
    predictor.server.shutdown()
    predictor.server.server_close()
    absent = steps("def preprocess(payload): return payload", "--predictor_host", "127.0.0.1:1")
    status, _, answer = absent.ask("/v1/models/m:predict", {"instances": [1]})
    assert status == 503 and "127.0.0.1:1 cannot be reached" in answer["error"]


def test_binary_tensors_of_every_type_are_read(steps, predictor):
    predictor.answer = lambda path, body: (200, {"outputs": body["inputs"]})
    of = steps("def preprocess(payload): return payload")
    x = np.array([[1.5, -2]], dtype=np.float16)
    y = b"\x02\x00\x00\x00ab\x01\x00\x00\x00\xff"
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
        {"name": "x", "shape": [1, 2], "datatype": "FP16", "parameters": {"binary_data_size": 4}},
        {"name": "y", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(y)}},
        {"name": "z", "shape": [1], "datatype": "INT32", "data": [3]}]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    status, _, answer = of.ask("/v2/models/m/infer", head + x.tobytes() + y, headers)
    assert status == 200, answer
    assert [t["data"] for t in answer["outputs"]] == [[1.5, -2.0], ["ab", "/w=="], [3]]
    assert predictor.asked[0][1]["parameters"] == {}
    status, _, answer = of.ask("/v2/models/m/infer", head + x.tobytes(), headers)
    assert status == 400 and "'y': binary_data_size 11 exceeds the body" in answer["error"]
    status, _, answer = of.ask("/v2/models/m/infer", head + x.tobytes() + y + b"!", headers)
    assert status == 400 and "1 bytes after the tensors" in answer["error"]


def test_events_are_answered_as_events(steps, predictor):
    of = steps("def preprocess(payload): return {'instances': [x + 1 for x in payload['instances']]}")
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    headers = {"ce-" + k: v for k, v in event.items()}
    status, got, answer = of.ask("/v1/models/m:predict", {"instances": [1]}, headers)
    assert (status, answer) == (200, {"predictions": [2]})
    assert got["ce-type"] == "io.kserve.inference.response" and got["ce-source"] == "io.kserve.inference.m"
    assert got["ce-specversion"] == "1.0" and got["ce-id"] != "1"
    kind = {"Content-Type": "application/cloudevents+json"}
    status, got, answer = of.ask("/v1/models/m:predict", {**event, "data": {"instances": [2]}}, kind)
    assert (status, answer["data"], answer["type"]) == (200, {"predictions": [3]}, "io.kserve.inference.response")
    assert got["content-type"] == "application/cloudevents+json"
    encoded = {**event, "data_base64": "eyJpbnN0YW5jZXMiOiBbNF19"}
    assert of.ask("/v1/models/m:predict", encoded, kind)[2]["data"] == {"predictions": [5]}
    undeclared = {**event, "time": "2026-01-01T00:00:00Z", "data": {"instances": [2]}}
    assert of.ask("/v1/models/m:predict", undeclared)[2]["data"] == {"predictions": [3]}
    for wrong, reported in (({**event, "specversion": "9"}, "invalid specversion 9"), ({"id": "1"}, "Failed to find source"),
                        (event, "data is not a JSON object"), ({**event, "data_base64": "!"}, "data_base64 is not JSON")):
        status, _, answer = of.ask("/v1/models/m:predict", wrong, kind)
        assert status == 400 and reported in answer["error"], answer
    del headers["ce-id"]
    assert of.ask("/v1/models/m:predict", {"instances": [1]}, headers)[0] == 400


def test_answers_of_arrays_become_json(steps):
    of = steps("""
import numpy as np

class Numbers:
    def postprocess(self, result, headers=None):
        return {"predictions": np.float32(result["predictions"]) / 2, "bytes": b"ab"}
""")
    assert of.ask("/v1/models/m:predict", {"instances": [1, 2]})[2] == {"predictions": [0.5, 1.0], "bytes": {"b64": "YWI="}}


def test_classes_get_what_they_ask_for(steps):
    text = """
class Base:
    def __init__(self, name, words, predictor_host, size=3):
        self.all = [name, words, predictor_host.split(":")[0], size]

    def load(self):
        self.all.append("loaded")

class Last(Base):
    def postprocess(self, result, headers=None, response_headers=None):
        response_headers["x-size"] = "4"
        return self.all
"""
    of = steps(text, config={"words": "w", "size": "4"})
    status, headers, answer = of.ask("/v1/models/m:predict", {"instances": []})
    assert answer == ["m", "w", "127.0.0.1", "4", "loaded"]
    assert headers["x-size"] == "4"
    assert "Last requires words; set it in config" in steps(text).error


def test_files_without_steps_are_told(steps):
    assert "expected preprocess, postprocess or both" in steps("x = 1").error
    assert "select one with the setting class" in steps("""
class A:
    def preprocess(self, p): return p
class B:
    def preprocess(self, p): return p
""").error
    named = steps("class A:\n def postprocess(self, r): return {'a': 1}\nclass B:\n def postprocess(self, r): return {'b': 1}",
                  "--class", "B")
    assert named.ask("/v1/models/m:predict", {"instances": []})[2] == {"b": 1}


def test_a_model_of_kserve_is_a_transformer(steps, predictor):
    if importlib.util.find_spec("kserve") is None:
        pytest.skip("the package kserve is not there: its models as transformers are NOT tested")
    predictor.answer = lambda path, body: (200, {"model_name": "m", "outputs": body["inputs"]})
    of = steps("""
import kserve

class Transformer(kserve.Model):
    def __init__(self, name, predictor_host):
        super().__init__(name)
        self.predictor_host = predictor_host

    def preprocess(self, payload, headers=None):
        for tensor in payload.inputs:
            tensor.data = [2 * x for x in tensor.data]
        return payload

    def postprocess(self, result, headers=None):
        result.outputs[0].data = [x + 1 for x in result.outputs[0].data]
        return result
""")
    assert of.error is None, of.error
    status, _, answer = of.ask("/v2/models/m/infer", {"inputs": [{"name": "x", "shape": [2], "datatype": "INT32", "data": [1, 2]}]})
    assert status == 200, answer
    assert answer["outputs"][0]["data"] == [3, 5]


def test_what_has_begun_is_answered_when_the_program_is_ended(steps, predictor):
    entered, go = threading.Event(), threading.Event()

    def answer(path, body):
        entered.set()
        go.wait(20)
        return 200, {"predictions": [1]}

    predictor.answer = answer
    of = steps("def preprocess(payload): return payload")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(of.ask, "/v1/models/m:predict", {"instances": [1]})
        assert entered.wait(20)
        of.process.terminate()
        time.sleep(0.5)
        go.set()
        assert waiting.result(20)[2] == {"predictions": [1]}
    assert of.process.wait(20) == 0
