# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one instance of a Python model: receives requests from the server and sends responses.

Server and worker exchange frames over Unix sockets: 4 bytes of length, then a JSON object (the class comment of
Worker.java lists the kinds). There are three: for frames to the worker, for results of runs, which the server's thread
that waits for one reads itself, and for all other frames from the worker. Tensors are in shared memory: files that both
sides have mapped. Each side allocates ranges ("chunks") in the files that it has created; the server's files have numbers
from 0 up, the worker's from -1 down. A chunk is identified by the number of its file and its offset.

There is no reader thread. Of the threads that wait for a frame, one reads the socket and dispatches frames for all.
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
import select
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
_MOST_HEADS = 1000
# The functions of json.loads and json.dumps without what these do for each call.
_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


class Segment:
    """A mapped shared-memory file."""

    def __init__(self, fd, size):
        self.size = size
        self.map = mmap.mmap(fd, size)
        self.view = memoryview(self.map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))


class Arena:
    """Allocates chunks in the worker's own files, by size classes with a free list each. Thread-safe, by its lock."""

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
        """The size class: at most a quarter more than the size."""
        if size <= _BLOCK * 4:
            return (size + _BLOCK - 1) // _BLOCK * _BLOCK
        step = max(_BLOCK, 1 << ((size - 1).bit_length() - 3))
        return (size + step - 1) // step * step

    def take(self, size):
        """Allocates a chunk: returns the number of its file, its offset and its memory."""
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
                    # Reserve the space now: on a full file system, a write to the mapping would kill the process.
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
            raise pb.TritonModelException(f"not enough shared memory for {size} bytes of tensors ({problem})")
        number = -1 - len(self._segments)
        self._segments[number] = segment
        self._last = number
        self._used = 0
        self._worker.pending.add(path)
        self._worker.transmit({"t": "seg", "i": number, "path": path, "size": size})


class Answers:
    """An iterator over the responses of another model. It waits for a response when none has arrived.

    The end of a decoupled model's responses is a response without tensors, unless its last response was marked as the
    final one. Once all responses have arrived, they can be iterated again.
    """

    def __init__(self, worker, key, model):
        self._worker = worker
        self._key = key
        self._model = model
        self.queue = collections.deque()
        self._seen = []
        self._at = 0
        self._ended = False
        self._finalizer = weakref.finalize(self, worker.abandoned.append, key)
        self._finalizer.atexit = False

    def __iter__(self):
        if self._ended and self._at >= len(self._seen):
            self._at = 0
        return self

    def __next__(self):
        if self._at >= len(self._seen):
            if self._ended:
                raise StopIteration
            self._seen.append(self._next())
        self._at += 1
        return self._seen[self._at - 1]

    def _next(self):
        self._worker.wait(lambda: self.queue)
        response, self._ended = self.queue.popleft()
        if self._ended:
            self._finalizer.detach()
            self._worker.calls.pop(self._key, None)
        return response

    def cancel(self):
        if not self._ended:
            self._worker.transmit({"t": "drop", "k": self._key})

    def begun(self):
        """Waits for the first response, which remains to be read, and returns this iterator."""
        self._worker.wait(lambda: self.queue)
        return self

    def single(self):
        first = self._next()
        if self._ended:
            return first
        second = self._next()
        if self._ended and second.has_error():
            return second
        if not self._ended or second.output_tensors():
            self.cancel()
            return pb.InferenceResponse(error=pb.TritonError(
                f"model '{self._model}' sent several responses instead of one: it is decoupled, call it with "
                "exec(decoupled=True)", pb.TritonError.UNSUPPORTED))
        return first


class Stopped(Exception):
    """The clients of a run have gone, so its coroutine was cancelled."""

    def __init__(self):
        super().__init__("the clients have cancelled their requests")


class Ownership:
    """What a request and its response sender share: when it is gone, nothing can answer the request any more."""

    __slots__ = ("__weakref__",)


class Worker:
    """The worker's side of the connection. The model may use it on any thread; _changed guards the received frames."""

    def __init__(self, commands, messages, results):
        self._commands = commands
        self._messages = messages
        self._result_socket = results
        # The part of a frame that has arrived, and the memory in which the next bytes arrive.
        self._begin = bytearray()
        self._arriving = memoryview(bytearray(1 << 16))
        self._send_lock = threading.Lock()
        # The frames sent, but for results, and the last run that has ended: the server keeps their order (FrameOrder.java).
        self._sent = 0
        self._ended = 0
        # The text of a tensor's name, type and shape, by these.
        self._heads = {}
        # Reentrant: a finalizer of the model that runs while it is held may wait for a frame too.
        self._received = threading.RLock()
        self._changed = threading.Condition(self._received)
        self._waiting = 0
        self._reading = False
        self._work = collections.deque()
        self._segments = {}
        self._arena = None
        self._model = None
        self._decoupled = False
        self._instance = ""
        self._directory = ""
        self._open = {}
        self._answers = {}
        self._keys = itertools.count(1)
        self._released = collections.deque()
        self._counted = collections.deque()
        self._busy = 0
        # Shared memory for the number of the exec that has begun: the server reads it when this process has died.
        self._begun = None
        self._lent = {}
        self._executor = None
        self._loop = None
        # A pipe that ends the wait for a frame, for events of this process; None until there can be one.
        self._waker = None
        self._stopped = None
        self._unanswered = collections.deque()
        self.abandoned = collections.deque()
        self.calls = {}
        self.pending = set()

    # frames

    def transmit(self, message):
        """Sends a frame, with what is to be sent with the next one."""
        self._additions(message)
        message["d"] = self._ended
        self._write(self._messages, message)

    def _end_run(self, number, message):
        """Sends the result of a run, to the thread that waits for it."""
        self._additions(message)
        # In this order: a frame that another thread sends now and that is to be handled after this result is not counted.
        message["q"] = self._sent
        self._ended = number
        self._write(self._result_socket, message, self._result_text(message))

    def _additions(self, message):
        """Adds the pending releases, metric updates and abandoned calls to a frame."""
        if self._released:
            message["f"] = self._taken(self._released)
        if self._counted:
            message["c"] = self._taken(self._counted)
        if self._unanswered:
            message["u"] = self._taken(self._unanswered)
            for key in message["u"]:
                self._close(key)
        if self.abandoned:
            message["x"] = self._taken(self.abandoned)
            for key in message["x"]:
                self.calls.pop(key, None)

    def _result_text(self, message):
        """The frame of the usual result, responses that have tensors only, in half of the time of json; else None."""
        answers = message.get("r")
        if answers is None or len(message) != 3:
            return None
        texts = []
        for answer in answers:
            if len(answer) != 2 or "o" not in answer:
                return None
            tensors = []
            for name, wire, shape, *place in answer["o"]:
                head = self._heads.get((name, wire, shape))
                if head is None:
                    if len(self._heads) >= _MOST_HEADS:
                        self._heads.clear()
                    head = self._heads[name, wire, shape] = _encode([name, wire, shape])[:-1]
                tensors.append("%s,%d,%d,%d,%d]" % (head, *place))
            texts.append('{"k":%d,"o":[%s]}' % (answer["k"], ",".join(tensors)))
        return '{"t":"done","r":[%s],"q":%d}' % (",".join(texts), message["q"])

    def _write(self, connection, message, text=None):
        # A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
        body = (text or _encode(message)).encode("utf-8", "replace")
        try:
            with self._send_lock:
                if connection is self._messages:
                    self._sent += 1
                connection.sendall(_LENGTH.pack(len(body)) + body)
        except OSError:
            self.end()

    @staticmethod
    def _taken(queue):
        """Removes and returns all elements; finalizers may add more at any time, so this does not iterate over it."""
        taken = []
        while queue:
            taken.append(queue.popleft())
        return taken

    def _receive(self):
        """Reads until at least one frame is complete, or until the pipe has been written to."""
        begin = self._begin
        frames = []
        while not frames:
            if self._waker is not None and self._woken():
                break
            try:
                count = self._commands.recv_into(self._arriving)
            except OSError:
                count = 0
            if not count:
                self.end()
            joined = bool(begin)
            if not joined and count > 4 and _LENGTH.unpack_from(self._arriving)[0] == count - 4:
                # One whole frame, as nearly always.
                return [_decode(str(self._arriving[4:count], "utf-8"))[0]]
            data = self._arriving[:count]
            if joined:
                begin += data
                data = memoryview(begin)
            size = len(data)
            at = 0
            while size - at >= 4:
                (length,) = _LENGTH.unpack_from(data, at)
                if size - at - 4 < length:
                    break
                frames.append(_decode(str(data[at + 4 : at + 4 + length], "utf-8"))[0])
                at += 4 + length
            if joined:
                data.release()
                del begin[:at]
            elif at < size:
                begin += data[at:]
        return frames

    def _woken(self):
        """Waits for a frame or for the pipe; whether it was the pipe."""
        reading, _, poll = self._waker
        if reading not in [fd for fd, _ in poll.poll()]:
            return False
        try:
            os.read(reading, 4096)
        except BlockingIOError:
            pass
        return True

    def _wake(self):
        """Ends the wait of the thread that reads the socket. Callable from finalizers: takes no lock."""
        try:
            os.write(self._waker[1], b"w")
        except BlockingIOError:
            pass

    def wakeable(self):
        """Makes waits end for events of this process too, from the next one on."""
        if self._waker is None:
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            os.set_blocking(writing, False)
            poll = select.poll()
            poll.register(self._commands, select.POLLIN)
            poll.register(reading, select.POLLIN)
            self._waker = (reading, writing, poll)

    def wait(self, ready):
        """Waits until ready() is true. One of the waiting threads reads the socket for all of them."""
        while True:
            if self._unanswered:
                self.transmit({"t": "counted"})
            with self._received:
                while self._reading and not ready():
                    self._waiting += 1
                    self._changed.wait()
                    self._waiting -= 1
                if ready():
                    return
                self._reading = True
            frames = []
            try:
                frames = self._receive()
            finally:
                with self._received:
                    self._reading = False
                    for frame in frames:
                        self._dispatch(frame)
                    if self._waiting:
                        self._changed.notify_all()
                    come = ready()
            if come:
                return

    def _dispatch(self, frame):
        if "free" in frame:
            for number, at in frame["free"]:
                self._arena.give(number, at)
        kind = frame["t"]
        if kind == "exec":
            self._work.append(frame)
        elif kind == "seg":
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
        elif kind == "stop":
            self._stopped = frame["n"]
        elif kind != "free":
            self._work.append(frame)

    def end(self):
        """Ends this process at once, with the whole process group: the server has ended, or has unloaded the model."""
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
            # A ctypes array, because every numpy array over the bytes keeps it alive, and it can have a finalizer: the
            # chunk is released when the last array is gone.
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
        return pb.InferenceResponse([self._tensor(t, True) for t in frame["o"]], parameters=frame.get("p"))

    def _encoded(self, tensor):
        """Describes a tensor for the server; copies it to shared memory unless it is there already."""
        if tensor._chunk is not None:
            number, at, skip, length = tensor._chunk
            return [tensor._name, tensor._type, tensor._shape, number, at, skip, length]
        if tensor._array is None:
            if tensor._view is None:
                raise pb.TritonModelException(
                    f"tensor '{tensor._name}' belongs to a request that has ended: its values are not available")
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
        dtype = array.dtype
        native = dtype.isnative
        # An array that is a view may be a view of shared memory, such as an input that the model returns.
        if native and array.base is not None and array.flags.c_contiguous:
            place = self._place(array, length)
            if place is not None:
                return [tensor._name, tensor._type, tensor._shape, *place, length]
        number, at, view = self._arena.take(length)
        pb._np().ndarray(array.shape, dtype if native else dtype.newbyteorder("="), view)[...] = array
        return [tensor._name, tensor._type, tensor._shape, number, at, 0, length]

    def _copied(self, data):
        if len(data) == 0:
            return 0, 0
        number, at, view = self._arena.take(len(data))
        view[:] = data
        return number, at

    def _place(self, array, length):
        """The server's chunk that contains these bytes: file, offset of the chunk, and distance from it; else None."""
        for tensors in list(self._open.values()):
            for tensor in tensors:
                # A comparison of objects first: numpy takes long to give the address of an array.
                if tensor._array is array and tensor._chunk is not None:
                    return tensor._chunk[:3]
        address = array.__array_interface__["data"][0]
        for number, segment in self._segments.items():
            if segment.address <= address < segment.address + segment.size:
                from_ = address - segment.address
                chunks = [t._chunk for tensors in list(self._open.values()) for t in tensors if t._chunk is not None]
                lent = [(*place, 0, size) for place, size in list(self._lent.items())]
                for n, at, _, size in chunks + lent:
                    if n == number and at <= from_ and from_ + length <= at + size:
                        return number, at, from_ - at
        return None

    def _answer(self, key, wanted, response):
        """Encodes a response: the requested outputs in the requested order."""
        if response is None:
            return {"k": key}
        if response._error is not None:
            return {"k": key, "e": [response._error.code(), response._error.message()]}
        kept = [t for t in response._tensors if t._name in wanted]
        if len(kept) > 1:
            kept.sort(key=lambda t: wanted.index(t._name))
        answer = {"k": key, "o": [self._encoded(t) for t in kept]}
        if response._parameters:
            answer["p"] = response._parameters
        return answer

    # calls of the model, made by triton_python_backend_utils

    def send(self, key, wanted, response, final):
        if key not in self._open:
            raise pb.TritonModelException("the request has ended: its final response has been sent")
        message = {"t": "resp", "z": final, **self._answer(key, wanted, response)}
        self.transmit(message)
        if final:
            self._close(key)

    def ownership(self, key):
        """What the sender of a request's response shares with the request; a decoupled model may answer at any time."""
        if self._decoupled:
            return None
        self.wakeable()
        ownership = Ownership()
        weakref.finalize(ownership, self._lost, key).atexit = False
        return ownership

    def _lost(self, key):
        if key in self._open:
            self._unanswered.append(key)
            self._wake()

    def ask(self, request):
        if not request._model:
            raise pb.TritonModelException("a request to another model needs its model_name")
        key = next(self._keys)
        correlation = request._correlation
        if isinstance(correlation, int) and correlation >= 1 << 63:
            # The server reads 64-bit numbers as signed.
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

            self._executor = concurrent.futures.ThreadPoolExecutor(64, "model-calls")
        return self._executor

    def _call(self, message):
        number = next(self._keys)
        message["n"] = number
        self.transmit(message)
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "e" in answer:
            raise pb.TritonModelException(answer["e"][1])
        return answer["v"]

    def cancelled(self, key):
        return self._call({"t": "cancelled", "k": key})

    def control(self, what, model, **more):
        return self._call({"t": "control", "op": what, "m": model, **more})

    def metric(self, what, **more):
        """Calls the server, which keeps the values of custom metrics."""
        return self._call({"t": "metric", "op": what, **more})

    def count(self, number, what, value):
        """Queues a metric update for the next frame; sends one at once if no request is being executed."""
        self._counted.append([number, what, value])
        if not self._busy:
            self.transmit({"t": "counted"})

    def log(self, level, message):
        self.transmit({"t": "log", "l": level, "m": message})

    # life cycle of the model

    def run(self):
        while True:
            self.wait(lambda: self._work)
            frame = self._work.popleft()
            kind = frame["t"]
            if kind == "exec":
                self._busy += 1
                self._begun[0] = frame["n"]
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
        """Imports the model, and runs its auto_complete_config if the server sent a configuration."""
        self._arena = Arena(self, frame["dirs"], frame["prefix"], frame["initial"], frame["growth"])
        number, at = frame["begun"]
        self._begun = self._segments[number].view[at : at + 4].cast("i")
        path = frame["file"]
        directory = frame["home"]
        self._directory = directory
        # At the end of the path, so that a file of the model cannot hide a module of the standard library.
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
        if os.path.dirname(path) != directory:
            # A file of this server that runs a model of another form.
            module.DIRECTORY = directory
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
        self._instance = frame["args"]["model_instance_name"]
        self._model = self._class()
        if hasattr(self._model, "initialize"):
            self._model.initialize(frame["args"])
        if callable(getattr(self._model, "is_ready", None)):
            return {"ready": self._is_ready()}
        return {}

    def _is_ready(self):
        """The result of the model's is_ready; a model whose is_ready fails is not ready."""
        try:
            result = self._model.is_ready()
            if inspect.iscoroutine(result):
                result = self._until_complete(result, None)
            if not isinstance(result, bool):
                raise pb.TritonModelException(f"is_ready returned {type(result).__name__} (expected: bool)")
            return result
        except BaseException as e:
            self.log(2, f"is_ready failed, so the model is not ready: {type(e).__name__}: {e}")
            return False

    def _fin(self, frame):
        if self._model is not None and hasattr(self._model, "finalize"):
            self._model.finalize()

    def _request(self, r):
        request = pb.InferenceRequest.__new__(pb.InferenceRequest)
        request._id = r.get("id", "")
        request._correlation = r.get("c", 0)
        request._outputs = r["o"]
        request._flags = r.get("g", 0)
        request._timeout = r.get("s", 0)
        request._parameters = r.get("p", {})
        request._key = key = r["k"]
        self._open[key] = request._inputs = [self._tensor(t, False) for t in r["i"]]
        return request

    def _close(self, key):
        """The request has ended: the server may reuse the memory of its inputs."""
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
                    self._end_run(frame["n"], {"t": "done"})
                    return
                result = self._until_complete(result, frame["n"])
            message = self._results(requests, result)
        except BaseException as e:
            self._end_run(frame["n"], self._failure(requests, e, "done"))
            self._close_all(requests)
            return
        self._end_run(frame["n"], message)
        for answer in message.get("r", ()):
            self._close(answer["k"])

    def _results(self, requests, result):
        """Validates what execute returned and encodes it."""
        again = [r._key for r in requests if r._release == pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE]
        message = {"t": "done"}
        if again:
            for key in again:
                self._close(key)
            message["again"] = again
        if self._decoupled:
            if result is not None:
                raise pb.TritonModelException(
                    "the model is decoupled: execute must return None and respond through response senders")
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

    def _failure(self, requests, e, kind):
        """The frame for requests that fail with an exception."""
        keys = [r._key for r in requests]
        if isinstance(e, Stopped):
            return {"t": kind, "e": str(e), "ks": keys}
        traceback.print_exception(type(e), e, self._own(e.__traceback__))
        sys.stderr.flush()
        where = ""
        for frame in traceback.extract_tb(e.__traceback__):
            if frame.filename.startswith(self._directory):
                where = f" ({os.path.basename(frame.filename)}:{frame.lineno})"
        text = f"Failed to process the request(s) for model instance '{self._instance}', message: {type(e).__name__}: {e}{where}"
        return {"t": kind, "e": text, "ks": keys}

    def _close_all(self, requests):
        for request in requests:
            self._close(request._key)

    def _event_loop(self):
        """The model's event loop. It runs in its own thread, so that tasks go on when execute has returned."""
        import asyncio

        if self._loop is None:
            self.wakeable()
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            threading.Thread(target=self._loop.run_forever, name="event loop", daemon=True).start()
        return self._loop

    def _until_complete(self, coroutine, run):
        """Runs a coroutine on the event loop; waits for its end, or until the clients of the run have gone."""
        import asyncio

        future = asyncio.run_coroutine_threadsafe(coroutine, self._event_loop())
        future.add_done_callback(self._completed)
        self.wait(lambda: future.done() or (run is not None and self._stopped == run))
        if not future.done():
            future.cancel()
            raise Stopped()
        return future.result()

    def _completed(self, _):
        with self._changed:
            self._changed.notify_all()
        self._wake()

    def _share(self, coroutine, requests):
        """Runs a decoupled model's coroutine on the event loop, so that execute can take the next requests."""
        import asyncio

        async def run():
            try:
                if await coroutine is not None:
                    raise pb.TritonModelException(
                        "the model is decoupled: execute must return None and respond through response senders")
            except BaseException as e:
                self.transmit(self._failure(requests, e, "late"))
                self._close_all(requests)

        asyncio.run_coroutine_threadsafe(run(), self._event_loop())

    @staticmethod
    def _own(trace):
        """The part of a trace without the leading frames of this worker and of importlib."""
        here = os.path.dirname(os.path.abspath(__file__))
        first = trace
        while first is not None and (
                os.path.dirname(os.path.abspath(first.tb_frame.f_code.co_filename)) == here
                or "importlib" in first.tb_frame.f_code.co_filename):
            first = first.tb_next
        return first

    def _reason(self, e):
        """Prints the trace and returns the error, in the first line, and the last lines of the trace, where it was raised."""
        lines = traceback.format_exception(type(e), e, self._own(e.__traceback__))
        sys.stderr.write("".join(lines))
        sys.stderr.flush()
        text = [line for block in lines for line in block.splitlines() if line.strip()]
        error = "".join(traceback.format_exception_only(type(e), e)).strip().splitlines()
        # What shows only the first line of a message shows the reason.
        return "\n".join([error[-1] if isinstance(e, SyntaxError) else error[0], *text[-8:]])


def _watch(fd, worker):
    """Waits until the pipe from the server closes, which happens when the server ends, and ends this process."""
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
    # The server decides when the worker ends. Handlers instead of SIG_IGN, which child processes would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.dont_write_bytecode = True
    # The server distinguishes them by their order.
    commands, messages, results = (socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(3))
    for connection in (commands, messages, results):
        connection.connect(sys.argv[1])
    worker = Worker(commands, messages, results)
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
