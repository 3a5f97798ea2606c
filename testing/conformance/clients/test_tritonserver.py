# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""What scripts around tritonserver rely on: its options, how they wait for it, and how it ends."""
import asyncio
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

triton = pytest.importorskip("tritonclient.grpc")
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

import models
from server import FIXTURES, Server, program, samples, until

ONE = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    repository = tmp_path_factory.mktemp("tritonserver") / "models"
    # Its configuration is larger than the smallest answer that is compressed.
    models.add_identity(repository, "quick", "FP32", "".join(
        f'parameters {{ key: "p{i}" value {{ string_value: "{"v" * 50}" }} }}\n' for i in range(40)))
    models.add_identity(repository, "slow", "FP32", models.delay(3000))
    models.add_identity(repository, "endless", "FP32", models.delay(60000))
    return repository


@pytest.fixture(scope="module")
def server(repository):
    server = Server("--model-repository", repository, "--model-control-mode=explicit", "--load-model=quick",
                    environment=samples())
    yield server
    assert server.stop() == 0


# ---- waiting for ready

def test_a_model_that_is_not_ready_over_grpc(server, repository):
    with triton.InferenceServerClient(server.base) as client:
        assert client.is_model_ready("quick")
        assert client.is_model_ready("quick", "1")
        assert not client.is_model_ready("quick", "7")
        assert not client.is_model_ready("absent")
        assert not client.is_model_ready("slow"), "it is in the repository, but not loaded"
        with pytest.raises(InferenceServerException, match="(?i)version"):
            client.is_model_ready("quick", "one")
    with triton_http.InferenceServerClient(server.base) as client:
        assert client.is_model_ready("quick")
        assert not client.is_model_ready("absent")


def test_a_loop_that_waits_until_a_model_is_ready(server):
    with triton.InferenceServerClient(server.base) as client:
        def loads():
            time.sleep(1)
            client.load_model("slow")

        thread = threading.Thread(target=loads)
        thread.start()
        until(lambda: client.is_model_ready("slow"), "the model is ready", 60)
        thread.join()


def curl(server, path):
    done = subprocess.run(
        ["curl", "-s", "-w", "%{http_code}", f"http://{server.base}{path}"], capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/v2/models/quick/ready",
                                  "/v2/models/quick/versions/1/ready"])
def test_scripts_that_compare_the_output_of_curl(server, path):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    assert curl(server, path) == "200"


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/v2/models/quick/ready"])
def test_health_has_no_body_with_the_options_of_tritonserver(server, path):
    status, headers, body = server.ask("GET", path)
    assert (status, body, headers.get("content-length")) == (200, b"", "0")
    assert "content-type" not in headers


@pytest.mark.parametrize("arguments, empty", [
    ([], False),
    (["--strict-readiness=true"], True),
    (["--exit-timeout-secs", "5"], True),
])
def test_the_body_of_health_by_the_options_used(repository, arguments, empty):
    server = Server(repository / "quick", *arguments, environment=samples())
    try:
        body = server.ask("GET", "/v2/health/ready")[2]
        assert body == b"" if empty else json.loads(body) == {"ready": True}
        body = server.ask("GET", "/v2/models/quick/ready")[2]
        assert body == b"" if empty else json.loads(body) == {"name": "quick", "ready": True}
    finally:
        assert server.stop() == 0


def test_health_with_the_options_of_kserve_has_a_body(repository):
    server = Server("--model_dir", repository / "quick", "--model_name", "quick", "--http_port", "0",
                    environment=samples())
    try:
        assert json.loads(server.ask("GET", "/v2/health/ready")[2]) == {"ready": True}
    finally:
        assert server.stop() == 0


# ---- the end

def ask_in_background(server, model):
    answers = []

    def ask():
        try:
            answers.append(server.ask("POST", f"/v2/models/{model}/infer", ONE)[0])
        except OSError as e:
            answers.append(e)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    until(lambda: server.metric("nereid_exchanges_in_flight") > 1, "the request is in flight")
    return thread, answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_exit_status_after_a_clean_drain_is_0(repository, number):
    server = Server(repository, "--model-control-mode=explicit", "--load-model=slow", environment=samples())
    thread, answers = ask_in_background(server, "slow")
    server.process.send_signal(number)
    time.sleep(0.3)
    server.process.send_signal(number)
    assert server.process.wait(60) == 0
    thread.join(30)
    assert answers == [200]


def test_the_exit_status_is_1_when_the_drain_ran_out_of_time(repository):
    server = Server(repository, "--model-control-mode=explicit", "--load-model=endless", "--exit-timeout-secs=1",
                    environment=samples())
    ask_in_background(server, "endless")
    server.terminate()
    assert server.process.wait(60) == 1


def test_a_server_that_is_stopped_while_it_loads(tmp_path):
    version = tmp_path / "asleep" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text("import time\ntime.sleep(600)\n")
    (tmp_path / "asleep" / "config.pbtxt").write_text('backend: "python"\noutput { name: "y" data_type: TYPE_FP32 dims: 1 }')
    process = subprocess.Popen([program(), "serve", tmp_path, "--port", "0"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    lines = []
    threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True).start()
    until(lambda: any("asleep" in line for line in lines), "the model loads", 60)
    process.terminate()
    assert process.wait(90) == 0, "".join(lines)
    assert not any("Exception" in line for line in lines), "".join(lines)


# ---- compression

def test_management_answers_are_not_compressed_for_the_asynchronous_client(server):
    async def all_of_them():
        async with triton_aio.InferenceServerClient(server.base) as client:
            config = await client.get_model_config("quick")
            statistics = await client.get_inference_statistics("quick")
            return config, statistics, await client.get_model_metadata("quick"), await client.get_model_repository_index()

    config, statistics, metadata, index = asyncio.run(all_of_them())
    assert config["name"] == metadata["name"] == statistics["model_stats"][0]["name"] == "quick"
    assert {"quick", "slow", "endless"} <= {m["name"] for m in index}


@pytest.mark.parametrize("method, path", [
    ("GET", "/v2/models/quick/config"), ("GET", "/v2/models/quick/stats"), ("GET", "/v2/models/stats"),
    ("GET", "/v2/trace/setting"), ("POST", "/v2/repository/index"),
])
def test_management_answers_are_not_compressed(server, method, path):
    status, headers, body = server.ask(method, path, headers={"Accept-Encoding": "gzip, deflate"})
    assert (status, headers.get("content-encoding")) == (200, None)
    json.loads(body)


def test_inference_answers_are_compressed_and_errors_are_not(server):
    numbers = [1] * 2000
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2000], "data": numbers}]}
    headers = {"Accept-Encoding": "gzip"}
    status, got, _ = server.ask("POST", "/v2/models/quick/infer", json.dumps(body), headers)
    assert (status, got.get("content-encoding")) == (200, "gzip")
    body["inputs"][0]["name"] = "n" * 2000
    status, got, answer = server.ask("POST", "/v2/models/quick/infer", json.dumps(body), headers)
    assert (status, got.get("content-encoding")) == (400, None)
    assert "n" * 2000 in json.loads(answer)["error"]


# ---- options

HARMLESS = """
--allow-http=true --allow-grpc true --allow-metrics=1 --allow-gpu-metrics --allow-cpu-metrics=on --metrics-interval-ms=2000
--backend-directory=/opt/tritonserver/backends --repoagent-directory /opt/tritonserver/repoagents
--cache-directory=/opt/tritonserver/caches --pinned-memory-pool-byte-size=268435456
--cuda-memory-pool-byte-size=0:67108864 --cuda-virtual-address-size 0:1073741824 --min-supported-compute-capability=6.0
--model-load-gpu-limit=0:0.8 --enable-peer-access=true --buffer-manager-thread-count=2 --model-namespacing=false
--reuse-http-port=false --reuse-grpc-port=0 --grpc-infer-thread-count=2 --grpc-infer-allocation-pool-size=8
--grpc-max-response-pool-size=100 --grpc-infer-response-compression-level=low --grpc-keepalive-time=7200000
--grpc-keepalive-timeout 20000 --grpc-keepalive-permit-without-calls=0 --grpc-http2-max-pings-without-data=2
--grpc-http2-min-recv-ping-interval-without-data=300000 --grpc-http2-max-ping-strikes=2 --grpc-max-connection-age=1000
--grpc-max-connection-age-grace=1000 --allow-sagemaker=false --sagemaker-port=8090 --sagemaker-thread-count=8
--sagemaker-safe-port-range=1-2 --allow-vertex-ai=off --vertex-ai-port=8091 --vertex-ai-thread-count=8
--vertex-ai-default-model=quick --exit-timeout-secs=30 --log-verbose=false --log-info=1 --trace-log-frequency=10
--strict-readiness=true --strict-readiness=false --id=first --id second --exit-on-error=on
""".split()


def test_harmless_options_of_tritonserver_are_taken_with_a_warning_each(repository):
    server = Server("--model-repository", repository, "--model-repository", repository,
                    "--model-control-mode=explicit", "--load-model=quick", *HARMLESS, environment=samples())
    try:
        assert json.loads(server.ask("GET", "/v2")[2])["name"] == "second", "the last one counts"
        assert server.ask("POST", "/v2/models/quick/infer", ONE)[0] == 200
        assert server.ask("GET", "/metrics")[0] == 200
        text = "".join(server.lines)
        for option in ("--backend-directory", "--pinned-memory-pool-byte-size", "--grpc-keepalive-time",
                       "--cache-directory", "--allow-gpu-metrics=true", "--vertex-ai-port"):
            assert text.count(f"{option} has no effect: ") == 1, text
        for option in ("--allow-http", "--allow-sagemaker", "--reuse-http-port", "--allow-cpu-metrics",
                       "--model-namespacing", "--exit-timeout-secs", "--trace-log-frequency"):
            assert f"{option}=" not in text and f"{option} has" not in text, text
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("option", ["--allow-http=false", "--allow-grpc=off", "--reuse-http-port=true",
                                    "--allow-sagemaker=true", "--allow-vertex-ai=1"])
def test_a_value_that_asks_for_what_is_not_so_is_refused(repository, option):
    done = subprocess.run([program(), "serve", repository, option], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert " is not supported: " in done.stderr and option.split("=")[0] in done.stderr


def test_metrics_can_be_switched_off(repository):
    server = Server(repository / "quick", "--allow-metrics=false", environment=samples())
    try:
        assert server.ask("GET", "/metrics")[0] == 404
    finally:
        assert server.stop() == 0


def test_a_repository_that_is_missing(tmp_path, repository):
    absent = tmp_path / "absent"
    done = subprocess.run([program(), "serve", "--model-repository", absent], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "there is no" in done.stderr
    server = Server("--model-repository", absent, "--exit-on-error=false", "--poll-interval=200ms", environment=samples())
    try:
        assert server.ask("GET", "/v2/health/live")[0] == 200
        assert server.ask("GET", "/v2/health/ready")[0] == 503
        with triton.InferenceServerClient(server.base) as client:
            assert client.is_server_live() and not client.is_server_ready()
        shutil.copytree(repository / "quick", absent / "quick")
        until(lambda: server.ask("GET", "/v2/models/quick/ready")[0] == 200, "the repository is read", 60)
        assert server.ask("GET", "/v2/health/ready")[0] == 200
    finally:
        assert server.stop() == 0
