# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A client of Open Inference V2 over HTTP without dependencies. Its methods have the names and the arguments of
``tritonclient.http.InferenceServerClient``. Inputs are nested lists or NumPy arrays; results are NumPy arrays where NumPy is
installed, else nested lists.
"""

import json
import struct
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

_OF_NUMPY = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip
_TO_NUMPY = {wire: name for name, wire in _OF_NUMPY.items()}


class InferenceServerException(Exception):
    """A request that the server refused. ``status`` is the HTTP status; 0 when there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    def message(self) -> str:
        return str(self.args[0])


class Client:
    """A client of one server. Holds no connection; may be used by several threads."""

    def __init__(self, url: str, timeout: float = 60, headers: Optional[Mapping[str, str]] = None) -> None:
        """
        ``url``: such as ``http://127.0.0.1:8000``; ``localhost:8000`` is short for it.

        ``headers``: sent with each request, such as ``{"Authorization": "Bearer KEY"}``.
        """
        self.url = (url if "://" in url else "http://" + url).rstrip("/")
        self.timeout = timeout
        self.headers = dict(headers or {})

    # ---- the server and its models ----

    def is_server_live(self) -> bool:
        return self._is("v2/health/live")

    def is_server_ready(self) -> bool:
        return self._is("v2/health/ready")

    def is_model_ready(self, model_name: str, model_version: str = "") -> bool:
        return self._is(_model(model_name, model_version) + "/ready")

    def get_server_metadata(self) -> Dict[str, Any]:
        return self._json("v2")

    def get_model_metadata(self, model_name: str, model_version: str = "") -> Dict[str, Any]:
        return self._json(_model(model_name, model_version))

    def get_model_config(self, model_name: str, model_version: str = "") -> Dict[str, Any]:
        return self._json(_model(model_name, model_version) + "/config")

    def get_inference_statistics(self, model_name: str = "", model_version: str = "") -> Dict[str, Any]:
        return self._json((_model(model_name, model_version) if model_name else "v2/models") + "/stats")

    def get_model_repository_index(self) -> List[Dict[str, Any]]:
        return self._json("v2/repository/index", b"{}")

    def load_model(self, model_name: str) -> None:
        self._request(f"v2/repository/models/{_quoted(model_name)}/load", b"{}")

    def unload_model(self, model_name: str) -> None:
        self._request(f"v2/repository/models/{_quoted(model_name)}/unload", b"{}")

    # ---- inference ----

    def infer(
        self,
        model_name: str,
        inputs: Mapping[str, Any],
        model_version: str = "",
        outputs: Optional[Sequence[str]] = None,
        request_id: str = "",
        parameters: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Dict[str, Any]:
        """
        Asks a model, and returns its outputs by name.

        ``inputs``: values by the names of the model's inputs. An array of NumPy keeps its type; other values get the type that
        the model declares, for which its metadata is read first.

        Raises ``InferenceServerException`` for what the server refuses, and ``ValueError`` for rows of different lengths.
        """
        types: Dict[str, str] = {}
        if any(not _is_array(value) for value in inputs.values()):
            declared = self.get_model_metadata(model_name, model_version)["inputs"]
            types = {each["name"]: each["datatype"] for each in declared}
        request: Dict[str, Any] = {"inputs": []}
        binary: List[bytes] = []
        for name, value in inputs.items():
            if _is_array(value):
                tensor, data = _of_array(name, value)
                if data is not None:
                    binary.append(data)
            else:
                tensor = {"name": name, "shape": _shape(value), "datatype": types.get(name, "FP32"), "data": _flat(value)}
            request["inputs"].append(tensor)
        if request_id:
            request["id"] = request_id
        if parameters:
            request["parameters"] = dict(parameters)
        binary_wanted = numpy is not None
        if outputs is not None:
            request["outputs"] = [{"name": name, "parameters": {"binary_data": binary_wanted}} for name in outputs]
        elif binary_wanted:
            request.setdefault("parameters", {})["binary_data_output"] = True
        head = json.dumps(request).encode()
        body, headers = self._request(
            _model(model_name, model_version) + "/infer",
            b"".join([head, *binary]),
            {"Inference-Header-Content-Length": str(len(head))} if binary else {},
            timeout,
        )
        return _outputs(body, headers.get("Inference-Header-Content-Length"))

    # ---- HTTP ----

    def _is(self, path: str) -> bool:
        try:
            self._request(path)
            return True
        except InferenceServerException as error:
            if error.status == 0:
                raise
            return False

    def _json(self, path: str, body: Optional[bytes] = None) -> Any:
        return json.loads(self._request(path, body)[0] or b"{}")

    def _request(
        self,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> Tuple[bytes, Mapping[str, str]]:
        sent = {"Content-Type": "application/json", **self.headers, **(headers or {})}
        request = urllib.request.Request(f"{self.url}/{path}", body, sent)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout if timeout is None else timeout) as response:
                return response.read(), response.headers
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                text = json.loads(text)["error"]
            except (ValueError, KeyError, TypeError):
                pass
            raise InferenceServerException(text or str(error), error.code) from None
        except (urllib.error.URLError, OSError) as error:
            raise InferenceServerException(f"{self.url} did not answer: {getattr(error, 'reason', error)}") from error


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _model(name: str, version: str) -> str:
    return f"v2/models/{_quoted(name)}" + (f"/versions/{_quoted(str(version))}" if version else "")


def _is_array(value: Any) -> bool:
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _of_array(name: str, value: Any) -> Tuple[Dict[str, Any], Optional[bytes]]:
    array = numpy.asarray(value)
    tensor: Dict[str, Any] = {"name": name, "shape": list(array.shape)}
    if array.dtype.kind in "OSU":
        tensor["datatype"] = "BYTES"
        elements = [e if isinstance(e, bytes) else str(e).encode() for e in array.reshape(-1).tolist()]
        data = b"".join(struct.pack("<I", len(e)) + e for e in elements)
    else:
        if array.dtype.name not in _OF_NUMPY:
            raise ValueError(f"input '{name}' is an array of {array.dtype} (expected: {', '.join(_OF_NUMPY)}, or texts)")
        tensor["datatype"] = _OF_NUMPY[array.dtype.name]
        data = numpy.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    tensor["parameters"] = {"binary_data_size": len(data)}
    return tensor, data


def _shape(value: Any) -> List[int]:
    shape: List[int] = []
    while isinstance(value, (list, tuple)):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return shape


def _flat(value: Any) -> List[Any]:
    """The elements in row-major order."""

    def walk(part: Any, shape: List[int], to: List[Any]) -> None:
        if not shape:
            if isinstance(part, (list, tuple)):
                raise ValueError("a value is a list among single values (expected: rows of one length)")
            to.append(part.decode() if isinstance(part, bytes) else part)
            return
        if not isinstance(part, (list, tuple)) or len(part) != shape[0]:
            raise ValueError(f"rows have different lengths (expected: {shape[0]} in each)")
        for each in part:
            walk(each, shape[1:], to)

    elements: List[Any] = []
    walk(value, _shape(value), elements)
    return elements


def _outputs(body: bytes, head_length: Optional[str]) -> Dict[str, Any]:
    length = len(body) if head_length is None else int(head_length)
    response = json.loads(body[:length])
    at = length
    results: Dict[str, Any] = {}
    for output in response.get("outputs", []):
        shape, kind = output["shape"], output["datatype"]
        size = output.get("parameters", {}).get("binary_data_size")
        if size is not None:
            data = body[at : at + size]
            at += size
            results[output["name"]] = _of_bytes(data, kind, shape)
        elif numpy is not None and kind in _TO_NUMPY:
            results[output["name"]] = numpy.array(output["data"], dtype=_TO_NUMPY[kind]).reshape(shape)
        elif numpy is not None:
            results[output["name"]] = numpy.array(output["data"], dtype=object).reshape(shape)
        else:
            results[output["name"]] = _nested(output["data"], shape)
    return results


def _of_bytes(data: bytes, kind: str, shape: List[int]) -> Any:
    if kind in _TO_NUMPY:
        return numpy.frombuffer(data, dtype=numpy.dtype(_TO_NUMPY[kind]).newbyteorder("<")).reshape(shape)
    if kind == "BF16":
        wide = numpy.frombuffer(data, dtype="<u2").astype("<u4") << 16
        return wide.view("<f4").reshape(shape)
    elements, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        elements.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    array = numpy.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape)


def _nested(flat: List[Any], shape: List[int]) -> Any:
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0] if shape[0] else 0
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
