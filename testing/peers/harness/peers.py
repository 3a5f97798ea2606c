# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The servers: how each is started with a workload, and which form of the request it takes."""

import json
import os
import pathlib
import shutil

from .environments import Environment
from .places import CORES, HERE, TARGET, Unavailable
from .server import Server, free_port

SERVERS = HERE / "servers"
INSTANCES = f"instance_group [ {{ count: {CORES} kind: KIND_CPU }} ]\n"
MODEL_IN_PYTHON = SERVERS / "triton/model.py"


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

    def request(self, workload, form):
        """The request of a workload in a form: json or binary over REST, or grpc."""
        return workload.grpc(workload.name) if form == "grpc" else workload.open_inference(form == "binary", workload.name)

    def start(self, workload, form, scratch, copies=1):
        """Starts the server with a workload, for requests of a form, and with further copies of its model."""
        raise NotImplementedError

    def program(self, command, workload, rest, grpc=None, environment=None, **options):
        environment = {"PYTHONPATH": str(SERVERS), "PYTHONDONTWRITEBYTECODE": "1", "PEERS_WORKLOAD": str(workload.directory), **(environment or {})}
        (TARGET / "logs").mkdir(parents=True, exist_ok=True)
        return Running(self, Server(self.title, command, TARGET / "logs" / f"{self.name}-{workload.name}.log", environment, **options), rest, grpc)


def shape(dims):
    """The dims of a configuration; those of a tensor that has the dimension of a batch only must not be empty."""
    return str(dims) if dims else "[ 1 ] reshape { shape: [ ] }"


def config(workload, backend, more=""):
    """config.pbtxt of a model for Triton and Nereid."""

    def tensors(kind, all_of_them):
        each = [f'  {{ name: "{t.name}" data_type: TYPE_{t.datatype} dims: {shape(t.dims)} }}' for t in all_of_them]
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
        shutil.copyfile(file, version / file.name)
    return target


def one_model(copies):
    if copies > 1:
        raise Unavailable("its program here serves one model")


class Nereid(Peer):
    name, title = "nereid", "Nereid"
    warmup = 1

    def prepare(self, trees, log):
        self.distribution = pathlib.Path(os.environ["NEREID_DISTRIBUTION"])
        # With numpy, for models in Python.
        self.tools = Environment("tools", trees, log)

    def version(self):
        return self.distribution.name.removeprefix("nereid-")

    def start(self, workload, form, scratch, copies=1):
        # Models of trees need no configuration; a model in Python has a process for each instance, of which Triton has as many.
        text, python = None, workload.kind == "python"
        if python:
            text = config(workload, "python", INSTANCES)
        elif workload.kind == "onnx":
            text = config(workload, "onnxruntime")
        models = repository(workload, scratch, self.name, text, MODEL_IN_PYTHON if python else workload.directory / workload.file, copies)
        port = free_port()
        command = [self.distribution / "bin/nereid", "serve", models, "--port", port]
        if python:
            command += ["--backend-config", f"python,python={self.tools.program('python')}"]
        return self.program(command, workload, port, port, {"PEERS_PATH": str(SERVERS)})


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
        file = workload.directory / workload.file if onnx else MODEL_IN_PYTHON
        text = config(workload, "onnxruntime" if onnx else "python", INSTANCES + (threads if onnx else ""))
        models = repository(workload, scratch, self.name, text, file, copies)
        rest, grpc = free_port(), free_port()
        command = [self.wheel / "bin/tritonserver", "--model-repository", models, "--backend-directory", self.directory_of_backends(scratch)]
        command += ["--http-address=127.0.0.1", f"--http-port={rest}", "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--allow-metrics=false"]
        # The backend's interpreter ignores PYTHONPATH.
        environment = {"PEERS_PATH": f"{SERVERS}{os.pathsep}{self.environment.packages}"}
        return self.program(command, workload, rest, grpc, environment)

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

    def request(self, workload, form):
        if form == "binary":
            raise Unavailable("it has no binary tensors over REST")
        return super().request(workload, form)

    def start(self, workload, form, scratch, copies=1):
        directory = scratch / self.name
        shutil.rmtree(directory, ignore_errors=True)
        rest, grpc, metrics = free_port(), free_port(), free_port()
        settings = {"host": "127.0.0.1", "http_port": rest, "grpc_port": grpc, "metrics_port": metrics, "parallel_workers": 0, "debug": False}
        settings |= {"grpc_max_message_length": 64 << 20}
        model = {"name": workload.name, "implementation": "mlserver_runtime.Runtime"}
        if workload.name == "encoder":
            model |= {"max_batch_size": 16, "max_batch_time": 0.002}
        for name in names(workload, copies):
            (directory / name).mkdir(parents=True)
            (directory / name / "model-settings.json").write_text(json.dumps(model | {"name": name}), encoding="utf-8")
        (directory / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        return self.program([self.environment.program("mlserver"), "start", directory], workload, rest, grpc)


class KServe(Peer):
    name, title = "kserve", "KServe"

    def start(self, workload, form, scratch, copies=1):
        one_model(copies)
        rest, grpc = free_port(), free_port()
        # Its gRPC server runs with one worker only.
        command = [self.environment.program("python"), SERVERS / "kserve_server.py", "--http_port", rest, "--grpc_port", grpc]
        command += ["--model_name", workload.name, "--enable_grpc", "true" if form == "grpc" else "false"]
        command += ["--workers", 1 if form == "grpc" else CORES]
        return self.program(command, workload, rest, grpc)


class Own(Peer):
    """Servers with an interface of their own."""

    def request(self, workload, form):
        if form == "grpc":
            raise Unavailable("it has no gRPC")
        return workload.raw("/raw") if form == "binary" else workload.columns("/predict")


class FastApi(Own):
    name, title = "fastapi", "FastAPI"

    def start(self, workload, form, scratch, copies=1):
        one_model(copies)
        port = free_port()
        command = [self.environment.program("uvicorn"), "fastapi_server:app", "--port", port, "--workers", CORES, "--no-access-log", "--log-level", "warning"]
        return self.program(command, workload, port, directory=SERVERS)


class LitServe(Own):
    name, title = "litserve", "LitServe"
    polls = True

    def request(self, workload, form):
        if form == "binary":
            if workload.max_batch_size == 0:
                raise Unavailable("its program here takes uploads of tensors with rows only")
            return workload.form("/raw")
        return super().request(workload, form)

    def start(self, workload, form, scratch, copies=1):
        one_model(copies)
        port = free_port()
        command = [self.environment.program("python"), SERVERS / "litserve_server.py", port, CORES, "form" if form == "binary" else "json"]
        return self.program(command, workload, port)


class BentoMl(Own):
    name, title = "bentoml", "BentoML"

    def request(self, workload, form):
        if form == "binary":
            raise Unavailable("its program here takes JSON only")
        return super().request(workload, form)

    def start(self, workload, form, scratch, copies=1):
        one_model(copies)
        port = free_port()
        command = [self.environment.program("bentoml"), "serve", "bentoml_service:Service", "--port", port, "--host", "127.0.0.1"]
        environment = {"BENTOML_DO_NOT_TRACK": "True", "BENTOML_HOME": str(scratch / "bentoml"), "PEERS_CORES": str(CORES)}
        return self.program(command, workload, port, None, environment, directory=SERVERS)


ALL = {peer.name: peer for peer in (Nereid(), Triton(), MlServer(), KServe(), LitServe(), BentoMl(), FastApi())}
