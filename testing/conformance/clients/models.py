# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The model repository of the suites."""
import shutil

import numpy as np

from server import EXAMPLES, FIXTURES

NUMPY = {
    "BOOL": np.bool_, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
    "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    "FP16": np.float16, "FP32": np.float32, "FP64": np.float64,
}
INTEGERS = [t for t in NUMPY if "INT" in t]
NUMBERS = [t for t in NUMPY if t != "BOOL"]
TYPES = [*NUMPY, "BF16", "BYTES"]
SHAPES = [(1, 1), (1, 16), (3, 5), (8, 1000)]


def add_identity(repository, name, datatype, extra="", dims="-1", batch=8):
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    kind = "STRING" if datatype == "BYTES" else datatype
    (folder / "config.pbtxt").write_text(
        f'backend: "identity"\nmax_batch_size: {batch}\n'
        f'input {{ name: "INPUT0" data_type: TYPE_{kind} dims: [ {dims} ] }}\n'
        f'output {{ name: "OUTPUT0" data_type: TYPE_{kind} dims: [ {dims} ] }}\n{extra}'
    )
    return folder


def delay(millis):
    return f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{millis}" }} }}\n'


def build(repository):
    for t in TYPES:
        add_identity(repository, f"identity_{t.lower()}", t)
    add_identity(repository, "matrix", "FP32", dims="-1, -1", batch=0)
    add_identity(repository, "one", "BYTES", dims="1")
    add_identity(repository, "slow", "FP32", delay(2000))
    for t in NUMBERS:
        folder = repository / f"add_sub_{t.lower()}"
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(
            'backend: "add_sub"\nmax_batch_size: 8\n'
            + "".join(f'input {{ name: "INPUT{i}" data_type: TYPE_{t} dims: [ -1 ] }}\n' for i in (0, 1))
            + "dynamic_batching { }\n"
        )
    for fixture in sorted(FIXTURES.glob("identity_*.onnx")):
        folder = repository / f"onnx_{fixture.stem}"
        (folder / "1").mkdir(parents=True)
        shutil.copy(fixture, folder / "1" / "model.onnx")
        (folder / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\n')
    for example in sorted(EXAMPLES.iterdir()):
        if (example / "1" / "model.onnx").exists() and example.name != "ocr_rec":
            shutil.copytree(example, repository / example.name)
    return repository


BROKEN = ("truncated", "empty", "text", "pointer", "future_opset")


def add_broken(repository, name):
    folder = repository / f"broken_{name}" / "1"
    folder.mkdir(parents=True)
    shutil.copy(FIXTURES / f"{name}.onnx", folder / "model.onnx")


def values(datatype, shape, seed=1, model=""):
    """Numbers over the whole range of a type, including its limits; texts that the model accepts."""
    random = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if datatype == "BYTES":
        # ONNX Runtime's Java API does not accept characters beyond U+FFFF; the server rejects them.
        words = [b"", ("é\u4e16" if "onnx" in model else "é\U0001f600").encode(), b"plain", b"a\"b\\c\n"]
        return np.array([words[i % len(words)] for i in range(count)], dtype=object).reshape(shape)
    kind = NUMPY[datatype]
    if datatype == "BOOL":
        return random.integers(0, 2, shape).astype(kind)
    if datatype in INTEGERS:
        limits = np.iinfo(kind)
        array = random.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
        array.flat[0], array.flat[-1] = limits.min, limits.max
        return array
    array = random.normal(size=shape).astype(kind)
    array.flat[-1] = np.finfo(kind).max
    return array
