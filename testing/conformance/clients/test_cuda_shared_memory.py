# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""CUDA shared memory with Triton's client, unchanged. The server and the client are two processes over the simulated driver."""
import os
import pathlib
import queue
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

import models
from server import EXAMPLES, ROOT, Server, program

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc, so there is no simulated driver")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    subprocess.run([ROOT / "testing" / "gpu" / "simulated" / "build.sh", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def server(libraries, tmp_path_factory):
    plugins = tmp_path_factory.mktemp("plugins")
    environment = {**os.environ, "NEREID_PLUGIN_DIR": str(plugins)}
    installed = subprocess.run([program(), "plugins", "install", "cuda"], env=environment, capture_output=True, text=True)
    if installed.returncode != 0:
        pytest.skip(f"the plugin cuda cannot be installed: {installed.stdout}{installed.stderr}")
    shutil.copytree(ROOT / "testing" / "samples" / "target" / "plugins" / "samples", plugins / "samples")
    repository = tmp_path_factory.mktemp("models")
    shutil.copytree(EXAMPLES / "simple", repository / "simple")
    models.add_identity(repository, "text", "BYTES")
    running = Server(
        repository, "--allow-client-shm=true",
        environment={
            **environment, "LD_LIBRARY_PATH": str(libraries), "SIM_GPU_FAULTS": str(libraries / "faults"),
            "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        },
    )
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def cuda(libraries):
    os.environ["SIM_GPU_LIBRARIES"] = str(libraries)
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "simulated_cuda"))
    import tritonclient.utils.cuda_shared_memory as module

    return module


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    module = http_client if request.param == "http" else grpc_client
    with module.InferenceServerClient(server.base) as made:
        made.module = module
        made.json = {} if request.param == "http" else {"as_json": True}
        yield made
        made.unregister_cuda_shared_memory()


def regions(client):
    status = client.get_cuda_shared_memory_status(**client.json)
    return {r["name"]: r for r in status} if client.module is http_client else status.get("regions", {})


def tensors(client, region):
    inputs = [client.module.InferInput(n, [1, 16], "INT32") for n in ("INPUT0", "INPUT1")]
    inputs[0].set_shared_memory(region, 64)
    inputs[1].set_shared_memory(region, 64, offset=64)
    outputs = [client.module.InferRequestedOutput("OUTPUT0"), client.module.InferRequestedOutput("OUTPUT1")]
    outputs[0].set_shared_memory(region, 64, offset=128)
    return inputs, outputs


def test_tensors_travel_in_memory_of_a_gpu(client, cuda, server):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    b = np.full((1, 16), 4, dtype=np.int32)
    region = cuda.create_shared_memory_region("both", 256, 0)
    try:
        assert "cuda_shared_memory" in client.get_server_metadata(**client.json)["extensions"]
        cuda.set_shared_memory_region(region, [a, b])
        client.register_cuda_shared_memory("both", cuda.get_raw_handle(region), 0, 256)
        shown = regions(client)["both"]
        assert (int(shown.get("device_id", 0)), int(shown["byte_size"])) == (0, 256)
        before = server.metric("nereid_gpu_copied_bytes_total")
        inputs, outputs = tensors(client, "both")
        result = client.infer("simple", inputs, outputs=outputs)
        assert np.array_equal(result.as_numpy("OUTPUT1"), a - b)
        assert np.array_equal(cuda.get_contents_as_numpy(region, np.int32, [1, 64]).reshape(4, 16)[2], (a + b)[0])
        assert server.metric("nereid_gpu_copied_bytes_total") - before == 3 * 64
        outputs[0].set_shared_memory("both", 32, offset=128)
        with pytest.raises(InferenceServerException, match="should be at least 64 bytes to hold the results"):
            client.infer("simple", inputs, outputs=outputs)
        inputs[1].set_shared_memory("both", 64, offset=224)
        with pytest.raises(InferenceServerException, match=r"Invalid offset \+ byte size for shared memory region: 'both'"):
            client.infer("simple", inputs)
        with pytest.raises(InferenceServerException, match="shared memory region 'both' already in manager"):
            client.register_cuda_shared_memory("both", cuda.get_raw_handle(region), 0, 256)
        client.unregister_cuda_shared_memory("both")
        assert not regions(client)
        with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'both'"):
            client.infer("simple", inputs)
        with pytest.raises(InferenceServerException, match="failed to register shared memory region 'long': invalid args"):
            client.register_cuda_shared_memory("long", cuda.get_raw_handle(region), 0, 4096)
        with pytest.raises(InferenceServerException, match="failed to register shared memory region: invalid args"):
            client.register_cuda_shared_memory("nowhere", cuda.get_raw_handle(region), 5, 256)
    finally:
        cuda.destroy_shared_memory_region(region)


def test_texts_travel_in_memory_of_a_gpu(client, cuda):
    texts = np.array([[b"one", b"", "zwölf".encode()]], dtype=object)
    serialized = serialize_byte_tensor(texts)
    size = len(serialized.item())
    source = cuda.create_shared_memory_region("texts", size, 0)
    target = cuda.create_shared_memory_region("answer", size, 0)
    try:
        cuda.set_shared_memory_region(source, [serialized])
        client.register_cuda_shared_memory("texts", cuda.get_raw_handle(source), 0, size)
        client.register_cuda_shared_memory("answer", cuda.get_raw_handle(target), 0, size)
        text = client.module.InferInput("INPUT0", [1, 3], "BYTES")
        text.set_shared_memory("texts", size)
        answer = client.module.InferRequestedOutput("OUTPUT0")
        answer.set_shared_memory("answer", size)
        client.infer("text", [text], outputs=[answer])
        assert np.array_equal(cuda.get_contents_as_numpy(target, np.object_, [1, 3]), texts)
    finally:
        cuda.destroy_shared_memory_region(source)
        cuda.destroy_shared_memory_region(target)


def test_a_stream_reads_and_writes_memory_of_a_gpu(server, cuda):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    region = cuda.create_shared_memory_region("stream", 256, 0)
    answers = queue.Queue()
    with grpc_client.InferenceServerClient(server.base) as client:
        client.module = grpc_client
        cuda.set_shared_memory_region(region, [a, a])
        client.register_cuda_shared_memory("stream", cuda.get_raw_handle(region), 0, 256)
        client.start_stream(lambda result, error: answers.put((result, error)))
        inputs, outputs = tensors(client, "stream")
        for number in range(3):
            client.async_stream_infer("simple", inputs, request_id=str(number), outputs=outputs)
        for number in range(3):
            result, error = answers.get(timeout=30)
            assert error is None and result.get_response().id == str(number)
            assert np.array_equal(result.as_numpy("OUTPUT1"), a - a)
        client.stop_stream()
        assert np.array_equal(cuda.get_contents_as_numpy(region, np.int32, [1, 64]).reshape(4, 16)[2], (a + a)[0])
        client.unregister_cuda_shared_memory()
    cuda.destroy_shared_memory_region(region)


def test_a_lost_gpu_does_not_end_the_server(server, libraries, cuda):
    region = cuda.create_shared_memory_region("lost", 256, 0)
    with http_client.InferenceServerClient(server.base) as client:
        client.module = http_client
        client.register_cuda_shared_memory("lost", cuda.get_raw_handle(region), 0, 256)
        (libraries / "faults").write_text("0 lost\n")
        inputs, outputs = tensors(client, "lost")
        with pytest.raises(InferenceServerException, match="device 0 is lost"):
            client.infer("simple", inputs, outputs=outputs)
        client.unregister_cuda_shared_memory()
        assert client.get_cuda_shared_memory_status() == []
        assert client.is_server_live()
    cuda.destroy_shared_memory_region(region)
