# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The module that Python models import as pb_utils: tensors, requests, responses, and requests to other models.

The names and their meaning are those of Triton's Python backend; the code is Nereid's. numpy is imported when a model
first accesses a tensor's values.
"""
import json
import struct
import sys

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

_SIZES = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8, "BYTES": -1,
}
_NUMPY_NAMES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
}
_WIRE_NAMES = {name: kind for kind, name in _NUMPY_NAMES.items()}
# Triton's data type numbers: the index in this list.
_NUMBERS = ["", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32",
            "FP64", "BYTES", "BF16"]

# The worker that runs the model; set by it before the model is imported.
_worker = None
_numpy = None
# What numpy computes anew for each call: the tensor type of a dtype, and the dtype of a tensor type.
_wire_types = {}
_dtypes = {}


def _np():
    global _numpy
    if _numpy is None:
        try:
            import numpy
        except ImportError as e:
            raise TritonModelException(
                f"numpy cannot be imported by {sys.executable}: {e}. Tensors are numpy arrays: install numpy for this "
                "interpreter, or name another one with --backend-config python,python=PATH or the model's parameter "
                "EXECUTION_ENV_PATH; Tensor.raw() and Tensor.of() do not need numpy"
            ) from None
        _numpy = numpy
    return _numpy


def _the_worker():
    if _worker is None:
        raise TritonModelException("this call works only in a model that runs in the server")
    return _worker


class TritonModelException(Exception):
    """An error in a model."""


def _text(value, what):
    """A text that may be given as bytes, such as an element of a string tensor."""
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8")
    if not isinstance(value, str):
        raise TritonModelException(f"{what} is a str or bytes, got {type(value).__name__}: {value!r}")
    return value


def _printed(value):
    """Any value as text; bytes are decoded."""
    return value.decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else str(value)


class TritonError:
    """The reason why a request failed: a message and one of the codes."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7

    def __init__(self, message, code=1):
        if not isinstance(code, int) or not 0 <= code <= 7:
            raise TritonModelException(f"unknown TritonError code: {code!r} (expected: one of its constants)")
        self._message = _printed(message)
        self._code = code

    def message(self):
        return self._message

    def code(self):
        return self._code

    def __repr__(self):
        return f"TritonError({self._message!r}, {self._code})"


def _wire_type(name):
    """The type's name in the protocols, such as FP32 for 'TYPE_FP32', 'FP32' and 11."""
    if isinstance(name, int) and 0 < name < len(_NUMBERS):
        return _NUMBERS[name]
    text = str(name)
    text = text[5:] if text.startswith("TYPE_") else text
    text = "BYTES" if text == "STRING" else text
    if text not in _SIZES:
        raise TritonModelException(f"unknown tensor type: {name!r} (expected: such as TYPE_FP32)")
    return text


def _to_bytes_elements(array):
    """Encodes an array of strings: each as 4 bytes of length and its bytes."""
    parts = []
    for element in array.reshape(-1).tolist():
        if isinstance(element, (bytes, bytearray)):
            part = bytes(element)
        else:
            part = str(element).encode("utf-8")
        parts.append(struct.pack("<I", len(part)))
        parts.append(part)
    return b"".join(parts)


def _from_bytes_elements(view):
    data = bytes(view)
    elements = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        elements.append(data[at : at + length])
        at += length
    return elements


def serialize_byte_tensor(input_tensor):
    """Encodes an array of strings, each with its length before it; None for an array of another type."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    return _to_bytes_elements(input_tensor)


def deserialize_bytes_tensor(encoded_tensor):
    """Decodes what serialize_byte_tensor encodes, to an array of one dimension."""
    np = _np()
    elements = _from_bytes_elements(encoded_tensor)
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array


class Tensor:
    """A named array. Tensors of requests and of other models' responses are in memory that the server shares."""

    __slots__ = ("_name", "_type", "_shape", "_view", "_array", "_chunk")

    def __init__(self, name, array):
        if type(name) is not str:
            name = _text(name, "a tensor's name")
        np = _numpy or _np()
        if not isinstance(array, np.ndarray):
            if not isinstance(array, np.generic):
                raise TritonModelException(
                    f"tensor '{name}' needs a numpy array, got {type(array).__name__}")
            array = np.asarray(array)
        wire = _wire_types.get(array.dtype)
        if wire is None:
            wire = self._wire_type_of(name, array.dtype)
            # Strings of each length have a dtype of their own.
            if wire != "BYTES":
                _wire_types[array.dtype] = wire
        self._name = name
        self._type = wire
        self._shape = array.shape
        self._array = array
        self._view = None
        self._chunk = None

    @staticmethod
    def _wire_type_of(name, dtype):
        if dtype.kind in "OSU":
            return "BYTES"
        wire = "BF16" if dtype.name == "bfloat16" else _WIRE_NAMES.get(dtype.name)
        if wire is None:
            raise TritonModelException(f"tensor '{name}' has numpy type {dtype}, which is not a tensor type")
        return wire

    @classmethod
    def of(cls, name, data_type, shape, data):
        """Makes a tensor of encoded bytes (little-endian, row-major; strings with 4 bytes of length), without numpy."""
        wire = _wire_type(data_type)
        view = memoryview(data).cast("B")
        elements = 1
        for dim in shape:
            elements *= dim
        if _SIZES[wire] > 0 and elements * _SIZES[wire] != len(view):
            raise TritonModelException(
                f"tensor '{name}' of shape {list(shape)} takes {elements * _SIZES[wire]} bytes, got {len(view)}")
        return cls._over(_text(name, "a tensor's name"), wire, tuple(shape), view, None)

    @classmethod
    def _over(cls, name, wire, shape, view, chunk):
        self = cls.__new__(cls)
        self._name = name
        self._type = wire
        self._shape = shape
        self._view = view
        self._array = None
        self._chunk = chunk
        return self

    def name(self):
        return self._name

    def shape(self):
        return list(self._shape)

    def triton_dtype(self):
        return _NUMBERS.index(self._type)

    def data_type(self):
        """The type's name, such as FP32."""
        return self._type

    def is_cpu(self):
        return True

    def raw(self):
        """The encoded bytes of the values; for a tensor of a request, numpy is not needed."""
        if self._view is not None:
            return self._view
        return memoryview(self._bytes())

    def as_numpy(self):
        if self._array is None:
            np = _numpy or _np()
            if self._view is None:
                raise TritonModelException(
                    f"tensor '{self._name}' belongs to a request that has ended: its values are not available")
            if self._type == "BYTES":
                flat = deserialize_bytes_tensor(self._view)
                self._array = flat.reshape(self._shape)
            else:
                dtype = _dtypes.get(self._type)
                if dtype is None:
                    dtype = _dtypes[self._type] = self._dtype()
                # The array keeps the view alive, and with it the memory of another model's response.
                self._array = np.ndarray(self._shape, dtype, self._view)
        return self._array

    def _dtype(self):
        np = _np()
        name = _NUMPY_NAMES.get(self._type)
        if name is None:
            try:
                import ml_dtypes
            except ImportError:
                raise TritonModelException(
                    f"tensor '{self._name}' is BF16, which numpy does not have: install ml_dtypes, or use raw()"
                ) from None
            name = ml_dtypes.bfloat16
        return np.dtype(name)

    def _bytes(self):
        if self._type == "BYTES":
            return _to_bytes_elements(self._array)
        return self._array.tobytes()

    def to_dlpack(self):
        return self.as_numpy().__dlpack__()

    def __dlpack__(self, *, stream=None, **others):
        return self.as_numpy().__dlpack__()

    def __dlpack_device__(self):
        return self.as_numpy().__dlpack_device__()

    @staticmethod
    def from_dlpack(name, tensor):
        np = _np()
        if hasattr(tensor, "__dlpack__"):
            return Tensor(name, np.from_dlpack(tensor))

        class Capsule:
            def __dlpack__(self, **others):
                return tensor

            def __dlpack_device__(self):
                return (1, 0)

        return Tensor(name, np.from_dlpack(Capsule()))

    def __repr__(self):
        return f"Tensor({self._name!r}, {self._type}, {list(self._shape)})"


class InferenceTrace:
    """Whether a request is traced; the trace itself stays with the server."""

    def get_context(self):
        return None


TRITONSERVER_MEMORY_CPU = 0
TRITONSERVER_MEMORY_GPU = 2


class PreferredMemory:
    """The preferred memory of response tensors. They are always in CPU memory."""

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


def _parameters(parameters, whose):
    if parameters is None:
        return {}
    if isinstance(parameters, str):
        parameters = json.loads(parameters)
    if not isinstance(parameters, dict):
        raise TritonModelException(f"the parameters of a {whose} are a dictionary, got {type(parameters).__name__}")
    for key, value in parameters.items():
        if not isinstance(key, str) or not isinstance(value, (bool, int, float, str)):
            raise TritonModelException(
                f"parameter {key!r} of a {whose} is {value!r} (expected: a bool, int, float or str under a str)")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise TritonModelException(f"parameter {key!r} of a {whose} is {value} (expected: a number of 64 bits)")
    return parameters


def _tensors(tensors, whose):
    tensors = list(tensors)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TritonModelException(f"a {whose} holds tensors, got {type(tensor).__name__}")
    return tensors


class InferenceRequest:
    """A request to this model, or one that this model sends to another model."""

    # What is the same in the requests to this model.
    _model = ""
    _version = -1
    _release = TRITONSERVER_REQUEST_RELEASE_ALL
    _sender = None
    _ownership = None

    def __init__(self, request_id="", correlation_id=0, inputs=(), requested_output_names=(), model_name="",
                 model_version=-1, flags=0, timeout=0, preferred_memory=None, trace=None, parameters=None):
        if isinstance(correlation_id, bool) or not isinstance(correlation_id, (int, str)):
            raise TritonModelException(f"a correlation id is an int or a str, got {correlation_id!r}")
        if isinstance(correlation_id, int) and not 0 <= correlation_id < 1 << 64:
            raise TritonModelException(f"a correlation id is a str or an unsigned 64-bit int, got {correlation_id}")
        if isinstance(requested_output_names, (str, bytes, bytearray)):
            raise TritonModelException(
                f"requested_output_names is a list of names, got {requested_output_names!r}")
        self._id = _text(request_id, "a request id")
        self._correlation = correlation_id
        self._inputs = _tensors(inputs, "request")
        self._outputs = [_text(name, "the name of a requested output") for name in requested_output_names]
        self._model = _text(model_name, "a model's name")
        self._version = int(model_version)
        self._flags = int(flags)
        self._timeout = int(timeout)
        self._parameters = _parameters(parameters, "request")
        self._key = None

    def inputs(self):
        return self._inputs

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation

    def requested_output_names(self):
        return self._outputs

    def model_name(self):
        return self._model

    def parameters(self):
        return json.dumps(self._parameters)

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        self._flags = flags

    def timeout(self):
        return self._timeout

    def trace(self):
        return InferenceTrace()

    def preferred_memory(self):
        return PreferredMemory(TRITONSERVER_MEMORY_CPU)

    def is_cancelled(self):
        return self._key is not None and _the_worker().cancelled(self._key)

    def get_response_sender(self):
        if self._key is None:
            raise TritonModelException("only requests to this model have a response sender")
        if self._sender is None:
            self._ownership = _the_worker().ownership(self._key)
            self._sender = InferenceResponseSender(self)
        return self._sender

    def set_release_flags(self, flags):
        if flags not in (TRITONSERVER_REQUEST_RELEASE_ALL, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE):
            raise TritonModelException(f"unknown release flags: {flags!r}")
        self._release = flags

    def exec(self, decoupled=False):
        """Sends the request and waits for the response; if decoupled, returns an iterator of responses at once."""
        answers = _the_worker().ask(self)
        return answers if decoupled else answers.single()

    def async_exec(self, decoupled=False):
        """Sends the request and returns a future of the response; if decoupled, of an iterator of responses."""
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            answers = _the_worker().ask(self)
        except TritonModelException as e:
            failed = loop.create_future()
            failed.set_exception(e)
            return failed
        return loop.run_in_executor(_the_worker().executor(), answers.begun if decoupled else answers.single)


class InferenceResponse:
    """A response: tensors, or an error."""

    __slots__ = ("_tensors", "_error", "_parameters")

    def __init__(self, output_tensors=(), error=None, parameters=None):
        if error is not None and not isinstance(error, TritonError):
            raise TritonModelException(f"error must be a TritonError, got {type(error).__name__}")
        self._tensors = _tensors(output_tensors, "response")
        self._error = error
        self._parameters = {} if parameters is None else _parameters(parameters, "response")

    def output_tensors(self):
        return self._tensors

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return json.dumps(self._parameters)


class InferenceResponseSender:
    """Sends the responses to one request, from any thread."""

    def __init__(self, request):
        self._request_key = request._key
        self._ownership = request._ownership
        self._wanted = request._outputs
        self._closed = False

    def send(self, response=None, flags=0):
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException(
                f"unknown response flags: {flags!r} (expected: 0 or TRITONSERVER_RESPONSE_COMPLETE_FINAL)")
        if response is None and flags == 0:
            raise TritonModelException(
                "nothing to send: pass a response, or the flag TRITONSERVER_RESPONSE_COMPLETE_FINAL")
        if response is not None and not isinstance(response, InferenceResponse):
            raise TritonModelException(f"response must be an InferenceResponse, got {type(response).__name__}")
        if self._closed:
            raise TritonModelException("the final response to this request has been sent already")
        final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        _the_worker().send(self._request_key, self._wanted, response, final)
        if final:
            self._closed = True

    def is_cancelled(self):
        return _the_worker().cancelled(self._request_key)


def get_input_tensor_by_name(inference_request, name):
    """Returns the input of this name, or None."""
    for tensor in inference_request.inputs():
        if tensor.name() == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response, name):
    """Returns the output of this name, or None."""
    for tensor in inference_response.output_tensors():
        if tensor.name() == name:
            return tensor
    return None


def _named(members, name):
    for member in members:
        if member["name"] == name:
            return member
    return None


def get_input_config_by_name(model_config, name):
    """Returns the configuration of an input, or None."""
    return _named(model_config.get("input", ()), name)


def get_output_config_by_name(model_config, name):
    """Returns the configuration of an output, or None."""
    return _named(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config):
    """Whether a request may have any number of responses."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def triton_to_numpy_type(data_type):
    """The numpy type for Triton's data type number."""
    np = _np()
    wire = _wire_type(data_type)
    return np.object_ if wire == "BYTES" else np.bool_ if wire == "BOOL" else getattr(np, _NUMPY_NAMES[wire])


def numpy_to_triton_type(data_type):
    """Triton's data type number for a numpy type."""
    np = _np()
    dtype = np.dtype(data_type)
    return _NUMBERS.index("BYTES" if dtype.kind in "OSU" else _WIRE_NAMES[dtype.name])


def triton_string_to_numpy(triton_type_string):
    """The numpy type for a type name in a configuration, such as TYPE_FP32."""
    np = _np()
    wire = _wire_type(triton_type_string)
    return np.object_ if wire == "BYTES" else bool if wire == "BOOL" else getattr(np, _NUMPY_NAMES[wire])


class ModelConfig:
    """The model configuration that auto_complete_config completes."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config) if isinstance(model_config, str) else model_config

    def as_dict(self):
        return self._model_config

    def _name(self):
        return self._model_config.get("name", "")

    def set_max_batch_size(self, max_batch_size):
        given = self._model_config.get("max_batch_size", 0)
        if given > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {given}, but in auto-complete-config function for model "
                f"'{self._name()}' specified max_batch_size {max_batch_size}")
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{other}', but auto-complete-config function for "
                    f"model '{self._name()}' tries to set scheduling_choice as 'dynamic_batching'")
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input):
        self._add("input", input, ("name", "data_type", "dims", "optional"))

    def add_output(self, output):
        self._add("output", output, ("name", "data_type", "dims"))

    def _add(self, side, spec, allowed):
        where = f"in auto-complete-config function for model '{self._name()}'"
        for needed in ("name", "data_type", "dims"):
            if needed not in spec:
                who = side if needed == "name" else f"{side} '{spec['name']}'"
                raise ValueError(f"{who} {where} is missing '{needed}' property.")
        for key in spec:
            if key not in allowed:
                listed = ", ".join(f"'{a}'" for a in allowed[:-1]) + f" and '{allowed[-1]}'"
                raise ValueError(f"{side} '{spec['name']}' {where} contains property other than {listed}.")
        known = self._model_config.setdefault(side, [])
        for given in known:
            if given["name"] != spec["name"]:
                continue
            if given.get("data_type", "TYPE_INVALID") not in ("TYPE_INVALID", spec["data_type"]):
                raise ValueError(
                    f"unable to load model '{self._name()}', configuration expects datatype {given['data_type']} for "
                    f"{side} '{spec['name']}', model provides {spec['data_type']}")
            if given.get("dims") and list(given["dims"]) != list(spec["dims"]):
                raise ValueError(
                    f"model '{self._name()}', tensor '{spec['name']}': the model expects dims {list(spec['dims'])} but "
                    f"the model configuration specifies dims {list(given['dims'])}")
            # The document has every field, so "optional": false does not show that the user set it.
            if "optional" in spec and given.get("optional") and not spec["optional"]:
                raise ValueError(
                    f"model '{self._name()}', tensor '{spec['name']}': the model expects optional {spec['optional']} "
                    f"but the model configuration specifies optional {given['optional']}")
            given.update(spec)
            return
        known.append(dict(spec))

    def set_model_transaction_policy(self, transaction_policy_dict):
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(
                    f"model transaction property in auto-complete-config function for model '{self._name()}' contains "
                    "property other than 'decoupled'.")
        if "decoupled" in transaction_policy_dict:
            policy = self._model_config.setdefault("model_transaction_policy", {})
            wanted = transaction_policy_dict["decoupled"]
            if policy.setdefault("decoupled", wanted) != wanted:
                raise ValueError(
                    f"trying to change decoupled property in auto-complete-config for model '{self._name()}', which is "
                    f"already set to '{policy['decoupled']}'.")


class Logger:
    """The server's log."""

    VERBOSE = 0
    INFO = 1
    WARNING = 2
    ERROR = 3

    class LogLevel:
        VERBOSE = 0
        INFO = 1
        WARNING = 2
        ERROR = 3

    @staticmethod
    def log(message, level=1):
        if _worker is None:
            print(message, file=sys.stderr)
        else:
            _worker.log(int(level), _printed(message))

    @staticmethod
    def log_verbose(message):
        Logger.log(message, 0)

    @staticmethod
    def log_info(message):
        Logger.log(message, 1)

    @staticmethod
    def log_warn(message):
        Logger.log(message, 2)

    @staticmethod
    def log_error(message):
        Logger.log(message, 3)


class Metric:
    """A metric of a family with its labels; made with MetricFamily.Metric."""

    def __init__(self, family, labels, buckets):
        self._family = family
        self._kind = family._kind
        self._number = int(_the_worker().metric(
            "metric", name=family._name, labels={
                _printed(k): _printed(v) for k, v in (labels or {}).items()},
            buckets=[float(b) for b in (buckets or ())]))

    def _count(self, what, value, kinds):
        value = float(value)
        if self._kind not in kinds:
            names = ("COUNTER", "GAUGE", "HISTOGRAM")
            raise TritonModelException(f"metric '{self._family._name}' is a {names[self._kind]}, which has no {what}")
        if value != value or value in (float("inf"), float("-inf")):
            raise TritonModelException(f"metric '{self._family._name}' cannot become {value}")
        if self._kind == MetricFamily.COUNTER and value < 0:
            raise TritonModelException(f"metric '{self._family._name}' is a COUNTER, which only grows (by {value})")
        _the_worker().count(self._number, what, value)

    def increment(self, value):
        """Adds a value to a counter or a gauge; a counter cannot decrease."""
        self._count("increment", value, (MetricFamily.COUNTER, MetricFamily.GAUGE))

    def set(self, value):
        """Sets a gauge."""
        self._count("set", value, (MetricFamily.GAUGE,))

    def observe(self, value):
        """Adds an observation to a histogram."""
        self._count("observe", value, (MetricFamily.HISTOGRAM,))

    def value(self):
        """The current value, over all instances of the model."""
        if self._kind == MetricFamily.HISTOGRAM:
            raise TritonModelException(f"metric '{self._family._name}' is a HISTOGRAM, which has no single value")
        return float(_the_worker().metric("value", i=self._number))


class MetricFamily:
    """A metric name with its metrics, in the server's /metrics as long as the model is loaded."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2

    def __init__(self, name, description, kind):
        self._name = _text(name, "the name of a metric")
        self._kind = int(kind)
        _the_worker().metric(
            "family", name=self._name, help=_printed(description), kind=self._kind)

    def Metric(self, labels=None, buckets=None):
        return Metric(self, labels, buckets)


def load_model(model_name, config="", files=None):
    """Loads a model in the server."""
    encoded = {}
    for key, content in (files or {}).items():
        import base64

        encoded[_text(key, "the path of a model's file")] = base64.b64encode(content).decode("ascii")
    _the_worker().control(
        "load", _text(model_name, "a model's name"), config=_text(config, "a model's configuration"), files=encoded)


def unload_model(model_name, unload_dependents=False):
    """Unloads a model from the server."""
    _the_worker().control("unload", _text(model_name, "a model's name"), dependents=bool(unload_dependents))


def is_model_ready(model_name, model_version=""):
    """Whether a model, or the given version of it, is ready."""
    version = str(model_version) if isinstance(model_version, int) else _text(model_version, "a model's version")
    return bool(_the_worker().control("ready", _text(model_name, "a model's name"), version=version))
