# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one instance of a Python model: takes requests from the server and gives answers back.

Frames of JSON, each behind 4 bytes of length, go over a Unix socket; tensors lie in files that both sides have mapped. Each
side gives out parts ("chunks") of the files it has made: numbers of the server's files are 0 and above, of ours below 0. A
chunk is named by the number of its file and the place where it begins.

There is no thread for reading: whoever waits for something reads, and hands on what is for others.
"""
import collections
import ctypes
import importlib
import importlib.util
import inspect
import itertools
import json
import mmap
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import traceback
import types
import weakref

import triton_python_backend_utils as pb

_LENGTH = struct.Struct("<I")
_BLOCK = 64


class Segment:
    """A mapped file."""

    def __init__(self, fd, size):
        self.size = size
        self.map = mmap.mmap(fd, size)
        self.view = memoryview(self.map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))


class Arena:
    """Gives out chunks of files of our own; every size is one of a few, and what comes back is given out again."""

    def __init__(self, worker, directories, prefix, initial, growth):
        self._worker = worker
        self._directories = directories
        self._prefix = prefix
        self._initial = initial
        self._growth = growth
        self._lock = threading.Lock()
        self._free = {}
        self._sizes = {}
        self._segments = {}
        self._last = None
        self._used = 0

    @staticmethod
    def _rounded(size):
        """At most a quarter more."""
        if size <= _BLOCK * 4:
            return (size + _BLOCK - 1) // _BLOCK * _BLOCK
        step = max(_BLOCK, 1 << ((size - 1).bit_length() - 3))
        return (size + step - 1) // step * step

    def take(self, size):
        """The number of the file, the place and the memory."""
        rounded = self._rounded(size)
        with self._lock:
            free = self._free.get(rounded)
            if free:
                number, at = free.pop()
            else:
                if self._last is None or self._used + rounded > self._segments[self._last].size:
                    self._grow(rounded)
                number, at = self._last, self._used
                self._used += rounded
                self._sizes[number, at] = rounded
            return number, at, self._segments[number].view[at : at + size]

    def give(self, number, at):
        with self._lock:
            self._free.setdefault(self._sizes[number, at], []).append((number, at))

    def _grow(self, least):
        size = self._initial if self._last is None else self._growth
        size = max(size, (least + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE)
        problem = None
        for directory in self._directories:
            path = None
            try:
                fd, path = tempfile.mkstemp(prefix=self._prefix, dir=directory)
                try:
                    # Reserved now, or a full file system would kill us in the middle of a copy.
                    os.posix_fallocate(fd, 0, size) if hasattr(os, "posix_fallocate") else os.ftruncate(fd, size)
                    segment = Segment(fd, size)
                finally:
                    os.close(fd)
                break
            except OSError as e:
                problem = f"{directory}: {e}"
                if path is not None:
                    os.unlink(path)
        else:
            raise pb.TritonModelException(f"no room for {size} bytes of tensors ({problem})")
        number = -1 - len(self._segments)
        self._segments[number] = segment
        self._last = number
        self._used = 0
        self._worker.pending.add(path)
        self._worker.transmit({"t": "seg", "i": number, "path": path, "size": size})


class Answers:
    """The answers of another model, which come while one iterates."""

    def __init__(self, worker, key, model):
        self._worker = worker
        self._key = key
        self._model = model
        self.queue = collections.deque()
        self._ended = False
        self._finalizer = weakref.finalize(self, worker.abandoned.append, key)
        self._finalizer.atexit = False

    def __iter__(self):
        return self

    def __next__(self):
        while not self._ended:
            self._worker.wait(lambda: self.queue)
            response, last = self.queue.popleft()
            if last:
                self._ended = True
                self._finalizer.detach()
                self._worker.calls.pop(self._key, None)
            if response is not None:
                return response
        raise StopIteration

    def cancel(self):
        if not self._ended:
            self._worker.transmit({"t": "drop", "k": self._key})

    def single(self):
        first = next(self, None)
        more = next(self, None)
        if first is None or more is not None:
            count = "none" if first is None else "several"
            self.cancel()
            return pb.InferenceResponse(error=pb.TritonError(
                f"model '{self._model}' gave {count} instead of one answer: it is decoupled, ask it with "
                "exec(decoupled=True)", pb.TritonError.UNSUPPORTED))
        return first


class Worker:
    def __init__(self, connection):
        self._socket = connection
        self._buffer = bytearray()
        self._send_lock = threading.Lock()
        self._changed = threading.Condition()
        self._reading = False
        self._work = collections.deque()
        self._segments = {}
        self._arena = None
        self._model = None
        self._decoupled = False
        self._types = {}
        self._cast = set()
        self._instance = ""
        self._directory = ""
        self._open = {}
        self._answers = {}
        self._keys = itertools.count(1)
        self._released = collections.deque()
        self._counted = collections.deque()
        self._busy = 0
        self._lent = {}
        self._executor = None
        self._loop = None
        self._shared_loop = None
        self.abandoned = collections.deque()
        self.calls = {}
        self.pending = set()

    # frames

    def transmit(self, message):
        """Sends a frame, and what else is to be told."""
        if self._released:
            message["f"] = self._taken(self._released)
        if self._counted:
            message["c"] = self._taken(self._counted)
        if self.abandoned:
            message["x"] = self._taken(self.abandoned)
            for key in message["x"]:
                self.calls.pop(key, None)
        # Half a surrogate pair, which no UTF-8 can say, becomes a question mark.
        body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        try:
            with self._send_lock:
                self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError:
            self.end()

    @staticmethod
    def _taken(queue):
        """All of it; finalizers may add to it at any time."""
        taken = []
        while queue:
            taken.append(queue.popleft())
        return taken

    def _receive(self):
        """The next frames, at least one."""
        buffer = self._buffer
        frames = []
        while not frames:
            try:
                data = self._socket.recv(1 << 18)
            except OSError:
                data = b""
            if not data:
                self.end()
            buffer += data
            at = 0
            while len(buffer) - at >= 4:
                (length,) = _LENGTH.unpack_from(buffer, at)
                if len(buffer) - at - 4 < length:
                    break
                frames.append(json.loads(bytes(buffer[at + 4 : at + 4 + length])))
                at += 4 + length
            del buffer[:at]
        return frames

    def wait(self, ready):
        """Until it is so; one of those who wait reads for all."""
        while True:
            with self._changed:
                while self._reading and not ready():
                    self._changed.wait()
                if ready():
                    return
                self._reading = True
            frames = []
            try:
                frames = self._receive()
            finally:
                with self._changed:
                    self._reading = False
                    for frame in frames:
                        self._dispatch(frame)
                    self._changed.notify_all()

    def _dispatch(self, frame):
        for number, at in frame.get("free", ()):
            self._arena.give(number, at)
        kind = frame["t"]
        if kind == "seg":
            fd = os.open(frame["path"], os.O_RDWR)
            try:
                self._segments[frame["i"]] = Segment(fd, frame["size"])
            finally:
                os.close(fd)
            os.unlink(frame["path"])
        elif kind == "mapped":
            self.pending.discard(frame["path"])
        elif kind == "answer":
            call = self.calls.get(frame["k"])
            response = self._response(frame)
            if call is not None:
                call.queue.append((response, frame["z"]))
        elif kind == "value":
            self._answers[frame["n"]] = frame
        elif kind != "free":
            self._work.append(frame)

    def end(self):
        """The server has gone, or wants us to go: at once, and with every process of ours."""
        for path in list(self.pending):
            try:
                os.unlink(path)
            except OSError:
                pass
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except Exception:
            pass
        try:
            if os.getpgid(0) == os.getpid():
                os.killpg(0, signal.SIGKILL)
        finally:
            os._exit(0)

    # tensors

    def _tensor(self, spec, lent):
        name, wire, shape, number, at, length = spec
        if length == 0:
            view, chunk = memoryview(bytearray()), None
        elif lent:
            # ctypes, because an object is needed that is alive as long as any array over its bytes.
            holder = (ctypes.c_char * length).from_buffer(self._segments[number].map, at)
            self._lent[number, at] = length
            weakref.finalize(holder, self._give_back, number, at).atexit = False
            view, chunk = memoryview(holder).cast("B"), (number, at, 0, length)
        else:
            view, chunk = self._segments[number].view[at : at + length], (number, at, 0, length)
        return pb.Tensor._over(name, wire, tuple(shape), view, chunk)

    def _give_back(self, number, at):
        self._lent.pop((number, at), None)
        self._released.append((number, at))

    def _response(self, frame):
        error = frame.get("e")
        if error is not None:
            return pb.InferenceResponse(error=pb.TritonError(error[1], error[0]))
        if "o" not in frame:
            return None
        return pb.InferenceResponse([self._tensor(t, True) for t in frame["o"]], parameters=frame.get("p"))

    def _encoded(self, tensor):
        """Where the server finds a tensor; it is copied unless it already lies where the server can read it."""
        if tensor._chunk is not None:
            number, at, skip, length = tensor._chunk
            return [tensor._name, tensor._type, tensor._shape, number, at, skip, length]
        if tensor._array is None:
            if tensor._view is None:
                raise pb.TritonModelException(
                    f"tensor '{tensor._name}' belonged to a request that has been answered: its values are gone")
            number, at = self._copied(tensor._view)
            return [tensor._name, tensor._type, tensor._shape, number, at, 0, len(tensor._view)]
        if tensor._type == "BYTES":
            data = pb._to_bytes_elements(tensor._array)
            number, at = self._copied(data)
            return [tensor._name, "BYTES", tensor._shape, number, at, 0, len(data)]
        array = tensor._array
        length = array.nbytes
        if length == 0:
            return [tensor._name, tensor._type, tensor._shape, 0, 0, 0, 0]
        if array.base is not None and array.flags.c_contiguous and array.dtype.isnative:
            place = self._place(array.__array_interface__["data"][0], length)
            if place is not None:
                return [tensor._name, tensor._type, tensor._shape, *place, length]
        number, at, view = self._arena.take(length)
        np = pb._np()
        np.copyto(np.frombuffer(view, dtype=array.dtype.newbyteorder("=")).reshape(array.shape), array)
        return [tensor._name, tensor._type, tensor._shape, number, at, 0, length]

    def _copied(self, data):
        if len(data) == 0:
            return 0, 0
        number, at, view = self._arena.take(len(data))
        view[:] = data
        return number, at

    def _place(self, address, length):
        """The chunk that holds these bytes: file, place, and how far in."""
        for number, segment in self._segments.items():
            if segment.address <= address < segment.address + segment.size:
                from_ = address - segment.address
                ours = [t._chunk for inputs in list(self._open.values()) for t in inputs if t._chunk is not None]
                asked = [(*place, 0, size) for place, size in list(self._lent.items())]
                for n, at, _, size in ours + asked:
                    if n == number and at <= from_ and from_ + length <= at + size:
                        return number, at, from_ - at
        return None

    def _fitted(self, tensor):
        """The tensor in the type that the configuration promises, where that changes no value to speak of."""
        wanted = self._types.get(tensor._name)
        if wanted is None or wanted == tensor._type or tensor._array is None:
            return tensor
        name = pb._NUMPY_NAMES.get(wanted)
        if name is None or tensor._type == "BYTES":
            return tensor
        np = pb._np()
        array = tensor._array
        if not np.can_cast(array.dtype, name, "same_kind"):
            return tensor
        cast = array.astype(name)
        if array.dtype.kind != "f" and not (cast == array).all():
            return tensor
        if tensor._name not in self._cast:
            self._cast.add(tensor._name)
            self.log(2, f"output '{tensor._name}' is made as {tensor._type}; it is answered as {wanted}, as the "
                        "configuration says")
        return pb.Tensor(tensor._name, cast)

    def _answer(self, key, wanted, response):
        """A response as the server takes it."""
        if response is None:
            return {"k": key}
        if response._error is not None:
            return {"k": key, "e": [response._error.code(), response._error.message()]}
        kept = [t for t in response._tensors if t._name in wanted]
        kept.sort(key=lambda t: wanted.index(t._name))
        fitted = [self._fitted(t) for t in kept]
        answer = {"k": key, "o": [self._encoded(t) for t in fitted]}
        if response._parameters:
            answer["p"] = response._parameters
        return answer

    # what the interface asks for

    def send(self, key, wanted, response, final):
        if key not in self._open:
            raise pb.TritonModelException("the request has been answered before")
        message = {"t": "resp", "z": final, **self._answer(key, wanted, response)}
        self.transmit(message)
        if final:
            self._close(key)

    def ask(self, request, decoupled):
        if not request._model:
            raise pb.TritonModelException("a request to another model needs its model_name")
        key = next(self._keys)
        correlation = request._correlation
        if isinstance(correlation, int) and correlation >= 1 << 63:
            # The server's numbers have a sign.
            correlation -= 1 << 64
        answers = Answers(self, key, request._model)
        self.calls[key] = answers
        self.transmit({
            "t": "ask", "k": key, "m": request._model, "v": request._version,
            "i": [self._encoded(t) for t in request._inputs], "o": request._outputs, "id": request._id,
            "c": correlation, "g": request._flags, "s": request._timeout, "p": request._parameters,
        })
        return answers

    def executor(self):
        if self._executor is None:
            import concurrent.futures

            self._executor = concurrent.futures.ThreadPoolExecutor(64, "questions")
        return self._executor

    def _question(self, message):
        number = next(self._keys)
        message["n"] = number
        self.transmit(message)
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "e" in answer:
            raise pb.TritonModelException(answer["e"][1])
        return answer["v"]

    def cancelled(self, key):
        return self._question({"t": "cancelled", "k": key})

    def control(self, what, model, **more):
        return self._question({"t": "control", "op": what, "m": model, **more})

    def metric(self, what, **more):
        """Asks the server, which keeps what models count."""
        return self._question({"t": "metric", "op": what, **more})

    def count(self, number, what, value):
        """Goes with the next frame, of which there is one soon while a request is worked on."""
        self._counted.append([number, what, value])
        if not self._busy:
            self.transmit({"t": "counted"})

    def log(self, level, message):
        self.transmit({"t": "log", "l": level, "m": message})

    # the model's life

    def run(self):
        while True:
            self.wait(lambda: self._work)
            frame = self._work.popleft()
            kind = frame["t"]
            if kind == "exec":
                self._busy += 1
                try:
                    self._execute(frame)
                finally:
                    self._busy -= 1
                if self._counted:
                    self.transmit({"t": "counted"})
                continue
            if kind == "ready":
                self.transmit({"t": "ready", "v": self._is_ready()})
                continue
            try:
                reply = getattr(self, "_" + kind)(frame)
                self.transmit({"t": "ok", **(reply or {})})
            except BaseException as e:
                self.transmit({"t": "fail", "m": self._reason(e)})
            if kind == "fin":
                self.end()

    def _load(self, frame):
        """Imports the model, and lets it complete its configuration."""
        self._arena = Arena(self, frame["dirs"], frame["prefix"], frame["initial"], frame["growth"])
        path = frame["file"]
        directory = os.path.dirname(path)
        self._directory = directory
        # After everything else, so that no file of the model hides a module of the library.
        sys.path += [directory, os.path.dirname(directory)]
        package = os.path.basename(directory)
        stem, ending = os.path.splitext(os.path.basename(path))
        name = f"{package}.{stem}".replace(" ", "_")
        parent = types.ModuleType(package)
        parent.__path__ = [directory]
        sys.modules.setdefault(package, parent)
        if ending != ".py" or "." in stem:
            name = package + "." + stem.replace(".", "_")
        loader = importlib.machinery.SourceFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        self._class = getattr(module, "TritonPythonModel", None)
        if not inspect.isclass(self._class):
            raise pb.TritonModelException("the file has no class TritonPythonModel")
        if not callable(getattr(self._class, "execute", None)):
            raise pb.TritonModelException("the class TritonPythonModel has no method execute")
        complete = getattr(self._class, "auto_complete_config", None)
        if frame.get("config") is None or complete is None:
            return {}
        result = complete(pb.ModelConfig(frame["config"]))
        if not isinstance(result, pb.ModelConfig):
            raise pb.TritonModelException(
                f"auto_complete_config returned {type(result).__name__} (expected: the ModelConfig it was given)")
        return {"config": result.as_dict()}

    def _init(self, frame):
        self._decoupled = frame["decoupled"]
        self._types = frame["types"]
        self._instance = frame["args"]["model_instance_name"]
        self._model = self._class()
        if hasattr(self._model, "initialize"):
            self._model.initialize(frame["args"])
        if callable(getattr(self._model, "is_ready", None)):
            return {"ready": self._is_ready()}
        return {}

    def _is_ready(self):
        """What the model says; one that fails to say it is not ready."""
        try:
            result = self._model.is_ready()
            if inspect.iscoroutine(result):
                result = self._until_complete(result)
            if not isinstance(result, bool):
                raise pb.TritonModelException(f"is_ready returned {type(result).__name__} (expected: bool)")
            return result
        except BaseException as e:
            self.log(2, f"is_ready failed, so that the model counts as not ready: {type(e).__name__}: {e}")
            return False

    def _fin(self, frame):
        if self._model is not None and hasattr(self._model, "finalize"):
            self._model.finalize()

    def _request(self, r):
        request = pb.InferenceRequest.__new__(pb.InferenceRequest)
        request._id = r.get("id", "")
        request._correlation = r.get("c", 0)
        request._inputs = [self._tensor(t, False) for t in r["i"]]
        request._outputs = r["o"]
        request._model = ""
        request._version = -1
        request._flags = r.get("g", 0)
        request._timeout = r.get("s", 0)
        request._parameters = r.get("p", {})
        request._key = r["k"]
        request._release = pb.TRITONSERVER_REQUEST_RELEASE_ALL
        request._sender = None
        self._open[r["k"]] = request._inputs
        return request

    def _close(self, key):
        """The request has been answered: its memory is somebody else's now."""
        for tensor in self._open.pop(key, ()):
            tensor._chunk = None
            tensor._view = None

    def _execute(self, frame):
        requests = [self._request(r) for r in frame["r"]]
        try:
            result = self._model.execute(requests)
            if inspect.iscoroutine(result):
                if self._decoupled:
                    self._share(result, requests)
                    self.transmit({"t": "done"})
                    return
                result = self._until_complete(result)
            message = self._results(requests, result)
        except BaseException as e:
            self._fail(requests, e)
            return
        self.transmit(message)
        for answer in message.get("r", ()):
            self._close(answer["k"])

    def _results(self, requests, result):
        """What execute has returned, as the server takes it."""
        again = [r._key for r in requests if r._release == pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE]
        for key in again:
            self._close(key)
        message = {"t": "done"}
        if again:
            message["again"] = again
        if self._decoupled:
            if result is not None:
                raise pb.TritonModelException(
                    "the model is decoupled: execute must return None and answer through response senders")
            return message
        if result is None:
            silent = [r for r in requests if r._sender is None and r._key not in again]
            if silent:
                raise pb.TritonModelException("execute returned None (expected: a list with a response for each request)")
            return message
        if not isinstance(result, (list, tuple)) or len(result) != len(requests):
            got = len(result) if isinstance(result, (list, tuple)) else type(result).__name__
            raise pb.TritonModelException(
                f"execute returned {got} responses (expected: {len(requests)}, one for each request)")
        answers = []
        for request, response in zip(requests, result):
            if isinstance(response, pb.InferenceResponse):
                answers.append(self._answer(request._key, request._outputs, response))
            elif response is not None:
                raise pb.TritonModelException(
                    f"execute returned a list with {type(response).__name__} (expected: InferenceResponse)")
            elif request._sender is None and request._key not in again:
                raise pb.TritonModelException("execute returned a list with None (expected: InferenceResponse)")
        message["r"] = answers
        return message

    def _fail(self, requests, e, kind="done"):
        traceback.print_exception(type(e), e, self._own(e.__traceback__))
        sys.stderr.flush()
        where = ""
        for frame in traceback.extract_tb(e.__traceback__):
            if frame.filename.startswith(self._directory):
                where = f" ({os.path.basename(frame.filename)}:{frame.lineno})"
        text = f"Failed to process the request(s) for model instance '{self._instance}', message: {type(e).__name__}: {e}{where}"
        self.transmit({"t": kind, "e": text, "ks": [r._key for r in requests]})
        for request in requests:
            self._close(request._key)

    def _until_complete(self, coroutine):
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(coroutine)

    def _share(self, coroutine, requests):
        """A decoupled model waits for its answers while it takes the next requests."""
        import asyncio

        if self._shared_loop is None:
            self._shared_loop = asyncio.new_event_loop()
            threading.Thread(target=self._shared_loop.run_forever, name="event loop", daemon=True).start()

        async def run():
            try:
                if await coroutine is not None:
                    raise pb.TritonModelException(
                        "the model is decoupled: execute must return None and answer through response senders")
            except BaseException as e:
                self._fail(requests, e, "late")

        asyncio.run_coroutine_threadsafe(run(), self._shared_loop)

    @staticmethod
    def _own(trace):
        """The part of a trace that is not ours."""
        here = os.path.dirname(os.path.abspath(__file__))
        first = trace
        while first is not None and (
                os.path.dirname(os.path.abspath(first.tb_frame.f_code.co_filename)) == here
                or "importlib" in first.tb_frame.f_code.co_filename):
            first = first.tb_next
        return first

    def _reason(self, e):
        """The trace's last lines: what went wrong, and where."""
        lines = traceback.format_exception(type(e), e, self._own(e.__traceback__))
        sys.stderr.write("".join(lines))
        sys.stderr.flush()
        text = [line for block in lines for line in block.splitlines() if line.strip()]
        return "\n".join(text[-8:])


def _watch(fd, worker):
    """The server holds the other end of this pipe: when it closes, there is no server any more."""
    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        pass
    worker.end()


def main():
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        os.setpgid(0, 0)
    except OSError:
        pass
    # The server decides when we go. Handlers, not SIG_IGN, which the model's own processes would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.dont_write_bytecode = True
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    worker = Worker(connection)
    pb._worker = worker
    threading.Thread(target=_watch, args=(lifeline, worker), name="lifeline", daemon=True).start()
    worker.transmit({"t": "hello", "pid": os.getpid(), "python": sys.version.split()[0]})
    try:
        worker.run()
    except BaseException:
        traceback.print_exc()
    worker.end()


if __name__ == "__main__":
    main()
