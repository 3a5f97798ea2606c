# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Python models as people wrote them for Triton: outputs that differ from the configuration, calls to other models in
every form, and answers that come after execute has returned."""
import json
import queue
import sys
import threading
import time

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from server import Server, until

# Makes the output that the text names.
SHAPES = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            how = request.inputs()[0].as_numpy().reshape(-1)[0].decode()
            made = eval(how, {"np": np})
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", made)]))
        return responses
"""

# Runs the text, which sets `out`; waits for its coroutine.
CALLS = """
import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils


def request(**more):
    given = {"model_name": "double", "requested_output_names": ["OUT"],
             "inputs": [pb_utils.Tensor("IN", np.array([21], np.int32))]}
    given.update(more)
    return pb_utils.InferenceRequest(**given)


def value(response):
    if response.has_error():
        return response.error().message()
    return [int(t.as_numpy()[0]) for t in response.output_tensors()]


class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for r in requests:
            text = r.inputs()[0].as_numpy()[0].decode()
            space = {"asyncio": asyncio, "pb_utils": pb_utils, "np": np, "request": request, "value": value, "me": r}
            exec("async def run():\\n" + "".join("    " + line + "\\n" for line in text.splitlines()), space)
            try:
                out = json.dumps(await space["run"]())
            except Exception as e:
                out = f"{type(e).__name__}: {e}"
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([out], np.object_))]))
        return responses
"""

DOUBLE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() * 2)]) for request in requests]
"""

# Decoupled: sends 1, 2, … up to its input; the final flag comes with the last one where the input is negative.
COUNT = """
import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            n = int(request.inputs()[0].as_numpy()[0])
            for i in range(1, abs(n) + 1):
                response = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([i], np.int32))])
                sender.send(response, FINAL if n < 0 and i == -n else 0)
            if n >= 0:
                sender.send(flags=FINAL)
"""

# Answers after execute has returned, from a task of its event loop, as the text says.
LATER = """
import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils

KEPT = []


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            how = request.inputs()[0].as_numpy().reshape(-1)[0].decode()
            if how == "stuck":
                await asyncio.sleep(600)
            task = asyncio.create_task(self.answer(how, request, request.get_response_sender()))
            KEPT.append(task)
            task.add_done_callback(KEPT.remove)
        return None

    async def answer(self, how, request, sender):
        if how == "cancelled":
            while not request.is_cancelled():
                await asyncio.sleep(0.01)
            KEPT.append("seen")
        if how == "kept":
            KEPT.append(sender)
        if how in ("cancelled", "kept", "dropped"):
            return
        await asyncio.sleep(0.5 if how == "slow" else 0.05)
        text = str(KEPT.count("seen")) if how == "seen" else how
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], np.object_))]),
                    pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# The same from threads, without async.
THREADS = """
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            text = request.inputs()[0].as_numpy()[0].decode()
            if text != "dropped":
                threading.Timer(0.3, self.answer, (text, request.get_response_sender())).start()
            else:
                request.get_response_sender()
        return [None] * len(requests)

    def answer(self, text, sender):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], np.object_))]),
                    pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def config(inputs, outputs, more=""):
    def tensors(side, specs):
        return f"{side} [" + ", ".join(f'{{ name: "{n}" data_type: TYPE_{t} dims: {d} }}' for n, t, d in specs) + "]\n"

    return 'backend: "python"\n' + tensors("input", inputs) + tensors("output", outputs) + more


TEXT = [("IN", "STRING", "[1]")]
NUMBER = [("IN", "INT32", "[1]")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("python") / "models"

    def model(name, code, text):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "1" / "model.py").write_text(code)
        (repository / name / "config.pbtxt").write_text(text)

    model("number", SHAPES, config(TEXT, [("OUT", "FP32", "[1]")]))
    model("text", SHAPES, config(TEXT, [("OUT", "STRING", "[1]")]))
    model("rows", SHAPES, config(TEXT, [("OUT", "FP32", "[2]")], "max_batch_size: 4\ndynamic_batching {}"))
    model("reshaped", SHAPES, config(TEXT, []) + 'output { name: "OUT" data_type: TYPE_FP32 dims: [4] '
          "reshape: { shape: [2, 2] } }")
    model("calls", CALLS, config(TEXT, [("OUT", "STRING", "[1]")]))
    model("double", DOUBLE, config(NUMBER, [("OUT", "INT32", "[1]")]))
    model("count", COUNT, config(NUMBER, [("OUT", "INT32", "[1]")], "model_transaction_policy { decoupled: true }"))
    model("later", LATER, config(TEXT, [("OUT", "STRING", "[1]")]))
    model("threads", THREADS, config(TEXT, [("OUT", "STRING", "[1]")]))
    model("batched_later", LATER, config(TEXT, [("OUT", "STRING", "[1]")], "max_batch_size: 8\ndynamic_batching "
                                         "{ max_queue_delay_microseconds: 200000 }"))
    server = Server(repository, "--model-control-mode=explicit", "--load-model=*", "--backend-config",
                    f"python,python={sys.executable}")
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.base) as client:
        yield client


def tensor(name, array):
    tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(array)
    return tensor


def text(*values, rows=False):
    array = np.array(values, np.object_)
    return [tensor("IN", array[:, None] if rows else array)]


def made(client, model, how, rows=False):
    result = client.infer(model, text(how, rows=rows))
    output = result.get_output("OUT")
    return output.datatype, list(output.shape), result.as_numpy("OUT")


# ---- outputs that differ from the configuration (Triton's core compares neither their shape nor their type)

@pytest.mark.parametrize("model, how, datatype, shape", [
    ("number", "np.ones((3, 2), np.float32).sum(axis=1)", "FP32", [3]),
    ("number", "np.float32(1).reshape(())", "FP32", []),
    ("number", "np.ones((2, 3), np.float32)", "FP32", [2, 3]),
    ("number", "np.ones(1)", "FP64", [1]),
    ("number", "np.array([3])", "INT64", [1]),
    ("number", "np.array([2**40])", "INT64", [1]),
    ("number", "np.array([True])", "BOOL", [1]),
    ("number", "np.array([b'x'], np.object_)", "BYTES", [1]),
    ("text", "np.array([])", "FP64", [0]),
    ("text", "np.array([], np.object_)", "BYTES", [0]),
    ("text", "np.array([1, 2], np.int8)", "INT8", [2]),
    ("reshaped", "np.ones((2, 2), np.float32)", "FP32", [4]),
    ("reshaped", "np.ones((2, 2))", "FP64", [4]),
    ("reshaped", "np.ones((3, 2), np.float32)", "FP32", [3, 2]),
])
def test_outputs_are_as_the_model_made_them(client, model, how, datatype, shape):
    value = eval(how)
    got_type, got_shape, got = made(client, model, how)
    assert (got_type, got_shape) == (datatype, shape)
    assert (got.reshape(-1) == value.reshape(-1)).all()


@pytest.mark.parametrize("how, datatype, shape", [
    ("np.ones((1, 3), np.float32)", "FP32", [1, 3]),
    ("np.ones((1, 2), np.float32).sum(axis=1)", "FP32", [1]),
    ("np.ones((5, 2), np.float16)", "FP16", [5, 2]),
])
def test_outputs_of_a_batched_model_are_as_the_model_made_them(client, how, datatype, shape):
    assert made(client, "rows", how, rows=True)[:2] == (datatype, shape)


def test_the_difference_is_logged_once(server, client):
    for _ in range(3):
        made(client, "number", "np.ones(5)")
    lines = [line for line in server.lines if "model 'number' returns output 'OUT'" in line]
    assert len(lines) == 1, lines


def test_outputs_over_json(server):
    body = {"inputs": [{"name": "IN", "datatype": "BYTES", "shape": [1], "data": ["np.arange(3)"]}]}
    status, _, answer = server.ask("POST", "/v2/models/number/infer", json.dumps(body))
    assert status == 200, answer
    assert json.loads(answer)["outputs"] == [
        {"name": "OUT", "shape": [3], "datatype": "INT64", "data": [0, 1, 2]}]
    status, _, answer = server.ask("POST", "/v1/models/number:predict", json.dumps({"inputs": ["np.arange(3)"]}))
    assert (status, json.loads(answer)) == (200, {"outputs": [0, 1, 2]})
    status, _, answer = server.ask("POST", "/v1/models/rows:predict", json.dumps({"instances": [["np.ones((1, 3))"]]}))
    assert (status, json.loads(answer)) == (200, {"predictions": [[1.0, 1.0, 1.0]]})


def test_classes_of_an_output_that_has_no_rows(server):
    with triton_http.InferenceServerClient(server.base) as client:
        i = triton_http.InferInput("IN", [1, 1], "BYTES")
        i.set_data_from_numpy(np.array([["np.float32(3).reshape(())"]], np.object_))
        result = client.infer("rows", [i], outputs=[triton_http.InferRequestedOutput("OUT", class_count=1)])
        assert result.as_numpy("OUT").tolist() == [b"3.000000:0"]


# ---- calls to other models

def called(client, code):
    return json.loads(client.infer("calls", text(code)).as_numpy("OUT")[0])


def refused(client, code):
    return client.infer("calls", text(code)).as_numpy("OUT")[0].decode()


def test_names_may_be_bytes(client):
    assert called(client, """
names = np.array([b"double", b"OUT"], np.object_)
r = request(model_name=names[0], requested_output_names=[names[1]], request_id=b"r1")
return [value(r.exec()), r.model_name(), r.requested_output_names(), r.request_id()]
""") == [[42], "double", ["OUT"], "r1"]
    assert called(client, """
t = pb_utils.Tensor(b"IN", np.array([4], np.int32))
return [t.name(), value(request(inputs=[t]).exec()), pb_utils.TritonError(b"no").message()]
""") == ["IN", [8], "no"]
    assert called(client, "return [pb_utils.is_model_ready(b'double'), pb_utils.is_model_ready(b'absent')]") == [
        True, False]


def test_models_are_loaded_by_names_that_are_bytes(client):
    assert called(client, """
def both():
    pb_utils.unload_model(b"number")
    gone = pb_utils.is_model_ready("number")
    pb_utils.load_model(b"number")
    return gone
gone = await asyncio.get_running_loop().run_in_executor(None, both)
for _ in range(600):
    if pb_utils.is_model_ready("number", b"1"):
        break
    await asyncio.sleep(0.05)
return [gone, pb_utils.is_model_ready("number", "1")]
""") == [False, True]


def test_names_that_are_no_text_are_refused(client):
    assert "a model's name is a str or bytes, got int" in refused(client, "return value(request(model_name=3).exec())")
    assert "a request id is a str or bytes" in refused(client, "return value(request(request_id=3).exec())")
    assert "requested_output_names is a list" in refused(client, "return value(request(requested_output_names='OUT').exec())")


def counted(n):
    return f"request(model_name='count', inputs=[pb_utils.Tensor('IN', np.array([{n}], np.int32))])"


@pytest.mark.parametrize("n, values", [
    (0, [[]]), (3, [[1], [2], [3], []]), (-3, [[1], [2], [3]]),
])
def test_the_responses_of_a_decoupled_model_end_with_the_empty_final_one(client, n, values):
    assert called(client, f"return [value(r) for r in {counted(n)}.exec(decoupled=True)]") == values
    assert called(client, f"return [value(r) for r in await {counted(n)}.async_exec(decoupled=True)]") == values
    assert called(client, f"""
answers = {counted(n)}.exec(decoupled=True)
return [[value(r) for r in answers], [value(r) for r in answers]]""") == [values, values]


def test_a_model_that_is_not_decoupled_called_as_decoupled(client):
    assert called(client, "return [value(r) for r in request().exec(decoupled=True)]") == [[42]]
    assert called(client, "return [value(r) for r in await request().async_exec(decoupled=True)]") == [[42]]


def test_a_decoupled_model_called_as_one_that_is_not(client):
    for call in (".exec()", ".async_exec()"):
        before = "await " if "async" in call else ""
        assert called(client, f"return value({before}{counted(1)}{call})") == [1]
        assert called(client, f"return value({before}{counted(-1)}{call})") == [1]
        assert "several responses instead of one" in called(client, f"return value({before}{counted(3)}{call})")


def test_async_calls_are_futures_that_have_begun(client):
    assert called(client, """
futures = [request().async_exec(), request().async_exec()]
done, _ = await asyncio.wait(futures, timeout=30)
return sorted(value(f.result()) for f in done)""") == [[42], [42]]
    assert called(client, """
results = await asyncio.gather(request().async_exec(), request(model_name="absent").async_exec(),
    request(model_name="count", inputs=[pb_utils.Tensor("IN", np.array([2], np.int32))]).async_exec(decoupled=True))
return [value(results[0]), results[1].has_error(), [value(r) for r in results[2]]]""") == [
        [42], True, [[1], [2], []]]
    assert called(client, """
future = request().async_exec()
for _ in range(600):
    if future.done():
        break
    await asyncio.sleep(0.05)
return value(future.result())""") == [42]
    assert "needs its model_name" in refused(client, "return value(await request(model_name='').async_exec())")


def test_async_calls_from_an_event_loop_of_the_model(client):
    assert called(client, """
async def both():
    return await asyncio.gather(request().async_exec(), request().async_exec())
return [value(r) for r in await asyncio.get_running_loop().run_in_executor(None, asyncio.run, both())]""") == [
        [42], [42]]


# ---- answers after execute has returned

def said(client, model, how, **more):
    return client.infer(model, text(how), **more).as_numpy("OUT")[0].decode()


@pytest.mark.parametrize("model", ["later", "threads"])
def test_answers_come_after_execute_has_returned(client, model):
    for i in range(3):
        assert said(client, model, f"answer {i}", client_timeout=30) == f"answer {i}"


def test_the_instance_is_free_while_an_answer_is_still_to_come(client):
    answers = queue.Queue()
    for i in range(6):
        client.async_infer("later", text("slow"), lambda result, error: answers.put((result, error)), request_id=str(i))
    began = time.monotonic()
    assert said(client, "later", "quick", client_timeout=30) == "quick"
    quick = time.monotonic() - began
    for _ in range(6):
        result, error = answers.get(timeout=30)
        assert error is None and result.as_numpy("OUT")[0] == b"slow"
    assert quick < 2.5, "six answers of half a second, one after the other, take three seconds"


def test_a_batch_of_answers_that_come_later(client):
    answers = queue.Queue()
    for i in range(5):
        client.async_infer("batched_later", text(f"n{i}", rows=True), lambda result, error: answers.put((result, error)))
    got = set()
    for _ in range(5):
        result, error = answers.get(timeout=30)
        assert error is None
        got.add(result.as_numpy("OUT")[0].decode())
    assert got == {f"n{i}" for i in range(5)}


@pytest.mark.parametrize("model", ["later", "threads"])
def test_a_request_that_nothing_can_answer_any_more_fails(client, model):
    with pytest.raises(InferenceServerException, match="has not answered a request") as e:
        said(client, model, "dropped", client_timeout=60)
    assert "INTERNAL" in e.value.status()
    assert said(client, model, "next", client_timeout=30) == "next"


@pytest.mark.parametrize("how", ["kept", "stuck"])
def test_a_model_that_never_answers_does_not_keep_its_instance(client, how):
    answers = queue.Queue()
    call = client.async_infer("later", text(how), lambda result, error: answers.put((result, error)))
    time.sleep(0.5)
    call.cancel()
    assert answers.get(timeout=30)[1] is not None
    assert said(client, "later", "next", client_timeout=30) == "next"


def test_the_timeout_of_a_client_that_is_never_answered(client):
    with pytest.raises(InferenceServerException, match="(?i)deadline"):
        said(client, "later", "stuck", client_timeout=1)
    assert said(client, "later", "next", client_timeout=30) == "next"


def test_a_model_that_answers_later_sees_that_its_client_has_gone(client):
    before = int(said(client, "later", "seen", client_timeout=30))
    answers = queue.Queue()
    call = client.async_infer("later", text("cancelled"), lambda result, error: answers.put((result, error)))
    time.sleep(0.5)
    call.cancel()
    until(lambda: int(said(client, "later", "seen", client_timeout=30)) > before, "the model sees the cancellation", 30)


def test_many_answers_later_from_many_clients(server):
    problems = []

    def one(number):
        with triton.InferenceServerClient(server.base) as client:
            for i in range(10):
                if said(client, "later", f"{number} {i}", client_timeout=60) != f"{number} {i}":
                    problems.append((number, i))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert problems == []


# ---- configurations and errors

COMPLETING = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(c):
        c.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
        c.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        c.add_output({"name": "MORE", "data_type": "TYPE_INT8", "dims": [1]})
        c.set_model_transaction_policy({"decoupled": False})
        c.set_max_batch_size(0)
        return c

    def execute(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("its own words")) for _ in requests]
"""

PARTIAL = """
input { name: "IN" dims: [ 4 ] }
output [ { name: "OUT" data_type: TYPE_FP32 }, { name: "MORE" dims: [ 1 ] } ]
model_metrics { metric_control { metric_identifier { family: "nv_unknown" } histogram_options { buckets: [ 1, 2 ] } } }
"""


@pytest.fixture(scope="module")
def configured(tmp_path_factory):
    repository = tmp_path_factory.mktemp("configured") / "models"
    for name, text in (("partial", PARTIAL), ("named", 'backend: "python"' + PARTIAL)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "1" / "model.py").write_text(COMPLETING)
        (repository / name / "config.pbtxt").write_text(text)
    server = Server(repository, "--model-control-mode=explicit", "--load-model=*", "--allow-model-upload",
                    "--backend-config", f"python,python={sys.executable}")
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("name", ["partial", "named"])
def test_a_model_completes_its_configuration(configured, name):
    config = json.loads(configured.ask("GET", f"/v2/models/{name}/config")[2])
    assert [(t["name"], t["data_type"], t["dims"]) for t in config["input"] + config["output"]] == [
        ("IN", "TYPE_FP32", [4]), ("OUT", "TYPE_FP32", [4]), ("MORE", "TYPE_INT8", [1])]
    assert (config["platform"], config["backend"], config["default_model_filename"]) == ("", "python", "model.py")
    assert config["model_transaction_policy"] == {"decoupled": False}
    assert json.loads(configured.ask("GET", f"/v2/models/{name}")[2])["platform"] == "python"
    assert any("nv_unknown" in line and "WARN" in line for line in configured.lines)


def test_the_text_of_a_triton_error_is_its_own(configured):
    body = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}]})
    status, _, answer = configured.ask("POST", "/v2/models/partial/infer", body)
    assert (status, json.loads(answer)) == (500, {"error": "its own words"})
    page = configured.ask("GET", "/metrics")[2].decode()
    assert 'nv_inference_request_failure{model="partial",reason="BACKEND",version="1"} 1' in page


def load(server, files):
    import base64

    parameters = {"config": json.dumps({"backend": "python"})}
    parameters.update({name: base64.b64encode(COMPLETING.encode()).decode() for name in files})
    return server.ask("POST", "/v2/repository/models/sent/load", json.dumps({"parameters": parameters}), timeout=60)


def test_files_of_a_load_request(configured):
    status, _, answer = load(configured, ["file:/1/model.py"])
    assert status == 200, answer
    assert configured.ask("GET", "/v2/models/sent/ready")[0] == 200
    status, _, answer = load(configured, ["file:1/" + "n" * 256])
    assert status == 400 and "256 bytes (expected: at most 255)" in json.loads(answer)["error"], answer
