# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Python models as tritonclient sees them: Triton's interface, streams, calls to other models (BLS), failures and crashes."""
import json
import os
import pathlib
import queue
import shutil
import signal
import sys
import threading
import time

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from server import Server, until

MODELS = pathlib.Path(__file__).resolve().parents[3] / "backends" / "python" / "src" / "test" / "resources" / "models"

ECHO = """
backend: "python"
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    repository = tmp_path_factory.mktemp("python") / "models"
    shutil.copytree(MODELS, repository)
    (repository / "echo" / "config.pbtxt").write_text(ECHO)
    pair = repository / "pair"
    shutil.copytree(MODELS / "auto_complete", pair)
    (pair / "config.pbtxt").write_text(
        'backend: "python"\nmax_batch_size: 4\ninstance_group { count: 2 kind: KIND_CPU }\n'
        "dynamic_batching { max_queue_delay_microseconds: 300000 preferred_batch_size: 4 }")
    return repository


def start(repository, *more):
    return Server(repository, "--model-control-mode=explicit", "--load-model=*", "--backend-config",
                  f"python,python={sys.executable}", *more)


@pytest.fixture(scope="module")
def server(repository):
    server = start(repository)
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


A = np.array([1, 2, 3, 4], np.float32)
B = np.array([10, 20, 30, 40], np.float32)


def pair(**more):
    return [tensor("INPUT0", more.get("a", A)), tensor("INPUT1", more.get("b", B))]


def moody(client, mood, **more):
    return client.infer("moody", [tensor("MOOD", np.array([mood], np.object_))], **more)


def said(result):
    return result.as_numpy("SAID")[0].decode("utf-8")


def test_add_sub(client):
    result = client.infer("add_sub", pair())
    assert (result.as_numpy("OUTPUT0") == A + B).all()
    assert (result.as_numpy("OUTPUT1") == A - B).all()


def test_add_sub_over_http_and_one_output(server):
    with triton_http.InferenceServerClient(server.base) as client:
        inputs = []
        for name, array in (("INPUT0", A), ("INPUT1", B)):
            i = triton_http.InferInput(name, [4], "FP32")
            i.set_data_from_numpy(array)
            inputs.append(i)
        result = client.infer("add_sub", inputs, outputs=[triton_http.InferRequestedOutput("OUTPUT1")])
        assert [o["name"] for o in result.get_response()["outputs"]] == ["OUTPUT1"]
        assert (result.as_numpy("OUTPUT1") == A - B).all()


def test_v1_of_a_python_model(server):
    status, _, body = server.ask("POST", "/v1/models/auto_complete:predict", json.dumps(
        {"instances": [{"INPUT0": A.tolist(), "INPUT1": B.tolist()}]}))
    assert status == 200, body
    assert json.loads(body)["predictions"] == [{"OUTPUT0": (A + B).tolist(), "OUTPUT1": (A - B).tolist()}]


def test_a_model_without_configuration_says_what_it_takes(client):
    metadata = client.get_model_metadata("auto_complete", as_json=True)
    assert metadata["platform"] == "python"
    assert [(i["name"], i["datatype"], i["shape"]) for i in metadata["inputs"]] == [
        ("INPUT0", "FP32", ["-1", "4"]), ("INPUT1", "FP32", ["-1", "4"])]
    config = client.get_model_config("auto_complete", as_json=True)["config"]
    assert config["max_batch_size"] == 4
    assert "dynamic_batching" in config
    assert config["backend"] == "python"


def test_requests_are_given_to_execute_together(client):
    # Eight concurrent requests for two instances that wait for four: some must have been batched.
    answers = queue.Queue()
    for _ in range(8):
        client.async_infer("pair", pair(a=A[None], b=B[None]), lambda result, error: answers.put((result, error)))
    together = []
    for _ in range(8):
        result, error = answers.get(timeout=30)
        assert error is None
        assert (result.as_numpy("OUTPUT0") == (A + B)[None]).all()
        together.append(result.get_response().parameters["together"].int64_param)
    assert max(together) >= 2


def test_what_a_request_says_reaches_the_model(client):
    about = json.loads(said(moody(client, "about", request_id="r1", sequence_id=7, sequence_start=True, timeout=5000,
                                  parameters={"colour": "red", "n": 3, "yes": True})))
    assert about["id"] == "r1"
    assert about["correlation"] == 7
    assert about["flags"] == 1
    assert about["timeout"] == 5000
    assert about["parameters"] == {"colour": "red", "n": 3, "yes": True}
    assert about["outputs"] == ["SAID"]
    assert about["instance"] == "moody_0"
    assert about["kind"] == "CPU"
    assert about["config"]["name"] == "moody"
    assert about["config"]["input"][0]["data_type"] == "TYPE_STRING"


def test_response_parameters(client):
    parameters = moody(client, "about").get_response().parameters
    assert parameters["text"].string_param == "é"
    assert parameters["number"].int64_param == 7
    assert parameters["yes"].bool_param is True


def test_errors_keep_their_codes(client):
    with pytest.raises(InferenceServerException, match="I do not like it") as e:
        moody(client, "error")
    assert "NOT_FOUND" in e.value.status()
    with pytest.raises(InferenceServerException, match=r"message: ValueError: what a day \(model.py:\d+\)") as e:
        moody(client, "raises")
    assert "Traceback" not in str(e.value)


def test_logs_carry_the_models_name(server, client):
    moody(client, "logs")
    until(lambda: any("moody_0: a warning from moody" in line for line in server.lines), "the warning in the log")
    until(lambda: any("moody_0: a line from moody" in line for line in server.lines), "the printed line in the log")


def test_bls(client):
    inputs = [tensor("MODEL_NAME", np.array(["add_sub"], np.object_))] + pair()
    result = client.infer("bls_sync", inputs)
    assert (result.as_numpy("OUTPUT0") == A + B).all()
    result = client.infer("bls_async", inputs)
    assert (result.as_numpy("OUTPUT0") == 4 * (A + B)).all()
    assert (result.as_numpy("OUTPUT1") == 4 * (A - B)).all()


def test_models_that_wait_for_others_do_not_keep_them_from_running(server):
    answers = []

    def one(model, factor):
        with triton.InferenceServerClient(server.base) as client:
            inputs = [tensor("MODEL_NAME", np.array(["add_sub"], np.object_))] + pair()
            for _ in range(10):
                answers.append((client.infer(model, inputs).as_numpy("OUTPUT0") == factor * (A + B)).all())

    threads = [threading.Thread(target=one, args=a, daemon=True) for a in 4 * [("bls_sync", 1), ("bls_async", 4)]]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert answers == [True] * 80


def test_bls_of_a_model_that_is_not_there(client):
    inputs = [tensor("MODEL_NAME", np.array(["absent"], np.object_))] + pair()
    for model in ("bls_sync", "bls_async"):
        with pytest.raises(InferenceServerException, match="absent"):
            client.infer(model, inputs)


def test_bls_of_a_decoupled_model(client):
    for n in (0, 3, 100):
        result = client.infer("bls_decoupled", [tensor("IN", np.array([n], np.int32))])
        # The model makes an INT64, whatever its configuration says.
        assert result.as_numpy("SUM").dtype == np.int64
        assert result.as_numpy("SUM")[0] == 2 * n * n


def stream(client, model, inputs, **more):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        client.async_stream_infer(model, inputs, enable_empty_final_response=True, **more)
        while True:
            result, error = answers.get(timeout=30)
            if error is not None:
                raise error
            response = result.get_response()
            if len(response.outputs) > 0:
                yield result
            if response.parameters["triton_final_response"].bool_param:
                return
    finally:
        client.stop_stream()


def test_square_answers_as_often_as_it_is_told(server):
    with triton.InferenceServerClient(server.base) as client:
        for n in (0, 1, 5, 1000):
            values = [r.as_numpy("OUT")[0] for r in stream(client, "square", [tensor("IN", np.array([n], np.int32))])]
            assert values == [n] * n


def repeat(values, delay, wait=0):
    return [
        tensor("IN", np.array(values, np.int32)),
        tensor("DELAY", np.array([delay] * len(values), np.uint32)),
        tensor("WAIT", np.array([wait], np.uint32)),
    ]


def test_repeat_answers_one_after_the_other(server):
    with triton.InferenceServerClient(server.base) as client:
        began = time.monotonic()
        answers = [(r.as_numpy("OUT")[0], r.as_numpy("IDX")[0]) for r in stream(client, "repeat", repeat([4, 2, 9], 50))]
        assert answers == [(4, 0), (2, 1), (9, 2)]
        assert time.monotonic() - began >= 0.15


def test_streams_of_one_instance_run_side_by_side(server):
    took = []

    def one():
        with triton.InferenceServerClient(server.base) as client:
            began = time.monotonic()
            assert len(list(stream(client, "repeat", repeat(range(10), 50)))) == 10
            took.append(time.monotonic() - began)

    threads = [threading.Thread(target=one) for _ in range(4)]
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(took) == 4
    assert time.monotonic() - began < 1.8


def test_an_async_decoupled_model_takes_the_next_while_it_waits(server):
    began = time.monotonic()
    with triton.InferenceServerClient(server.base) as client:
        answers = queue.Queue()
        client.start_stream(lambda result, error: answers.put((result, error)))
        for i in range(8):
            client.async_stream_infer("waiting", [tensor("IN", np.array([1], np.int32))], request_id=str(i))
        for _ in range(16):
            result, error = answers.get(timeout=30)
            assert error is None
            assert result.as_numpy("OUT")[0] == 1
        client.stop_stream()
    assert time.monotonic() - began < 2.0, "eight waits of 0.3 s side by side"


def test_errors_of_an_async_decoupled_model(server):
    with triton.InferenceServerClient(server.base) as client:
        with pytest.raises(InferenceServerException, match="ValueError: a negative number"):
            list(stream(client, "waiting", [tensor("IN", np.array([-1], np.int32))]))
        with pytest.raises(InferenceServerException, match="several responses instead of one"):
            list(stream(client, "waiting", [tensor("IN", np.array([3], np.int32))]))


def test_a_request_is_seen_again(server):
    with triton.InferenceServerClient(server.base) as client:
        values = [r.as_numpy("OUT")[0] for r in stream(client, "countdown", [tensor("IN", np.array([4], np.int32))])]
        assert values == [3, 2, 1, 0]


def test_an_error_before_a_stream(server):
    inputs = repeat([1, 2], 0)
    inputs[1] = tensor("DELAY", np.array([1], np.uint32))
    with triton.InferenceServerClient(server.base) as client:
        with pytest.raises(InferenceServerException, match="expected IN and DELAY shape to match"):
            list(stream(client, "repeat", inputs))


def test_a_model_sees_that_its_client_has_gone(server):
    with triton.InferenceServerClient(server.base) as client:
        answers = queue.Queue()
        call = client.async_infer(
            "moody", [tensor("MOOD", np.array(["cancelled"], np.object_))], lambda result, error: answers.put((result, error)))
        time.sleep(0.5)
        began = time.monotonic()
        call.cancel()
        _, error = answers.get(timeout=10)
        assert error is not None
        # The instance is free again at once, not after the twenty seconds that the model would wait.
        assert said(moody(client, "pid")).isdigit()
        assert time.monotonic() - began < 10


def test_a_dead_process_is_replaced(client):
    before = said(moody(client, "pid"))
    with pytest.raises(InferenceServerException, match=r"process of model 'moody' ended \(signal 9\)") as e:
        moody(client, "crash")
    assert "UNAVAILABLE" in e.value.status()
    now = said(moody(client, "pid"))
    assert now != before
    os.kill(int(now), signal.SIGKILL)
    until(lambda: not alive(int(now)), "the process's end")

    def answered():
        try:
            return said(moody(client, "pid"))
        except InferenceServerException:
            return None

    assert until(answered, "another process, after a pause") != now


def test_large_tensors(client):
    data = np.random.default_rng(1).random(3_000_000, np.float32)
    for _ in range(5):
        for how in ("same", "copy"):
            result = client.infer("echo", [tensor("IN", data)], parameters={"how": how})
            assert (result.as_numpy("OUT") == data).all()


def test_is_model_ready_and_bls_to_itself_by_another_name(client):
    for model, ready in (("add_sub", 1), ("absent", 0)):
        result = client.infer("echo", [tensor("IN", A)], parameters={"how": "ready", "model": model})
        assert result.as_numpy("OUT")[0] == ready


def counting(client, what):
    return said(client.infer("counting", [tensor("WHAT", np.array([what], np.object_))]))


def test_metrics_of_a_model_are_on_the_page(server, client):
    before = server.metric('asked_total{model="counting",what="count"}')
    assert counting(client, "count 2.5") == "done"
    assert server.metric('asked_total{model="counting",what="count"}') == before + 2.5
    assert counting(client, "level 8") == "7.0"
    assert counting(client, "time 0.05 5") == "done"
    page = server.ask("GET", "/metrics")[2].decode()
    assert "# TYPE asked_total counter\n" in page and "# HELP asked_total Requests, by what they asked\n" in page
    assert "\nlevel 7\n" in page
    assert 'time_seconds_bucket{kind="a \\"quoted\\"\\none",le="1"} 1\n' in page
    assert counting(client, "count -1").startswith("metric 'asked_total' is a COUNTER")


def test_a_model_says_whether_it_is_ready(server, client):
    assert client.is_model_ready("counting")
    counting(client, "ready no")
    until(lambda: not client.is_model_ready("counting"), "the model still counts as ready")
    assert server.ask("GET", "/v2/models/counting/ready")[0] != 200
    assert client.is_server_ready()
    counting(client, "ready yes")
    until(lambda: client.is_model_ready("counting"), "the model does not count as ready again")


def test_many_clients_at_once(server):
    problems = []

    def one(seed):
        rng = np.random.default_rng(seed)
        with triton.InferenceServerClient(server.base) as client:
            for _ in range(30):
                a, b = rng.random(4, np.float32), rng.random(4, np.float32)
                result = client.infer("add_sub", pair(a=a, b=b))
                if not (result.as_numpy("OUTPUT0") == a + b).all():
                    problems.append((a, b, result.as_numpy("OUTPUT0")))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert problems == []


def test_a_model_that_does_not_start_says_why(repository, client):
    broken = repository / "broken" / "1"
    broken.mkdir(parents=True)
    (broken / "model.py").write_text(
        "class TritonPythonModel:\n    def initialize(self, args):\n        open('/no/such/weights')\n"
        "    def execute(self, requests):\n        pass\n")
    (broken.parent / "config.pbtxt").write_text(ECHO)
    with pytest.raises(InferenceServerException, match="FileNotFoundError: .*/no/such/weights") as e:
        client.load_model("broken")
    assert "initialize" in str(e.value)


def test_reloading_and_unloading_leave_no_process(client):
    before = int(said(moody(client, "pid")))
    client.load_model("moody")
    assert int(said(moody(client, "pid"))) == before, "nothing has changed, nothing is loaded again"
    client.unload_model("moody")
    until(lambda: not alive(before), "the process's end")
    client.load_model("moody")
    assert int(said(moody(client, "pid"))) != before


def children(pid):
    return [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and _parent(p) == pid]


def _parent(p):
    return _stat(p, 1)


def _stat(p, field):
    try:
        value = (p / "stat").read_text().rsplit(")", 1)[1].split()[field]
        return int(value) if field else value
    except OSError:
        return -1


def alive(pid):
    """Whether the process runs; a zombie stays in the process list until its parent has waited for it."""
    return _stat(pathlib.Path(f"/proc/{pid}"), 0) not in (-1, "Z")


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="no /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_survives_the_server(repository, how):
    server = start(repository)
    with triton.InferenceServerClient(server.base) as client:
        worker = int(said(moody(client, "pid")))
        child = int(said(moody(client, "child")))
        # One instance is busy when the server stops.
        client.async_infer("moody", [tensor("MOOD", np.array(["cancelled"], np.object_))], lambda result, error: None)
        time.sleep(0.3)
        jvm = _parent(pathlib.Path(f"/proc/{worker}"))
        workers = children(jvm)
        assert worker in workers
        os.kill(jvm, how)
        until(lambda: not any(alive(p) for p in workers + [child]),
              "the end of every process", 60)
    server.process.wait(20)
    assert not [p.name for p in pathlib.Path("/dev/shm").glob("nereid-*")]
