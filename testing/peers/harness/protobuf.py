# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The messages of the Open Inference Protocol and of TensorFlow Serving over gRPC that a load needs, written and read without a library."""

import struct

# Numbers of fields in ModelInferRequest and ModelInferResponse, and in their tensors.
MODEL_NAME, INPUTS, RAW_INPUTS = 1, 5, 7
OUTPUTS, RAW_OUTPUTS = 5, 6
NAME, DATATYPE, SHAPE, CONTENTS = 1, 2, 3, 5
# Fields of InferTensorContents: datatype, and the type of an element, None for varints.
TYPED = {2: None, 3: None, 6: "f"}


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def framed(message):
    """A message with gRPC's prefix."""
    return b"\0" + struct.pack(">I", len(message)) + message


def infer_request(model, inputs):
    """ModelInferRequest with raw contents; inputs are (name, datatype, shape, bytes)."""
    parts = [field(MODEL_NAME, model.encode())]
    for name, datatype, shape, _ in inputs:
        tensor = field(NAME, name.encode()) + field(DATATYPE, datatype.encode()) + field(SHAPE, b"".join(varint(d) for d in shape))
        parts.append(field(INPUTS, tensor))
    return b"".join(parts + [field(RAW_INPUTS, raw) for *_, raw in inputs])


def infer_response(message):
    """The outputs of a ModelInferResponse as (name, datatype, bytes); values outside raw contents become bytes."""
    outputs, raw = [], []
    for number, value in fields(message):
        if number == OUTPUTS:
            tensor = dict(fields(value))
            outputs.append((tensor[NAME].decode(), tensor[DATATYPE].decode(), typed(tensor.get(CONTENTS, b""), tensor[DATATYPE].decode())))
        elif number == RAW_OUTPUTS:
            raw.append(value)
    return [(name, datatype, raw[i] if raw else contents) for i, (name, datatype, contents) in enumerate(outputs)]


# TensorFlow Serving: PredictRequest and PredictResponse, maps of TensorProto, and the numbers of its types.
SPEC, TENSORS, RESULTS = 1, 2, 1
DTYPE, TENSOR_SHAPE, DIM, SIZE, CONTENT, FLOATS = 1, 2, 2, 1, 4, 5
DTYPES = {"FP32": 1, "INT32": 3, "INT64": 9}


def predict_request(model, inputs):
    """PredictRequest with the tensors' bytes; inputs are (name, datatype, shape, bytes)."""
    parts = [field(SPEC, field(NAME, model.encode()))]
    for name, datatype, shape, raw in inputs:
        dims = b"".join(field(DIM, varint(SIZE << 3) + varint(d)) for d in shape)
        tensor = varint(DTYPE << 3) + varint(DTYPES[datatype]) + field(TENSOR_SHAPE, dims) + field(CONTENT, raw)
        parts.append(field(TENSORS, field(1, name.encode()) + field(2, tensor)))
    return b"".join(parts)


def predict_response(message):
    """The outputs of a PredictResponse as bytes by name: their content, or values of FP32."""
    found = {}
    for number, value in fields(message):
        if number == RESULTS:
            entry = dict(fields(value))
            tensor = dict(fields(entry[2]))
            found[entry[1].decode()] = tensor.get(CONTENT) or tensor.get(FLOATS, b"")
    return found


def typed(contents, datatype):
    """InferTensorContents as the bytes of its values."""
    for number, value in fields(contents):
        if TYPED.get(number, "") is None:
            numbers, offset = [], 0
            while offset < len(value):
                n, offset = read_varint(value, offset)
                numbers.append(n - (1 << 64) if n >> 63 else n)
            return struct.pack(f"<{len(numbers)}{'i' if datatype == 'INT32' else 'q'}", *numbers)
        if number in TYPED:
            return value
    return b""


def read_varint(data, offset):
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, offset


def fields(data):
    """The fields of a message: the number, and the bytes or the number in it."""
    offset = 0
    while offset < len(data):
        tag, offset = read_varint(data, offset)
        kind = tag & 7
        if kind == 0:
            value, offset = read_varint(data, offset)
        else:
            if kind == 2:
                length, offset = read_varint(data, offset)
            else:
                length = {1: 8, 5: 4}[kind]
            value = data[offset : offset + length]
            offset += length
        yield tag >> 3, value
