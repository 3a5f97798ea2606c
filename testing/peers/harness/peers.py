# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The servers: how each is started with a workload, and which form of the request it takes."""

import json
import os
import pathlib
import shutil
import subprocess
import time

from .environments import Environment
from .places import CORES, HERE, ROOT, TARGET, Unavailable, last_line
from .server import Server, free_port
from .workloads import Request

SERVERS = HERE / "servers"
INSTANCES = f"instance_group [ {{ count: {CORES} kind: KIND_CPU }} ]\n"
MODEL_IN_PYTHON = SERVERS / "triton/model.py"
STREAM_IN_PYTHON = SERVERS / "triton/stream.py"
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
#: The plugin of Nereid that the model of a workload needs.
PLUGINS = {"torchscript": "pytorch", "tflite": "tflite", "savedmodel": "tensorflow"}
#: The steps of the row ensemble: Nereid's examples, in the order of a request.
STEPS = ("tokenizer", "minilm", "pool")
EXAMPLES = ROOT / "examples/models"
#: The workloads that the servers with batches of their own get them for.
BATCHED = ("encoder", "ensemble")


class Running:
    """A server with its ports."""

    def __init__(self, peer, server, rest, grpc=None):
        self.peer, self.server, self.rest, self.grpc = peer, server, rest, grpc

    def port(self, form):
        return self.grpc if form == "grpc" else self.rest


class Peer:
    """A kind of server. prepare() comes first, once; both it and start() raise Unavailable with the reason."""

    name = title = None
    #: Whether it uses a core while it has no requests, so that it is stopped while others are measured.
    polls = False
    #: The part of the time of warming up that it needs: a JVM compiles the code that is used most while it runs.
    warmup = 1 / 3

    def prepare(self, trees, log):
        """Installs what is needed, the libraries of the tree models if they are."""
        self.environment = Environment(self.name, trees, log)

    def version(self):
        """The version of the server, for the report."""
        wheel = {"fastapi": "fastapi", "triton": "nvidia_pytriton"}.get(self.name, self.name)
        found = list(self.environment.packages.glob(f"{wheel}-*.dist-info"))
        return found[0].name[len(wheel) + 1 : -len(".dist-info")] if found else "?"

    def request(self, workload, form, model=None):
        """The request of a workload in a form: json, binary or stream over REST, or grpc; to a copy of its model, if that is named."""
        model = model or workload.name
        if form == "grpc":
            return workload.grpc(model)
        if form == "stream":
            return workload.prompt(f"/v2/models/{model}/generate_stream")
        return workload.open_inference(form == "binary", model)

    def start(self, workload, form, scratch, copies=1):
        """Starts the server with a workload, for requests of a form, and with further copies of its model."""
        raise NotImplementedError

    def program(self, command, workload, rest, grpc=None, environment=None, **options):
        common = {"PYTHONPATH": str(SERVERS), "PYTHONDONTWRITEBYTECODE": "1", "PEERS_WORKLOAD": str(workload.directory)}
        if workload.library:
            common["PEERS_LIBRARY"] = str(workload.library)
        environment = common | (environment or {})
        (TARGET / "logs").mkdir(parents=True, exist_ok=True)
        return Running(self, Server(self.title, command, TARGET / "logs" / f"{self.name}-{workload.name}.log", environment, **options), rest, grpc)


def shape(dims):
    """The dims of a configuration; those of a tensor that has the dimension of a batch only must not be empty."""
    return str(dims) if dims else "[ 1 ] reshape { shape: [ ] }"


def config(workload, backend, more=""):
    """config.pbtxt of a model for Triton and Nereid."""

    def tensors(kind, all_of_them):
        types = [t.datatype.replace("BYTES", "STRING") for t in all_of_them]
        each = [f'  {{ name: "{t.name}" data_type: TYPE_{kind} dims: {shape(t.dims)} }}' for t, kind in zip(all_of_them, types)]
        return f"{kind} [\n" + ",\n".join(each) + "\n]\n"

    batching = "dynamic_batching { }\n" if workload.max_batch_size > 0 else ""
    head = f'name: "{workload.name}"\nbackend: "{backend}"\nmax_batch_size: {workload.max_batch_size}\n'
    return head + tensors("input", workload.inputs) + tensors("output", workload.outputs) + batching + more


def names(workload, copies):
    """The names of a number of copies of the workload's model."""
    return [workload.name] + [f"{workload.name}-{i}" for i in range(2, copies + 1)]


def repository(workload, scratch, peer, text, file, copies):
    """A model repository with the workload's model, and further copies of it under other names."""
    target = scratch / peer / "models"
    shutil.rmtree(target, ignore_errors=True)
    for name in names(workload, copies):
        version = target / name / "1"
        version.mkdir(parents=True)
        if text:
            (target / name / "config.pbtxt").write_text(text.replace(f'name: "{workload.name}"', f'name: "{name}"', 1), encoding="utf-8")
        if file.is_dir():
            shutil.copytree(file, version / file.name)
        else:
            # Every server takes a model in Python from a file of this name.
            shutil.copyfile(file, version / ("model.py" if file.suffix == ".py" else file.name))
    # As a repository that was there before: Nereid waits a second for more of a model whose files are new.
    before = time.time() - 60
    for path in [target, *target.rglob("*")]:
        os.utime(path, (before, before))
    return target


def steps(workload, scratch, peer, adapt=lambda name, text: text):
    """A model repository with the steps of the row ensemble and the ensemble of them, as in Nereid's examples. adapt changes a configuration."""
    target = scratch / peer / "models"
    shutil.rmtree(target, ignore_errors=True)
    for name in (*STEPS, "sentence_embedding"):
        text = adapt(name, (EXAMPLES / name / "config.pbtxt").read_text(encoding="utf-8"))
        place = target / (workload.name if name == "sentence_embedding" else name)
        (place / "1").mkdir(parents=True)
        (place / "config.pbtxt").write_text(text.replace('name: "sentence_embedding"', f'name: "{workload.name}"'), encoding="utf-8")
    for name, file in (("minilm", "model.onnx"), ("tokenizer", "tokenizer.json")):
        shutil.copyfile(workload.directory / file, target / name / "1" / file)
    return target


def further(workload, copies):
    """The copies of the workload's model beside the first for programs that take them in a variable."""
    return {"PEERS_COPIES": ",".join(names(workload, copies)[1:])}


class Nereid(Peer):
    name, title = "nereid", "Nereid"
    warmup = 1

    def prepare(self, trees, log):
        self.distribution = pathlib.Path(os.environ["NEREID_DISTRIBUTION"])
        # With numpy, for models in Python.
        self.tools = Environment("tools", trees, log)

    def version(self):
        return self.distribution.name.removeprefix("nereid-")

    def install(self, plugin, log):
        """Installs a plugin, once."""
        if (TARGET / "plugins" / plugin).is_dir():
            return
        log(f"installing the plugin {plugin} of Nereid (once)")
        command = [os.environ["NEREID_DISTRIBUTION"] + "/bin/nereid", "plugins", "install", plugin, "--plugin-dir", TARGET / "plugins"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        if done.returncode != 0:
            raise Unavailable(f"Nereid's plugin {plugin} could not be installed: {last_line(done.stderr or done.stdout)}")

    def start(self, workload, form, scratch, copies=1):
        python = workload.kind in ("python", "stream")
        if workload.kind == "ensemble":
            models = steps(workload, scratch, self.name)
        else:
            models = self.models(workload, scratch, copies)
        port = free_port()
        command = [self.distribution / "bin/nereid", "serve", models, "--port", port]
        if python:
            command += ["--backend-config", f"python,python={self.tools.program('python')}"]
        environment = {"PEERS_PATH": str(SERVERS)}
        if workload.name in PLUGINS:
            environment["NEREID_PLUGIN_DIR"] = str(TARGET / "plugins")
        return self.program(command, workload, port, port, environment)

    def models(self, workload, scratch, copies):
        # Models of trees and of TensorFlow need no configuration; a model in Python has a process for each instance, of which Triton has as many.
        text, file = None, workload.directory / workload.file
        if workload.kind == "python":
            text, file = config(workload, "python", INSTANCES), MODEL_IN_PYTHON
        elif workload.kind == "stream":
            text, file = config(workload, "python", INSTANCES + DECOUPLED), STREAM_IN_PYTHON
        elif workload.kind in ("onnx", "torchscript"):
            text = config(workload, {"onnx": "onnxruntime", "torchscript": "pytorch"}[workload.kind])
        return repository(workload, scratch, self.name, text, file, copies)


class Triton(Peer):
    name, title = "triton", "Triton"

    def version(self):
        return f"tritonserver of nvidia-pytriton {super().version()}, " + ("ONNX Runtime backend" if self.backends else "Python backend only")

    def prepare(self, trees, log):
        super().prepare(trees, log)
        given = os.environ.get("TRITON_BACKENDS")
        self.backends = pathlib.Path(given) if given else None
        if given and not (self.backends / "onnxruntime").is_dir():
            raise Unavailable(f"TRITON_BACKENDS={given} has no folder onnxruntime")
        self.wheel = self.environment.packages / "pytriton/tritonserver"
        if not self.wheel.is_dir():
            raise Unavailable(f"the wheel has no tritonserver: {self.wheel}")

    def start(self, workload, form, scratch, copies=1):
        onnx = workload.kind == "onnx" and self.backends is not None
        if copies > 1 and not onnx:
            raise Unavailable("without TRITON_BACKENDS its models are in Python, each of them in processes of its own")
        threads = "".join(f'parameters {{ key: "{k}_thread_count" value {{ string_value: "1" }} }}\n' for k in ("intra_op", "inter_op"))
        if workload.kind == "ensemble":
            models = self.steps(workload, scratch, INSTANCES + threads)
        elif workload.kind == "stream":
            models = repository(workload, scratch, self.name, config(workload, "python", INSTANCES + DECOUPLED), STREAM_IN_PYTHON, copies)
        else:
            file = workload.directory / workload.file if onnx else MODEL_IN_PYTHON
            text = config(workload, "onnxruntime" if onnx else "python", INSTANCES + (threads if onnx else ""))
            models = repository(workload, scratch, self.name, text, file, copies)
        rest, grpc = free_port(), free_port()
        command = [self.wheel / "bin/tritonserver", "--model-repository", models, "--backend-directory", self.directory_of_backends(scratch)]
        command += ["--http-address=127.0.0.1", f"--http-port={rest}", "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--allow-metrics=false"]
        # The backend's interpreter ignores PYTHONPATH.
        environment = {"PEERS_PATH": f"{SERVERS}{os.pathsep}{self.environment.packages}"}
        return self.program(command, workload, rest, grpc, environment)

    def steps(self, workload, scratch, onnx):
        """The steps of the row ensemble in Python, as Triton has no backends for a tokenizer and for pooling; MiniLM in its ONNX Runtime, if it is given."""

        def adapt(name, text):
            if name == "sentence_embedding":
                return text
            if name == "minilm" and self.backends:
                return text + onnx
            # The parameters are those of Nereid's backends.
            lines = ['backend: "python"' if line.startswith("backend:") else line for line in text.splitlines() if not line.startswith("parameters")]
            batching = [] if any(line.startswith("dynamic_batching") for line in lines) else ["dynamic_batching { }"]
            return "\n".join(lines + batching) + "\n" + INSTANCES

        models = steps(workload, scratch, self.name, adapt)
        for name in STEPS:
            if name != "minilm" or not self.backends:
                shutil.copyfile(SERVERS / "triton/step.py", models / name / "1/model.py")
        return models

    def directory_of_backends(self, scratch):
        """A directory with the wheel's Python backend and the stub for the environment's Python, and the backends given."""
        directory = scratch / self.name / "backends"
        if not directory.exists():
            shutil.copytree(self.wheel / "backends/python", directory / "python")
            version = self.environment.packages.parent.name.removeprefix("python")
            stub = self.wheel / f"python_backend_stubs/{version}/triton_python_backend_stub"
            # Its libraries are found beside the place where it lies.
            (directory / "python/triton_python_backend_stub").symlink_to(stub)
            if self.backends:
                (directory / "onnxruntime").symlink_to(self.backends / "onnxruntime")
        return directory


class MlServer(Peer):
    name, title = "mlserver", "MLServer"

    def request(self, workload, form, model=None):
        if form == "binary":
            # It has no binary tensors over REST.
            return workload.grpc(model or workload.name)
        if form == "stream":
            # It takes the tensors of Open Inference there.
            request = workload.open_inference(False, model or workload.name)
            return Request(request.path.replace("/infer", "/generate_stream"), request.body, request.headers, workload.prompt("").decode)
        return super().request(workload, form, model)

    def start(self, workload, form, scratch, copies=1):
        directory = scratch / self.name
        shutil.rmtree(directory, ignore_errors=True)
        rest, grpc, metrics = free_port(), free_port(), free_port()
        settings = {"host": "127.0.0.1", "http_port": rest, "grpc_port": grpc, "metrics_port": metrics, "parallel_workers": 0, "debug": False}
        # Streams need responses that are not compressed.
        settings |= {"grpc_max_message_length": 64 << 20, "gzip_enabled": False}
        model = {"name": workload.name, "implementation": "mlserver_runtime.Runtime"}
        if workload.name in BATCHED:
            model |= {"max_batch_size": 16, "max_batch_time": 0.002}
        for name in names(workload, copies):
            (directory / name).mkdir(parents=True)
            (directory / name / "model-settings.json").write_text(json.dumps(model | {"name": name}), encoding="utf-8")
        (directory / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        return self.program([self.environment.program("mlserver"), "start", directory], workload, rest, grpc)


class KServe(Peer):
    name, title = "kserve", "KServe"

    def request(self, workload, form, model=None):
        if form == "stream":
            raise Unavailable("it streams in OpenAI's protocol only, for which it needs vLLM")
        return super().request(workload, form, model)

    def start(self, workload, form, scratch, copies=1):
        rest, grpc = free_port(), free_port()
        # Its gRPC server runs with one worker only.
        command = [self.environment.program("python"), SERVERS / "kserve_server.py", "--http_port", rest, "--grpc_port", grpc]
        command += ["--model_name", workload.name, "--enable_grpc", "true" if form == "grpc" else "false"]
        command += ["--workers", 1 if form == "grpc" else CORES]
        return self.program(command, workload, rest, grpc, further(workload, copies))


class Own(Peer):
    """Servers with an interface of their own."""

    def request(self, workload, form, model=None):
        if form == "grpc":
            raise Unavailable("it has no gRPC")
        if form == "stream":
            return workload.prompt("/stream")
        first = model in (None, workload.name)
        return workload.raw("/raw") if form == "binary" else workload.columns("/predict" if first else f"/predict/{model}")


class FastApi(Own):
    name, title = "fastapi", "FastAPI"

    def start(self, workload, form, scratch, copies=1):
        port = free_port()
        command = [self.environment.program("uvicorn"), "fastapi_server:app", "--port", port, "--workers", CORES, "--no-access-log", "--log-level", "warning"]
        return self.program(command, workload, port, None, further(workload, copies), directory=SERVERS)


class LitServe(Own):
    name, title = "litserve", "LitServe"
    polls = True

    def request(self, workload, form, model=None):
        if form == "binary":
            return workload.form("/raw")
        return super().request(workload, form, model)

    def start(self, workload, form, scratch, copies=1):
        if copies > 1:
            raise Unavailable("it has processes of its own for each model")
        port = free_port()
        kind = "texts" if workload.kind == "ensemble" else form
        if form == "binary":
            kind = "batches" if workload.max_batch_size > 0 else "form"
        command = [self.environment.program("python"), SERVERS / "litserve_server.py", port, CORES, kind]
        return self.program(command, workload, port)


class BentoMl(Own):
    name, title = "bentoml", "BentoML"

    def request(self, workload, form, model=None):
        if form == "binary":
            return workload.form("/raw")
        if model not in (None, workload.name):
            return workload.columns("/further", {"model": model})
        return super().request(workload, form, model)

    def start(self, workload, form, scratch, copies=1):
        port = free_port()
        command = [self.environment.program("bentoml"), "serve", "bentoml_service:Service", "--port", port, "--host", "127.0.0.1"]
        environment = {"BENTOML_DO_NOT_TRACK": "True", "BENTOML_HOME": str(scratch / "bentoml"), "PEERS_CORES": str(CORES)} | further(workload, copies)
        return self.program(command, workload, port, None, environment, directory=SERVERS)


class Binary(Peer):
    """Servers that are not on PyPI: a variable of the environment names the program. Each serves files of models as they are."""

    variable = None
    #: The kinds of models that it serves, and the place of a model's file in its version's directory.
    files = {}

    def prepare(self, trees, log):
        given = os.environ.get(self.variable)
        if not given:
            raise Unavailable(f"{self.variable} does not name its program")
        if not shutil.which(given):
            raise Unavailable(f"{self.variable}={given} is not a program")
        self.binary = given

    def version(self):
        try:
            done = subprocess.run([self.binary, "--version"], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return "?"
        lines = (done.stdout or done.stderr).splitlines()
        return lines[0].strip() if lines else "?"

    def request(self, workload, form, model=None):
        if workload.kind not in self.files:
            raise Unavailable(f"it has no models of the kind of {workload.name}")
        return super().request(workload, form, model)

    def model(self, workload, scratch, copies):
        """The directory of a model, with one version."""
        if copies > 1:
            raise Unavailable("its program here serves one model")
        directory = scratch / self.name / workload.name
        shutil.rmtree(directory, ignore_errors=True)
        source, target = workload.directory / workload.file, directory / "1" / self.files[workload.kind]
        target.parent.mkdir(parents=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)
        return directory


class TensorFlowServing(Binary):
    name, title, variable = "tfserving", "TensorFlow Serving", "TENSORFLOW_SERVING"
    files = {"savedmodel": ""}

    def request(self, workload, form, model=None):
        # It has no binary tensors over REST.
        super().request(workload, form, model)
        return workload.predict(model or workload.name)

    def start(self, workload, form, scratch, copies=1):
        directory, rest, grpc = self.model(workload, scratch, copies), free_port(), free_port()
        command = [self.binary, f"--port={grpc}", f"--rest_api_port={rest}", f"--model_name={workload.name}", f"--model_base_path={directory}"]
        command += ["--tensorflow_intra_op_parallelism=1", f"--tensorflow_inter_op_parallelism={CORES}"]
        return self.program(command, workload, rest, grpc)


class OpenVinoModelServer(Binary):
    name, title, variable = "ovms", "OpenVINO Model Server", "OVMS"
    files = {"onnx": "model.onnx", "tflite": "model.tflite", "savedmodel": ""}

    def start(self, workload, form, scratch, copies=1):
        directory, rest, grpc = self.model(workload, scratch, copies), free_port(), free_port()
        command = [self.binary, "--port", grpc, "--rest_port", rest, "--grpc_bind_address", "127.0.0.1", "--rest_bind_address", "127.0.0.1"]
        # Each run has one thread, and 32-bit floats stay such.
        plugin = {"INFERENCE_NUM_THREADS": str(CORES), "NUM_STREAMS": str(CORES), "INFERENCE_PRECISION_HINT": "f32"}
        command += ["--model_name", workload.name, "--model_path", directory, "--plugin_config", json.dumps(plugin), "--log_level", "ERROR"]
        return self.program(command, workload, rest, grpc)


ALL = {
    peer.name: peer
    for peer in (Nereid(), Triton(), MlServer(), KServe(), LitServe(), BentoMl(), FastApi(), TensorFlowServing(), OpenVinoModelServer())
}
