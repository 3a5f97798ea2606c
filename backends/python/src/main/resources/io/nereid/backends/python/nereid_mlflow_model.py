# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a directory that MLflow saved: loads it with mlflow.pyfunc, and converts between tensors and what its predict takes.

The signature decides the inputs and outputs. Columns of a signature are one-dimensional tensors, and predict gets a
pandas.DataFrame of them; tensors of a signature are passed as arrays. A model without a signature takes one matrix, unless its
configuration names other inputs. Values that tensors cannot hold (objects, maps) are texts of JSON.

The worker sets DIRECTORY, the directory with the file MLmodel, before it runs this file.
"""
import datetime
import json

import mlflow.pyfunc
import numpy as np
import pandas
import triton_python_backend_utils as pb_utils
from mlflow.exceptions import MlflowException
from mlflow.models import Model

DIRECTORY = globals().get("DIRECTORY")

_COLUMNS = {
    "boolean": "TYPE_BOOL",
    "integer": "TYPE_INT32",
    "long": "TYPE_INT64",
    "float": "TYPE_FP32",
    "double": "TYPE_FP64",
    "string": "TYPE_STRING",
    "binary": "TYPE_STRING",
    "datetime": "TYPE_STRING",
}
# The parameter with the names of a matrix's columns; in a configuration separated by commas, in a request a list in JSON.
_NAMES = "feature_names"
# The parameter of requests of MLflow's own protocol, whose responses tell the names of a data frame's columns.
_SCORING = "mlflow_scoring"


class _Field:
    """An input or output of the signature.

    kind: for a column, its type in MLflow, 'array' with the type of its elements as `element`, or 'json'; else 'tensor'.
    """

    def __init__(self, name, kind, data_type, dims, required=True, element=""):
        self.name = name
        self.kind = kind
        self.data_type = data_type
        self.dims = dims
        self.required = required
        self.element = element


def _tensor_type(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "OSU":
        return "TYPE_STRING"
    if dtype.kind == "b":
        return "TYPE_BOOL"
    return {"i": "TYPE_INT", "u": "TYPE_UINT", "f": "TYPE_FP"}[dtype.kind] + str(8 * dtype.itemsize)


def _field(spec, name):
    if hasattr(spec, "shape"):
        return _Field(name, "tensor", _tensor_type(spec.type), [int(d) for d in spec.shape])
    required = getattr(spec, "required", True)
    kind, depth = spec.type, 0
    while hasattr(kind, "dtype"):
        kind, depth = kind.dtype, depth + 1
    plain = getattr(kind, "name", None)
    if plain not in _COLUMNS:
        return _Field(name, "json", "TYPE_STRING", [-1], required)
    if depth:
        return _Field(name, "array", _COLUMNS[plain], [-1] * (1 + depth), required, plain)
    return _Field(name, plain, _COLUMNS[plain], [-1], required)


def _fields(schema, otherwise):
    """The fields of a schema; the unnamed ones are called `otherwise`, with their number where there are several."""
    if schema is None:
        return []
    specs = list(schema)
    only = otherwise if len(specs) == 1 else None
    return [
        _field(s, str(s.name) if s.name is not None else only or f"{otherwise.split('-')[0]}-{i}")
        for i, s in enumerate(specs)
    ]


def _signature():
    """The inputs and outputs that a configuration gets."""
    meta = Model.load(DIRECTORY)
    inputs = _fields(meta.get_input_schema(), "input-0")
    outputs = _fields(meta.get_output_schema(), "predict")
    unnamed = meta.get_output_schema() is not None and not meta.get_output_schema().has_input_names()
    if unnamed and len(outputs) > 1:
        # Columns without names: the rows of a matrix.
        outputs = [_Field("predict", "tensor", outputs[0].data_type, [-1, len(outputs)])]
    return (
        inputs or [_Field("input-0", "tensor", "TYPE_FP64", [-1, -1])],
        outputs or [_Field("predict", "tensor", "TYPE_FP64", [-1])],
    )


def _texts(array):
    """An array of strings, decoded."""
    flat = np.empty(array.size, dtype=object)
    for i, value in enumerate(array.reshape(-1).tolist()):
        flat[i] = value.decode("utf-8") if isinstance(value, bytes) else value
    return flat.reshape(array.shape)


class _Refused(Exception):
    """A request that does not fit the model."""


def _rows(name, array, kind, element):
    """A column's values, as pandas takes them."""
    if array.ndim == 0:
        array = array.reshape(1)
    if kind == "array":
        if element == "string":
            array = _texts(array)
        return [row.tolist() if row.dtype == object else row.copy() for row in array]
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise _Refused(f"column '{name}' has the shape {list(array.shape)} (expected: one value for each row)")
    if kind == "binary":
        return array.copy()
    if array.dtype != object:
        return array.copy()
    array = _texts(array)
    if kind == "datetime":
        return pandas.to_datetime(pandas.Series([v or None for v in array.tolist()]), format="ISO8601")
    if kind == "json":
        try:
            return [json.loads(v) for v in array.tolist()]
        except ValueError as e:
            raise _Refused(f"column '{name}' holds objects, and a value of it is not JSON: {e}") from None
    return array


def _jsonable(value):
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (pandas.Timestamp, datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return str(value)


def _text(value):
    """A value as the text of a string tensor; a missing one is empty."""
    if isinstance(value, (str, bytes)):
        return value
    if value is None or value is pandas.NaT or value is pandas.NA or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (pandas.Timestamp, datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    return json.dumps(value, default=_jsonable, ensure_ascii=False)


def _array(name, values):
    """Any array-like as an array whose type a tensor can have."""
    if isinstance(values, (pandas.Series, pandas.Index)):
        if isinstance(values.dtype, pandas.CategoricalDtype):
            values = values.astype(values.dtype.categories.dtype) if not values.isna().any() else values.astype(object)
        if pandas.api.types.is_bool_dtype(values.dtype) and not values.isna().any():
            values = values.to_numpy(dtype=bool)
        elif pandas.api.types.is_integer_dtype(values.dtype) and not values.isna().any():
            values = values.to_numpy(dtype=getattr(values.dtype, "numpy_dtype", values.dtype))
        elif pandas.api.types.is_numeric_dtype(values.dtype) and values.dtype.kind != "c":
            values = values.to_numpy(dtype=getattr(values.dtype, "numpy_dtype", values.dtype) if values.dtype.kind == "f"
                                     else np.float64, na_value=np.nan)
        elif isinstance(values.dtype, pandas.DatetimeTZDtype) or values.dtype.kind in "mM":
            values = values.to_numpy(dtype=object)
        else:
            values = values.to_numpy(dtype=object)
    if hasattr(values, "toarray"):
        values = values.toarray()
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if isinstance(values, (list, tuple)) and any(isinstance(v, (dict, list, tuple, np.ndarray)) for v in values):
        try:
            array = np.asarray(values)
        except ValueError:
            # Lists of several lengths.
            array = None
        if array is None or array.dtype == object:
            array = np.empty(len(values), dtype=object)
            array[:] = [_text(v) for v in values]
            return array
    else:
        array = np.asarray(values)
        if array.dtype.kind == "U" and isinstance(values, (list, tuple)) and not all(isinstance(v, str) for v in values):
            array = np.array(values, dtype=object)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.dtype.kind in "mM":
        return np.datetime_as_string(array).astype(object) if array.dtype.kind == "M" else array.astype(str).astype(object)
    if array.dtype.kind in "US":
        return array.astype(object)
    if array.dtype == np.longdouble:
        return array.astype(np.float64)
    if array.dtype == object:
        flat = array.reshape(-1).tolist()
        if flat and all(isinstance(v, (bool, np.bool_)) for v in flat):
            return array.astype(bool)
        numbers = [v for v in flat if not (v is None or v is pandas.NA)]
        if numbers and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in numbers):
            whole = len(numbers) == len(flat) and all(isinstance(v, (int, np.integer)) for v in numbers)
            made = np.array([np.nan if v is None or v is pandas.NA else v for v in flat], np.int64 if whole else np.float64)
            return made.reshape(array.shape)
        made = np.empty(len(flat), dtype=object)
        made[:] = [_text(v) for v in flat]
        return made.reshape(array.shape)
    if array.dtype.kind == "c":
        raise pb_utils.TritonModelException(f"output '{name}' has the type {array.dtype}, which is not a tensor type")
    return array


def _frame(frame, names):
    columns = {str(c): frame[c] for c in frame.columns}
    if all(n in columns for n in names):
        return [(n, columns[n]) for n in names]
    if len(names) != 1:
        raise pb_utils.TritonModelException(
            f"predict returned the columns {list(columns)} (expected: {names}, as in the model's signature)")
    if len(columns) == 1:
        return [(names[0], next(iter(columns.values())))]
    arrays = [_array(n, v) for n, v in columns.items()]
    if any(a.dtype == object for a in arrays) != all(a.dtype == object for a in arrays):
        raise pb_utils.TritonModelException(
            f"predict returned the columns {list(columns)}, of numbers and texts, and the model's signature does not name "
            "them: log the model with signature=infer_signature(data, model.predict(data))")
    return [(names[0], np.stack(arrays, axis=1))]


def _outputs(result, names):
    """The named values that predict returned."""
    if isinstance(result, list) and result and all(isinstance(r, dict) for r in result) and len(names) > 1:
        result = pandas.DataFrame(result)
    if hasattr(result, "model_dump"):
        result = result.model_dump()
    if isinstance(result, pandas.DataFrame):
        return _frame(result, names)
    if isinstance(result, dict):
        given = {str(k): v for k, v in result.items()}
        if all(n in given for n in names):
            return [(n, given[n]) for n in names]
        if len(names) == 1:
            return [(names[0], next(iter(given.values())) if len(given) == 1 else [_text(result)])]
        raise pb_utils.TritonModelException(
            f"predict returned {list(given)} (expected: {names}, as in the model's signature)")
    if len(names) > 1:
        array = _array(names[0], result)
        if array.ndim != 2 or array.shape[1] != len(names):
            raise pb_utils.TritonModelException(
                f"predict returned an array of shape {list(array.shape)} (expected: the columns {names})")
        return [(n, array[:, i].copy()) for i, n in enumerate(names)]
    if isinstance(result, (str, bytes)):
        result = [result]
    elif hasattr(result, "__next__"):
        result = list(result)
    return [(names[0], result)]


def _columns(result):
    """The names of the columns of what MLflow's own protocol answers as rows of named values; else None."""
    if isinstance(result, pandas.DataFrame):
        return [str(c) for c in result.columns]
    if isinstance(result, pandas.Series):
        return ["0" if result.name is None else str(result.name)]
    return None


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        given = config.as_dict()
        inputs, outputs = _signature()
        config.set_max_batch_size(0)
        if not given.get("input"):
            for f in inputs:
                config.add_input({"name": f.name, "data_type": f.data_type, "dims": f.dims, "optional": not f.required})
        if not given.get("output"):
            for f in outputs:
                config.add_output({"name": f.name, "data_type": f.data_type, "dims": f.dims})
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.model = mlflow.pyfunc.load_model(DIRECTORY)
        meta = self.model.metadata
        schema = meta.get_input_schema()
        self.params = {p.name: p for p in meta.get_params_schema()} if meta.get_params_schema() else {}
        inputs, _ = _signature()
        known = {f.name: f for f in inputs} if schema is not None else {}
        self.fields = []
        for i in config["input"]:
            dims = [int(d) for d in i["dims"]]
            kind = "string" if i["data_type"] == "TYPE_STRING" else ""
            otherwise = _Field(i["name"], "tensor" if len(dims) > 1 else kind, i["data_type"], dims, not i.get("optional"))
            self.fields.append(known.get(i["name"], otherwise))
        self.signed = schema is not None
        self.named = schema is None or schema.has_input_names()
        self.hinted = meta._is_signature_from_type_hint() if hasattr(meta, "_is_signature_from_type_hint") else False
        names = config.get("parameters", {}).get(_NAMES, {}).get("string_value", "")
        self.columns = names.split(",") if names and not self.signed else None
        self.names = [o["name"] for o in config["output"]]

    def _data(self, request, parameters):
        given = {}
        rows = None
        for field in self.fields:
            tensor = pb_utils.get_input_tensor_by_name(request, field.name)
            if tensor is None:
                continue
            array = tensor.as_numpy()
            if field.kind == "tensor":
                given[field.name] = _texts(array) if array.dtype == object else array.copy()
                continue
            values = _rows(field.name, array, field.kind, field.element)
            if rows is not None and len(values) != rows[1]:
                raise _Refused(
                    f"column '{field.name}' has {len(values)} values (expected: {rows[1]}, as '{rows[0]}')")
            rows = rows or (field.name, len(values))
            given[field.name] = values
        if all(f.kind == "tensor" for f in self.fields):
            if len(self.fields) > 1 or (self.signed and self.named):
                return given
            only = next(iter(given.values()))
            columns = parameters.get(_NAMES)
            columns = json.loads(columns) if columns and not self.signed else self.columns
            if columns and only.ndim == 2 and only.shape[1] == len(columns):
                return pandas.DataFrame(only, columns=columns)
            return only
        if not self.named and len(self.fields) == 1:
            values = next(iter(given.values()))
            if self.hinted:
                return values if isinstance(values, list) else values.tolist()
            return pandas.DataFrame({0: values})
        if not self.named:
            return pandas.DataFrame(dict(enumerate(given.values())))
        return pandas.DataFrame(given)

    def _parameters(self, parameters):
        """The parameters of the signature that the request has; lists are texts of JSON."""
        made = {}
        for name, spec in self.params.items():
            if name in parameters:
                value = parameters[name]
                if isinstance(value, str) and (spec.shape is not None or str(spec.dtype) not in ("DataType.string", "string")):
                    try:
                        value = json.loads(value)
                    except ValueError:
                        raise _Refused(f"parameter '{name}' is {value!r} (expected: {spec.dtype})") from None
                made[name] = value
        return made

    def _response(self, request):
        try:
            parameters = json.loads(request.parameters())
            data = self._data(request, parameters)
            params = self._parameters(parameters)
            result = self.model.predict(data, params) if params else self.model.predict(data)
        except _Refused as e:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(e), pb_utils.TritonError.INVALID_ARG))
        except MlflowException as e:
            if e.error_code not in ("INVALID_PARAMETER_VALUE", "BAD_REQUEST"):
                raise
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(e.message, pb_utils.TritonError.INVALID_ARG))
        wanted = request.requested_output_names()
        tensors = [pb_utils.Tensor(n, _array(n, v)) for n, v in _outputs(result, self.names) if not wanted or n in wanted]
        columns = _columns(result) if parameters.get(_SCORING) else None
        return pb_utils.InferenceResponse(
            tensors, parameters={_NAMES: json.dumps(columns, ensure_ascii=False)} if columns else None)

    def execute(self, requests):
        return [self._response(request) for request in requests]
