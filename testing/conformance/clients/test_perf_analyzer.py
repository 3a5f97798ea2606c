# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""perf_analyzer against the server: every way it sends requests, and the breakdown that it prints from the server's statistics."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import scenarios
from server import EXAMPLES, Server, program, samples

PROGRAM = os.environ.get("PERF_ANALYZER") or shutil.which("perf_analyzer")
SIMULATED = pathlib.Path(PROGRAM or "/none").parent
pytestmark = pytest.mark.skipif(not PROGRAM, reason="perf_analyzer is not installed")


def gpus(tmp_path_factory):
    """The environment of a server with the test backends, and with the simulated GPUs if perf_analyzer has them."""
    if not (SIMULATED / "libcuda.so.1").exists():
        return samples()
    plugins = tmp_path_factory.mktemp("plugins")
    environment = {**os.environ, "NEREID_PLUGIN_DIR": str(plugins)}
    subprocess.run([program(), "plugins", "install", "cuda"], env=environment, check=True)
    shutil.copytree(pathlib.Path(samples()["NEREID_PLUGIN_DIR"]) / "samples", plugins / "samples")
    return {
        "NEREID_PLUGIN_DIR": str(plugins), "LD_LIBRARY_PATH": str(SIMULATED), "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = scenarios.build(tmp_path_factory.mktemp("perf"))
    shutil.copytree(EXAMPLES / "simple", repository / "simple")
    server = Server(repository, "--allow-client-shm=true", environment=gpus(tmp_path_factory))
    yield server
    assert server.stop() == 0


def measure(server, model, *arguments):
    command = [
        PROGRAM, "-m", model, "-u", server.base, "--measurement-mode", "count_windows", "--measurement-request-count", "100",
        "--max-trials", "10", "--stability-percentage", "999", *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}\n{text}"
    throughput = re.search(r"Throughput: ([0-9.]+) infer/sec", text)
    assert throughput and float(throughput.group(1)) > 0, text
    return text


@pytest.mark.parametrize("way", ["-i http", "-i grpc", "-i http --async", "-i grpc --async", "-i grpc --async --streaming"])
@pytest.mark.parametrize("batch", [1, 4])
def test_every_way_of_sending(server, way, batch):
    text = measure(server, "simple", *way.split(), "-b", str(batch), "--concurrency-range", "4")
    assert re.search(r"Server:\s*\n\s*Inference count: [1-9]", text), text
    assert re.search(r"Avg request latency: \d+ usec \(overhead \d+ usec \+ queue \d+ usec \+ compute input \d+ usec", text), text


@pytest.mark.skipif(
    bool(PROGRAM) and not (SIMULATED / "libcudart.so").exists(),
    reason="perf_analyzer looks for the CUDA runtime before it uses shared memory; there is no gcc to make a stand-in",
)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_shared_memory(server, protocol):
    measure(server, "simple", "-i", protocol, "-b", "1", "--shared-memory", "system", "--concurrency-range", "2")


@pytest.mark.skipif(not (SIMULATED / "libcuda.so.1").exists(), reason="there is no simulated driver beside perf_analyzer")
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_shared_memory_of_a_gpu(server, protocol):
    before = server.metric("nereid_gpu_copies_total")
    measure(server, "simple", "-i", protocol, "-b", "1", "--shared-memory", "cuda", "--concurrency-range", "2")
    assert server.metric("nereid_gpu_copies_total") - before > 100


@pytest.mark.parametrize("model", ["direct", "oldest"])
@pytest.mark.parametrize("way", ["-i http --async", "-i grpc --async --streaming"])
def test_sequences(server, model, way):
    text = measure(server, model, *way.split(), "--concurrency-range", "4", "--sequence-length", "8")
    assert "Inference count" in text


def test_an_ensemble_shows_its_steps(server):
    text = measure(server, "ensemble", "-i", "grpc", "--concurrency-range", "2")
    assert "Composing models" in text and "add_sub" in text, text


def test_a_request_rate(server):
    measure(server, "simple", "-i", "http", "--request-rate-range", "200", "--measurement-interval", "1000")


def test_metrics_are_collected(server):
    measure(server, "simple", "-i", "http", "--collect-metrics", "--metrics-url", f"{server.base}/metrics")


def test_tensorflow_serving_s_protocol(server):
    measure(server, "simple", "--service-kind", "tfserving", "-i", "grpc", "-b", "1", "--shape", "INPUT0:16", "--shape", "INPUT1:16")
