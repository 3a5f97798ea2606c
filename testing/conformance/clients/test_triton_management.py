# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Triton's management and extensions as tritonclient, curl and files see them."""
import base64
import http.server as http_server
import json
import queue
import shutil
import threading
import time

import numpy as np
import pytest

grpc = pytest.importorskip("tritonclient.grpc")
http = pytest.importorskip("tritonclient.http")
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

import scenarios
from server import EXAMPLES, Server, samples, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("managed")


@pytest.fixture(scope="module")
def repository(folder):
    repository = folder / "models"
    repository.mkdir()
    scenarios.build(repository)
    shutil.copytree(EXAMPLES / "simple", repository / "simple")
    scenarios.add(repository, "versions", scenarios.identity(extra="version_policy { all { } }\n"), (1, 2, 7))
    scenarios.add(repository, "wrong", "max_batch_size: -3\nbackend: \"identity\"\n")
    return repository


@pytest.fixture(scope="module")
def server(repository, folder):
    server = Server(
        repository, "--model-control-mode=explicit", "--load-model=add_sub", "--load-model=repeat", "--load-model=square",
        "--load-model=tagged", "--load-model=echo", "--load-model=versions", "--load-model=simple",
        "--allow-client-shm=true", "--allow-model-upload", "--metrics-config=summary_latencies=true",
        f"--trace-config=triton,file={folder}/trace.json", "--trace-config=rate=1", "--trace-config=level=OFF",
        "--http-restricted-api=logging:admin-key=secret", "--grpc-restricted-protocol=logging:admin-key=secret",
        "--http-header-forward-pattern=my-.*",
        environment=samples(),
    )
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


@pytest.fixture(scope="module", params=["http", "grpc"])
def client(server, request):
    module = http if request.param == "http" else grpc
    with module.InferenceServerClient(server.base) as client:
        client.module = module
        client.kind = request.param
        client.json = {} if request.param == "http" else {"as_json": True}
        yield client


def tensor(client, name, array, datatype):
    tensor = client.module.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


def infer_simple(client, model="add_sub", **options):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    b = np.ones((1, 16), dtype=np.int32)
    result = client.infer(model, [tensor(client, "INPUT0", a, "INT32"), tensor(client, "INPUT1", b, "INT32")], **options)
    assert np.array_equal(result.as_numpy("OUTPUT0"), a + b)
    return result


def index(client):
    listed = client.get_model_repository_index(**client.json)
    return {(m["name"], m.get("version", "")): m for m in (listed if client.kind == "http" else listed["models"])}


# --- loading and unloading


def test_models_are_loaded_and_unloaded_by_name(client):
    assert not client.is_model_ready("reshaped")
    client.load_model("reshaped")
    assert client.is_model_ready("reshaped")
    assert index(client)[("reshaped", "1")]["state"] == "READY"
    client.unload_model("reshaped")
    until(lambda: not client.is_model_ready("reshaped"), "the model is unloaded")
    until(lambda: index(client)[("reshaped", "1")].get("reason") == "unloaded", "the index says why")
    assert index(client)[("reshaped", "1")]["state"] == "UNAVAILABLE"
    with pytest.raises(InferenceServerException, match="'reshaped'.*(no available versions|not found|not at ready state)"):
        client.infer("reshaped", [tensor(client, "INPUT0", np.zeros((1, 4), np.float32), "FP32")])


def test_a_wrong_model_says_why_and_harms_nobody(client):
    with pytest.raises(InferenceServerException, match="'max_batch_size' must be non-negative value for wrong"):
        client.load_model("wrong")
    with pytest.raises(InferenceServerException, match="failed to load 'nowhere', failed to poll from model repository"):
        client.load_model("nowhere")
    infer_simple(client)


def test_a_load_may_bring_its_own_configuration(client):
    config = {
        "name": "batched", "backend": "identity", "max_batch_size": 3,
        "input": [{"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [-1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [-1]}],
    }
    client.load_model("batched", config=json.dumps(config))
    shown = client.get_model_config("batched", **client.json)
    shown = shown if client.kind == "http" else shown["config"]
    assert shown["max_batch_size"] == 3 and shown["input"][0]["data_type"] == "TYPE_INT32"
    client.load_model("batched")
    shown = client.get_model_config("batched", **client.json)
    assert (shown if client.kind == "http" else shown["config"])["max_batch_size"] == 8, "the stored one again"
    with pytest.raises(InferenceServerException, match="(?i)invalid config override"):
        client.load_model("batched", config='{"max_batch_sise": 3}')
    client.unload_model("batched")


def test_a_load_may_bring_its_own_files(client):
    onnx = (EXAMPLES / "simple" / "1" / "model.onnx").read_bytes()
    config = json.dumps({"backend": "onnxruntime", "max_batch_size": 8})
    client.load_model("brought", config=config, files={"file:1/model.onnx": onnx})
    infer_simple(client, "brought")
    client.unload_model("brought")
    with pytest.raises(InferenceServerException, match="Load parameter 'config' must be specified for model file override"):
        client.load_model("brought", files={"file:1/model.onnx": onnx})
    with pytest.raises(InferenceServerException, match="must stay within model directory"):
        client.load_model("brought", config=config, files={"file:../../model.onnx": onnx})


def test_an_ensemble_brings_and_takes_its_models(client):
    client.load_model("slow_ensemble")
    assert client.is_model_ready("slow_default")
    client.unload_model("slow_ensemble", unload_dependents=True)
    until(lambda: not client.is_model_ready("slow_default"), "the step is unloaded too")


def test_all_versions_of_a_policy_answer(client):
    assert sorted(client.get_model_metadata("versions", **client.json)["versions"]) == ["1", "2", "7"]
    array = np.zeros((1, 2), np.float32)
    for version in ("1", "2", "7", ""):
        result = client.infer("versions", [tensor(client, "INPUT0", array, "FP32")], model_version=version)
        response = result.get_response()
        got = response["model_version"] if client.kind == "http" else response.model_version
        assert got == (version or "7")
    with pytest.raises(InferenceServerException, match="version 3"):
        client.infer("versions", [tensor(client, "INPUT0", array, "FP32")], model_version="3")


def test_a_changed_instance_count_needs_no_reload(server, repository, client):
    file = repository / "tagged" / "config.pbtxt"
    infer = lambda: client.infer("tagged", [tensor(client, "INPUT0", np.zeros((1, 2), np.float32), "FP32")])
    infer()
    before = statistic(client, "tagged", "inference_count")
    assert before >= 1
    count = 5 if client.kind == "http" else 6
    file.write_text(scenarios.MODELS["tagged"] + f"instance_group {{ kind: KIND_CPU count: {count} }}\n")
    client.load_model("tagged")
    shown = client.get_model_config("tagged", **client.json)
    shown = shown if client.kind == "http" else shown["config"]
    assert shown["instance_group"][0]["count"] == count
    assert statistic(client, "tagged", "inference_count") == before, "the same loaded model goes on counting"


def test_changed_batching_needs_no_reload(server, repository, client):
    file = repository / "tagged" / "config.pbtxt"

    def load(batching, override=False):
        text = scenarios.MODELS["tagged"] + f"dynamic_batching {{ {batching} }}\n"
        if override:
            shown = client.get_model_config("tagged", **client.json)
            shown = shown if client.kind == "http" else shown["config"]
            shown["dynamic_batching"]["max_queue_delay_microseconds"] = 5
            client.load_model("tagged", config=json.dumps(shown))
        else:
            file.write_text(text)
            client.load_model("tagged")
        shown = client.get_model_config("tagged", **client.json)
        return (shown if client.kind == "http" else shown["config"])["dynamic_batching"]

    load("preserve_ordering: false")
    client.infer("tagged", [tensor(client, "INPUT0", np.zeros((1, 2), np.float32), "FP32")])
    # A run that another thread makes is counted after its response.
    until(lambda: statistic(client, "tagged", "inference_count") == 1, "the request is counted")
    shown = load("max_queue_delay_microseconds: 70 preferred_batch_size: [ 2 ] priority_levels: 3 default_priority_level: 2")
    assert int(shown["max_queue_delay_microseconds"]) == 70
    assert [int(size) for size in shown["preferred_batch_size"]] == [2]
    assert int(shown["priority_levels"]) == 3
    assert statistic(client, "tagged", "inference_count") == 1, "the same loaded model goes on counting"
    assert int(load("", override=True)["max_queue_delay_microseconds"]) == 5
    client.infer("tagged", [tensor(client, "INPUT0", np.zeros((1, 2), np.float32), "FP32")], priority=1)
    until(lambda: statistic(client, "tagged", "inference_count") == 2, "the same loaded model counts both requests")
    file.write_text(scenarios.MODELS["tagged"])
    client.load_model("tagged")


# --- observability


def statistic(client, model, name):
    stats = client.get_inference_statistics(model, **client.json)["model_stats"]
    return int(stats[0].get(name, 0))


def test_statistics_count(client):
    before = statistic(client, "add_sub", "inference_count")
    for _ in range(3):
        infer_simple(client)
    assert statistic(client, "add_sub", "inference_count") == before + 3
    everything = client.get_inference_statistics(**client.json)["model_stats"]
    assert {"add_sub", "repeat", "versions"} <= {m["name"] for m in everything}
    with pytest.raises(InferenceServerException, match="nowhere"):
        client.get_inference_statistics("nowhere")


def test_the_configuration_is_complete(client):
    shown = client.get_model_config("add_sub", **client.json)
    shown = shown if client.kind == "http" else shown["config"]
    assert shown["version_policy"]["latest"]["num_versions"] == 1
    assert shown["dynamic_batching"]["preferred_batch_size"] == [8]
    assert shown["instance_group"][0]["kind"] == "KIND_CPU"
    assert shown["optimization"]["input_pinned_memory"]["enable"] is True
    repeat = client.get_model_config("repeat", **client.json)
    assert (repeat if client.kind == "http" else repeat["config"])["model_transaction_policy"]["decoupled"] is True


def test_the_extensions_are_listed(client):
    listed = client.get_server_metadata(**client.json)["extensions"]
    for extension in (
        "classification", "sequence", "model_repository", "model_repository(unload_dependents)", "schedule_policy",
        "model_configuration", "system_shared_memory", "binary_tensor_data", "parameters", "statistics", "trace", "logging",
    ):
        assert extension in listed


def test_metrics_have_tritons_names(server, client):
    infer_simple(client)
    page = server.ask("GET", "/metrics")[2].decode()
    for name in (
        "nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count", "nv_inference_exec_count",
        "nv_inference_request_duration_us", "nv_inference_queue_duration_us", "nv_inference_compute_input_duration_us",
        "nv_inference_compute_infer_duration_us", "nv_inference_compute_output_duration_us",
        "nv_inference_pending_request_count", "nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_model_load_duration_secs",
        "nv_inference_request_summary_us",
    ):
        assert f"\n{name}{{" in page or f"\n{name} " in page, name
    assert '_team="sea"' in page
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        assert f'reason="{reason}"' in page


def test_traces_are_switched_on_and_off(server, folder, client):
    settings = client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "2"}, **client.json)
    infer_simple(client)
    settings = client.get_trace_settings(**client.json)
    value = settings["trace_level"] if client.kind == "http" else settings["settings"]["trace_level"]["value"]
    assert value == ["TIMESTAMPS"]
    client.update_trace_settings(settings={"trace_level": ["OFF"], "trace_count": "-1"})
    with pytest.raises(InferenceServerException, match="trace file location can not be updated through network protocol"):
        client.update_trace_settings(settings={"trace_file": "elsewhere"})
    until(lambda: (folder / "trace.json").exists(), "the file is there")
    text = until(lambda: "INFER_RESPONSE_COMPLETE" in (folder / "trace.json").read_text() or "COMPUTE_END" in (folder / "trace.json").read_text(), "traces are written")
    assert text


def test_logging_settings_need_their_header(server, client):
    key = "admin-key" if client.kind == "http" else "triton-grpc-protocol-admin-key"
    with pytest.raises(InferenceServerException, match="restricted, expecting header"):
        client.get_log_settings()
    settings = client.update_log_settings({"log_verbose_level": 1, "log_info": True}, headers={key: "secret"}, **client.json)
    settings = client.get_log_settings(headers={key: "secret"}, **client.json)
    shown = settings if client.kind == "http" else {k: next(iter(v.values())) for k, v in settings["settings"].items()}
    assert int(shown["log_verbose_level"]) == 1
    client.update_log_settings({"log_verbose_level": 0}, headers={key: "secret"})
    with pytest.raises(InferenceServerException, match="log file location can not be updated through network protocol"):
        client.update_log_settings({"log_file": "x"}, headers={key: "secret"})


# --- shared memory


def test_tensors_travel_in_shared_memory(client):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    b = np.full((1, 16), 4, dtype=np.int32)
    key = f"/nereid_test_{client.kind}"
    region = shm.create_shared_memory_region("both", key, 256)
    try:
        shm.set_shared_memory_region(region, [a, b])
        client.unregister_system_shared_memory()
        client.register_system_shared_memory("both", key, 256)
        status = client.get_system_shared_memory_status(**client.json)
        shown = {r["name"]: r for r in status} if client.kind == "http" else status["regions"]
        assert int(shown["both"]["byte_size"]) == 256
        inputs = [client.module.InferInput(n, [1, 16], "INT32") for n in ("INPUT0", "INPUT1")]
        inputs[0].set_shared_memory("both", 64)
        inputs[1].set_shared_memory("both", 64, offset=64)
        outputs = [client.module.InferRequestedOutput("OUTPUT0"), client.module.InferRequestedOutput("OUTPUT1")]
        outputs[0].set_shared_memory("both", 64, offset=128)
        result = client.infer("add_sub", inputs, outputs=outputs)
        assert np.array_equal(result.as_numpy("OUTPUT1"), a - b)
        assert np.array_equal(shm.get_contents_as_numpy(region, np.int32, [1, 16], 128), a + b)
        outputs[0].set_shared_memory("both", 32, offset=128)
        with pytest.raises(InferenceServerException, match="should be at least 64 bytes to hold the results"):
            client.infer("add_sub", inputs, outputs=outputs)
        with pytest.raises(InferenceServerException, match="shared memory region 'both' already in manager"):
            client.register_system_shared_memory("both", key, 256)
        client.unregister_system_shared_memory("both")
        with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'both'"):
            client.infer("add_sub", inputs)
        with pytest.raises(InferenceServerException, match="Unable to open shared memory region: '/nereid_no_such'"):
            client.register_system_shared_memory("none", "/nereid_no_such", 64)
        with pytest.raises(InferenceServerException, match="failed to register shared memory region: invalid args"):
            client.register_system_shared_memory("far", key, 256, offset=4096)
    finally:
        shm.destroy_shared_memory_region(region)


# --- generate


def generate(server, path, body):
    status, headers, answer = server.ask("POST", path, json.dumps(body), {"content-type": "application/json"})
    return status, headers, answer.decode()


def test_generate_maps_fields_to_tensors_and_back(server):
    status, _, answer = generate(server, "/v2/models/echo/generate", {"INPUT0": 7, "id": "g"})
    assert status == 200
    answer = json.loads(answer)
    assert answer["OUTPUT0"] == 7 and answer["model_name"] == "echo" and answer["id"] == "g"
    status, _, answer = generate(server, "/v2/models/echo/generate", {"INPUT0": "text"})
    assert status == 400 and "INPUT0" in answer


def test_generate_stream_sends_every_answer_as_an_event(server):
    status, headers, answer = generate(server, "/v2/models/square/generate_stream", {"IN": 3})
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    events = [json.loads(e[len("data: "):]) for e in answer.split("\n\n") if e]
    assert [e["OUT"] for e in events] == [3, 3, 3]
    status, _, answer = generate(server, "/v2/models/square/generate", {"IN": 3})
    assert status == 400 and "generate expects model to produce exactly 1 response" in answer
    status, _, answer = generate(server, "/v2/models/repeat/generate_stream", {"IN": [5, 6], "DELAY": [10, 10], "WAIT": 0})
    assert [json.loads(e[6:])["OUT"] for e in answer.split("\n\n") if e] == [5, 6]


def test_a_decoupled_model_is_not_for_plain_http(server):
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [1]}]}
    status, _, answer = generate(server, "/v2/models/square/infer", body)
    assert status == 501 and "doesn't support models with decoupled transaction policy" in answer


# --- the rest


def test_a_full_reload_serves_without_a_gap(server, repository):
    stop, failures, served = threading.Event(), [], [0]

    def load():
        with grpc.InferenceServerClient(server.base) as mine:
            mine.module = grpc
            while not stop.is_set():
                try:
                    infer_simple(mine, "simple")
                    served[0] += 1
                except Exception as e:
                    failures.append(e)

    worker = threading.Thread(target=load)
    worker.start()
    try:
        with grpc.InferenceServerClient(server.base) as mine:
            for i in range(5):
                (repository / "simple" / "config.pbtxt").write_text(
                    f'backend: "onnxruntime"\nmax_batch_size: 8\nparameters {{ key: "round" value {{ string_value: "{i}" }} }}\n')
                before = served[0]
                mine.load_model("simple")
                until(lambda: failures or served[0] > before + 2, "requests are answered beside the reload and after it")
    finally:
        stop.set()
        worker.join()
    assert not failures and served[0] > 10


def test_cuda_shared_memory_says_that_there_is_none(client):
    with pytest.raises(InferenceServerException):
        client.register_cuda_shared_memory("gpu", base64.b64encode(b"x" * 64), 0, 64)


def test_spans_continue_the_callers_trace_at_a_collector(tmp_path):
    bodies = queue.Queue()

    class Collector(http_server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    collector = http_server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    scenarios.add(tmp_path, "echo", scenarios.MODELS["echo"])
    server = Server(
        tmp_path, "--trace-config=mode=opentelemetry", "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1000000",
        f"--trace-config=opentelemetry,url=http://127.0.0.1:{collector.server_port}/v1/traces",
        "--trace-config=opentelemetry,bsp_schedule_delay=100", "--trace-config=opentelemetry,resource=service.name=sea",
        environment=samples(),
    )
    try:
        trace = "0af7651916cd43dd8448eb211c80319c"
        body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "INT32", "data": [1]}]})
        for headers in ({}, {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}):
            assert server.ask("POST", "/v2/models/echo/infer", body, headers)[0] == 200
        span = bodies.get(timeout=20)
        assert bytes.fromhex(trace) in span and b"InferRequest" in span and b"echo" in span and b"sea" in span
    finally:
        server.stop()
        collector.shutdown()


def test_the_hook_of_tritons_suites_holds_a_queue_until_so_many_wait(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "3")
    scenarios.add(tmp_path, "held", scenarios.identity(extra="dynamic_batching { }\n"))
    server = Server(tmp_path, "--test-hooks", environment=samples())
    try:
        with grpc.InferenceServerClient(server.base) as client:
            client.module = grpc
            answers = queue.Queue()
            for i in range(3):
                assert answers.empty(), "nothing runs before three wait"
                client.async_infer(
                    "held", [tensor(client, "INPUT0", np.zeros((1, 2), np.float32), "FP32")],
                    lambda result, error: answers.put(error))
                time.sleep(0.2)
            assert [answers.get(timeout=10) for _ in range(3)] == [None] * 3
            assert client.get_inference_statistics("held", as_json=True)["model_stats"][0]["execution_count"] == "1"
    finally:
        server.stop()


def test_what_a_configuration_leaves_out_is_not_filled_in_when_told_so(tmp_path):
    (tmp_path / "simple" / "1").mkdir(parents=True)
    shutil.copy(EXAMPLES / "simple" / "1" / "model.onnx", tmp_path / "simple" / "1")
    server = Server(tmp_path, "--disable-auto-complete-config")
    try:
        status, _, answer = server.ask("GET", "/v2/models/simple")
        assert status == 404 or status == 503, answer
        listed = json.loads(server.ask("POST", "/v2/repository/index")[2])
        assert listed[0]["state"] == "UNAVAILABLE" and "input" in listed[0]["reason"], listed
    finally:
        server.stop()
