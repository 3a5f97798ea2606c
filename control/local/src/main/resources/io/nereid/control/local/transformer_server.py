# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves a Python transformer: runs the steps of a file before and after the predictor. The control plane starts it with
KServe's command-line arguments.

The steps are `preprocess(payload, headers)` and `postprocess(result, headers)`: methods of the file's class, or functions of
the file. Requires Python 3.8 and no packages.
"""
import argparse
import asyncio
import base64
import collections
import datetime
import http.client
import importlib.util
import inspect
import json
import os
import pathlib
import re
import signal
import socket
import struct
import sys
import threading
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST_BODY = 1 << 30
#: Request headers that are forwarded to the predictor.
PASSED = re.compile(r"x-request-id|x-b3-.*|b3|traceparent|tracestate|baggage|authorization|nereid-.*|x-forwarded-.*")
FORMATS = {
    "BOOL": "?", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q",
    "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "FP16": "e", "FP32": "f", "FP64": "d",
}
PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/[^/:]+)?:predict")
INFER = re.compile(r"/v2/models/([^/]+)(?:/versions/[^/]+)?/infer")


class Answer(Exception):
    """An error response."""

    def __init__(self, status, body, kind="application/json", headers=()):
        super().__init__(f"{status}")
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps({"error": body}).encode()
        self.kind = kind
        self.headers = headers


class Predictor:
    """A client of the predictor with a pool of kept-alive connections. Thread-safe."""

    def __init__(self, host, timeout):
        self.secure = host.startswith("https://")
        self.host = re.sub(r"^https?://", "", host).rstrip("/")
        self.timeout = timeout
        self.idle = collections.deque()

    def call(self, method, path, body, headers):
        """Sends a request; returns (status, headers, body)."""
        while True:
            connection, kept = self._take()
            try:
                connection.request(method, path, body, headers)
                reply = connection.getresponse()
                answer = reply.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as e:
                connection.close()
                if kept:
                    continue  # the predictor had closed the idle connection, so it has not seen the request: retry
                raise Answer(503, f"the predictor at {self.host} closed the connection: {e}") from None
            except socket.timeout:
                connection.close()
                raise Answer(504, f"the predictor at {self.host} did not answer within {self.timeout:g} s") from None
            except (OSError, http.client.HTTPException) as e:
                connection.close()
                raise Answer(503, f"the predictor at {self.host} cannot be reached: {e}") from None
            if reply.will_close:
                connection.close()
            else:
                self.idle.append(connection)
            return reply.status, reply.headers, answer

    def _take(self):
        try:
            return self.idle.pop(), True
        except IndexError:
            maker = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
            return maker(self.host, timeout=self.timeout), False


class Steps:
    """The user's code: a class, a subclass of KServe's Model, or plain functions."""

    def __init__(self, arguments, config):
        self.loop = None
        file = pathlib.Path(arguments.file)
        sys.path.insert(0, str(file.parent))
        if arguments.packages:
            sys.path.insert(0, arguments.packages)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        self.kserve = self._kserve()
        self.of_kserve = False
        self.target = self._target(module, arguments, config)
        self.pre = getattr(self.target, "preprocess", None)
        self.post = getattr(self.target, "postprocess", None)
        self.own_predict = self._own("predict")
        if inspect.ismodule(self.target) or not self.of_kserve:
            if self.pre is None and self.post is None:
                raise SystemExit(f"{file.name}: expected preprocess, postprocess or both, in a class or as functions")
        load = getattr(self.target, "load", None)
        if callable(load):
            self.run(load, {"config": config}, 0)

    @staticmethod
    def _kserve():
        package = sys.modules.get("kserve")
        return package if package is not None and hasattr(package, "Model") else None

    def _target(self, module, arguments, config):
        file = pathlib.Path(arguments.file).name
        classes = [
            c for c in vars(module).values()
            if inspect.isclass(c) and c.__module__ == module.__name__
            and (hasattr(c, "preprocess") or hasattr(c, "postprocess"))
        ]
        if arguments.class_name:
            found = getattr(module, arguments.class_name, None)
            if not inspect.isclass(found):
                raise SystemExit(f"{file} has no class {arguments.class_name}; it has {[c.__name__ for c in classes]}")
        elif len(classes) > 1:
            # among a class and its subclasses, the most derived one is the transformer
            leaves = [c for c in classes if not any(issubclass(o, c) and o is not c for o in classes)]
            if len(leaves) != 1:
                raise SystemExit(f"{file} has the classes {[c.__name__ for c in leaves]}; select one with the setting class")
            found = leaves[0]
        elif classes:
            found = classes[0]
        else:
            return module
        self.of_kserve = self.kserve is not None and issubclass(found, self.kserve.Model)
        offers = {
            "name": arguments.model_name, "model_name": arguments.model_name, "config": config,
            "predictor_host": arguments.predictor_host, "predictor_protocol": arguments.predictor_protocol or "v1",
            "protocol": arguments.predictor_protocol or "v1", "predictor_config": None, "args": arguments,
        }
        given, lacking = {}, []
        for name, parameter in inspect.signature(found).parameters.items():
            if name in offers and not (name == "predictor_config" and parameter.default is not parameter.empty):
                given[name] = offers[name]
            elif name in config and parameter.kind is not parameter.VAR_KEYWORD:
                given[name] = config[name]
            elif parameter.default is parameter.empty and parameter.kind in (
                    parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                lacking.append(name)
        if lacking:
            raise SystemExit(
                f"{file}: {found.__name__} requires {', '.join(lacking)}; set it in config, or use the parameters name, config,"
                " predictor_host, predictor_protocol")
        made = found(**given)
        if self.of_kserve and getattr(made, "predictor_host", None) is None:
            made.predictor_host = arguments.predictor_host
        return made

    def _own(self, name):
        """Returns a method if the user's class overrides it; None for the one inherited from KServe's Model."""
        if inspect.ismodule(self.target):
            return None
        found = getattr(type(self.target), name, None)
        if found is None or (self.of_kserve and found is getattr(self.kserve.Model, name, None)):
            return None
        return getattr(self.target, name)

    def run(self, function, offers, positional):
        """Calls a function with as many arguments as it accepts, and waits for an asynchronous result."""
        values = list(offers.values())
        given = []
        named = {}
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
            given = values[:positional]
        index = 0
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                given.extend(values[index:positional])
                index = positional
            elif p.kind is p.KEYWORD_ONLY or index >= positional:
                if p.name in offers and p.kind is not p.VAR_KEYWORD and p.kind is not p.POSITIONAL_ONLY:
                    named[p.name] = offers[p.name]
            elif p.kind is not p.VAR_KEYWORD:
                given.append(values[index])
                index += 1
        result = function(*given, **named)
        return self.waited(result) if inspect.isawaitable(result) else result

    def waited(self, awaitable):
        async def whole():
            return await awaitable

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(whole(), self.loop).result()

    def step(self, name, function, value, headers, answered):
        if function is None:
            return value
        offers = {"payload": value, "headers": headers, "response_headers": answered}
        try:
            return self.run(function, offers, 2)
        except Answer:
            raise
        except Exception as e:  # no failure of the user's code may end the server
            raise failure(name, e) from None


def failure(step, e):
    status = getattr(e, "status_code", getattr(e, "status", None))
    if isinstance(status, int) and 400 <= int(status) < 600:
        return Answer(int(status), str(getattr(e, "detail", None) or getattr(e, "reason", None) or e))
    if isinstance(e, ValueError):
        return Answer(400, str(e))
    traceback.print_exc()
    sys.stderr.flush()
    return Answer(500, f"{step} failed: {type(e).__name__}: {e}")


# ---- the tensors of V2 ----


def size(shape):
    count = 1
    for d in shape:
        count *= int(d)
    return count


def unpacked(kind, shape, data):
    if kind == "BYTES":
        values, at = [], 0
        while at < len(data):
            if at + 4 > len(data):
                raise Answer(400, "a binary tensor of BYTES ends within a length")
            length = struct.unpack_from("<I", data, at)[0]
            at += 4
            if at + length > len(data):
                raise Answer(400, "a binary tensor of BYTES ends within an element")
            element = data[at:at + length]
            at += length
            try:
                values.append(element.decode())
            except UnicodeDecodeError:
                values.append(base64.b64encode(element).decode())
        return values
    code = FORMATS.get(kind)
    if code is None:
        raise Answer(400, f"binary tensors of {kind} are not supported; send their data as JSON")
    count = size(shape)
    if count * struct.calcsize("<" + code) != len(data):
        raise Answer(400, f"a binary tensor has {len(data)} bytes, which does not match {kind}{list(shape)}")
    return list(struct.unpack(f"<{count}{code}", data))


def without_binary(request, rest):
    """Converts a V2 request with binary tensors to one whose inputs and requested outputs are all JSON."""
    at = 0
    for tensor in request.get("inputs") or []:
        parameters = tensor.get("parameters") or {}
        length = parameters.pop("binary_data_size", None)
        if length is not None:
            if not isinstance(length, int) or length < 0 or at + length > len(rest):
                raise Answer(400, f"input '{tensor.get('name')}': binary_data_size {length} exceeds the body")
            tensor["data"] = unpacked(tensor.get("datatype"), tensor.get("shape") or [], rest[at:at + length])
            at += length
        if "parameters" in tensor and not parameters:
            del tensor["parameters"]
    if at != len(rest):
        raise Answer(400, f"{len(rest) - at} bytes after the tensors belong to no input")
    (request.get("parameters") or {}).pop("binary_data_output", None)
    for output in request.get("outputs") or []:
        (output.get("parameters") or {}).pop("binary_data", None)
    return request


def of_rest(kserve, name, tree, answer):
    """Converts JSON to KServe's InferRequest or InferResponse."""
    module = sys.modules.get("kserve.protocol.infer_type") or kserve
    tensor, whole = (module.InferOutput, module.InferResponse) if answer else (module.InferInput, module.InferRequest)
    tensors = []
    for t in tree.get("outputs" if answer else "inputs") or []:
        tensors.append(tensor(
            name=t["name"], shape=list(t["shape"]), datatype=t["datatype"], data=t.get("data"),
            parameters=t.get("parameters")))
    if answer:
        return whole(response_id=tree.get("id"), model_name=tree.get("model_name", name), infer_outputs=tensors)
    return whole(model_name=name, infer_inputs=tensors, request_id=tree.get("id"), parameters=tree.get("parameters"))


def plain(value):
    """Converts a step's result to plain JSON values."""
    if hasattr(value, "to_rest"):
        value = value.to_rest()
        value = value[0] if isinstance(value, tuple) else value
    return value


def encode(value):
    def other(x):
        for name in ("tolist", "item", "isoformat"):
            if hasattr(x, name):
                return getattr(x, name)()
        if isinstance(x, (bytes, bytearray)):
            return {"b64": base64.b64encode(x).decode()}
        if isinstance(x, (set, tuple)):
            return list(x)
        raise TypeError(f"a {type(x).__name__} cannot be written as JSON")

    return json.dumps(value, default=other).encode()


# ---- CloudEvents ----

REQUIRED = ("source", "id", "type", "specversion")
STRUCTURED = "application/cloudevents+json"


def opened(tree, headers):
    """Unwraps a CloudEvent; returns (payload, mode of the response), where the mode is binary, structured or None."""
    if "ce-specversion" in headers:
        event = {k[3:]: v for k, v in headers.items() if k.startswith("ce-")}
        check(event)
        return tree, "binary"
    declared = headers.get("content-type", "").lower().startswith(STRUCTURED)
    whole = all(name in tree for name in REQUIRED + ("time", "data"))
    if not declared and not whole:
        return tree, None
    check(tree)
    data = tree.get("data")
    if "data_base64" in tree:
        try:
            data = json.loads(base64.b64decode(tree["data_base64"], validate=True))
        except (ValueError, TypeError) as e:
            raise Answer(400, f"Cloud Event Exceptions: data_base64 is not JSON: {e}") from None
    if not isinstance(data, dict):
        raise Answer(400, "Cloud Event Exceptions: the event's data is not a JSON object")
    return data, "structured"


def check(event):
    for name in REQUIRED:
        if name not in event:
            raise Answer(400, f"Cloud Event Exceptions: Failed to find {name} in HTTP request")
    if event["specversion"] not in ("1.0", "0.3"):
        raise Answer(400, f"Cloud Event Exceptions: Found invalid specversion {event['specversion']}")


def as_event(name):
    """Returns the CloudEvents attributes of a response."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "io.kserve.inference." + name,
            "type": "io.kserve.inference.response", "time": now}


# ---- requests ----


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    steps = None
    predictor = None
    arguments = None

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        self.answered(self.get)

    do_HEAD = do_GET

    def do_POST(self):
        self.answered(self.post)

    def answered(self, action):
        with self.server.lock:
            self.server.active += 1
        try:
            self.answer(action)
        finally:
            with self.server.lock:
                self.server.active -= 1
                self.server.lock.notify_all()

    def answer(self, action):
        try:
            body = self.body()
            status, kind, data, headers = action(body)
        except Answer as e:
            status, kind, data, headers = e.status, e.kind, e.body, e.headers
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            return
        except Exception as e:  # an error of this program
            traceback.print_exc()
            status, kind, data, headers = 500, "application/json", json.dumps({"error": str(e)}).encode(), ()
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            pieces, total = [], 0
            while True:
                length = int(self.rfile.readline(64).split(b";")[0] or b"0", 16)
                total += length
                if total > MOST_BODY:
                    self.close_connection = True
                    raise Answer(413, f"the body has more than {MOST_BODY} bytes")
                if length == 0:
                    while self.rfile.readline(65537).strip():
                        pass
                    return b"".join(pieces)
                pieces.append(self.rfile.read(length))
                self.rfile.readline(8)
        text = self.headers.get("Content-Length") or "0"
        if not text.isdigit():
            self.close_connection = True
            raise Answer(400, f"Content-Length is {text!r}, not a number")
        length = int(text)
        if length > MOST_BODY:
            self.close_connection = True
            raise Answer(413, f"the body has more than {MOST_BODY} bytes")
        return self.rfile.read(length) if length else b""

    def get(self, body):
        path = self.path.split("?")[0]
        if path in ("/", "/healthz"):
            return self.json({"status": "alive"})
        if path == "/v2/health/live":
            return self.json({"live": True})
        return self.passed(body)

    def post(self, body):
        path = self.path.split("?")[0]
        if PREDICT.fullmatch(path):
            return self.predict(body, False)
        if INFER.fullmatch(path):
            return self.predict(body, True)
        return self.passed(body)

    def passed(self, body):
        """Forwards the request to the predictor unchanged."""
        headers = {k: v for k, v in self.headers.items()
                   if k.lower() not in ("host", "connection", "content-length", "transfer-encoding", "accept-encoding")}
        return self.taken(self.predictor.call(self.command, self.path, body or None, headers))

    @staticmethod
    def taken(reply):
        status, headers, data = reply
        more = [(k, v) for k, v in headers.items()
                if k.lower() not in ("content-type", "content-length", "connection", "transfer-encoding", "date", "server")]
        return status, headers.get("Content-Type", "application/json"), data, more

    @staticmethod
    def json(value):
        return 200, "application/json", json.dumps(value).encode(), ()

    def parsed(self, body, v2):
        rest = b""
        head = self.headers.get("Inference-Header-Content-Length")
        if v2 and head is not None:
            if not head.isdigit() or int(head) > len(body):
                raise Answer(400, f"Inference-Header-Content-Length {head!r} is not within the body's {len(body)} bytes")
            body, rest = body[:int(head)], body[int(head):]
        try:
            tree = json.loads(body)
        except ValueError as e:
            raise Answer(400, f"Unrecognized request format: {e}") from None
        if not isinstance(tree, dict):
            raise Answer(400, "expected a JSON object")
        return without_binary(tree, rest) if v2 else tree

    def predict(self, body, v2):
        steps, name = self.steps, self.arguments.model_name
        headers = {k.lower(): v for k, v in self.headers.items()}
        payload = self.parsed(body, v2)
        mode = None
        if not v2:
            payload, mode = opened(payload, headers)
        request_id = payload.get("id") if v2 else None
        own = steps.of_kserve and v2
        if own:
            try:
                payload = of_rest(steps.kserve, name, payload, False)
            except (KeyError, TypeError) as e:
                raise Answer(400, f"not a V2 request: {type(e).__name__}: {e}") from None
        more = {}
        payload = steps.step("preprocess", steps.pre, payload, headers, more)
        if steps.own_predict is not None:
            result = steps.step("predict", steps.own_predict, payload, headers, more)
        else:
            result = self.forward(plain(payload), v2, headers)
            if own and isinstance(result, dict) and "outputs" in result:
                result = of_rest(steps.kserve, name, result, True)
        result = plain(steps.step("postprocess", steps.post, result, headers, more))
        if v2 and request_id is not None and isinstance(result, dict):
            result.setdefault("id", request_id)
        try:
            data = encode(result)
        except (TypeError, ValueError) as e:
            raise Answer(500, f"the response cannot be written: {e}") from None
        if mode == "binary":
            more.update(("ce-" + k, v) for k, v in as_event(name).items())
        elif mode == "structured":
            return 200, STRUCTURED, encode({**as_event(name), "data": json.loads(data)}), list(more.items())
        return 200, "application/json", data, list(more.items())

    def forward(self, payload, v2, headers):
        """Calls the predictor with the protocol of the payload: V1 for instances, V2 for tensors."""
        protocol = self.arguments.predictor_protocol
        if protocol is None:
            protocol = "v2" if v2 else "v1"
            if isinstance(payload, dict):
                inputs = payload.get("inputs")
                if "instances" in payload:
                    protocol = "v1"
                elif isinstance(inputs, list) and inputs and isinstance(inputs[0], dict) and "datatype" in inputs[0]:
                    protocol = "v2"
        path = self.path.split("?")[0]
        kept = PREDICT.fullmatch(path) if protocol == "v1" else INFER.fullmatch(path)
        if not kept:
            asked = (PREDICT.fullmatch(path) or INFER.fullmatch(path)).group(1)
            path = f"/v1/models/{asked}:predict" if protocol == "v1" else f"/v2/models/{asked}/infer"
        try:
            data = encode(payload)
        except (TypeError, ValueError) as e:
            raise Answer(500, f"the result of preprocess cannot be written: {e}") from None
        passed = {k: v for k, v in headers.items() if PASSED.fullmatch(k)}
        passed["Content-Type"] = "application/json"
        reply = self.predictor.call("POST", path, data, passed)
        if reply[0] >= 300:
            status, kind, body, more = self.taken(reply)
            raise Answer(status, body, kind, more)
        try:
            return json.loads(reply[2])
        except ValueError:
            raise Answer(502, "the predictor's response is not JSON") from None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024
    allow_reuse_address = True
    active = 0
    lock = threading.Condition()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--class", dest="class_name")
    parser.add_argument("--packages")
    parser.add_argument("--model_name", default="model")
    parser.add_argument("--predictor_host", required=True)
    parser.add_argument("--predictor_protocol", choices=["v1", "v2"])
    parser.add_argument("--predictor_request_timeout_seconds", type=float, default=600)
    parser.add_argument("--http_port", type=int, default=8080)
    parser.add_argument("--workers", type=int, default=1)
    arguments, _ = parser.parse_known_args()
    config = json.loads(os.environ.get("NEREID_TRANSFORMER_CONFIG", "{}"))
    if config.get("predictor_protocol"):
        arguments.predictor_protocol = config["predictor_protocol"]
        if arguments.predictor_protocol not in ("v1", "v2"):
            raise SystemExit(f"predictor_protocol: expected v1 or v2, found {arguments.predictor_protocol!r}")
    sys.dont_write_bytecode = True
    Handler.arguments = arguments
    Handler.predictor = Predictor(arguments.predictor_host, arguments.predictor_request_timeout_seconds)
    Handler.steps = Steps(arguments, config)
    server = Server(("127.0.0.1", arguments.http_port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown, daemon=True).start())
    print(f"transformer of {arguments.model_name} on port {arguments.http_port}, predictor at {arguments.predictor_host}",
          flush=True)
    server.serve_forever(poll_interval=0.1)
    server.server_close()
    with server.lock:  # wait for the requests in progress
        server.lock.wait_for(lambda: server.active == 0, 25)


if __name__ == "__main__":
    main()
