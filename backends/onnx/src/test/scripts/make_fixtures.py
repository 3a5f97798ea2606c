#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the ONNX fixtures in ../resources/models and their table, README.md. Same bytes every time.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python make_fixtures.py && venv/bin/python check_fixtures.py
"""
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

MODELS = Path(__file__).resolve().parent.parent / "resources" / "models"
IR_VERSION = 8
OPSET = 16

TYPES = {
    "bool": TensorProto.BOOL,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "fp16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "fp32": TensorProto.FLOAT,
    "fp64": TensorProto.DOUBLE,
    "string": TensorProto.STRING,
}

rows = []


def put(name: str, data: bytes, fate: str, what: str) -> None:
    """Writes one file and its row of the table; fate is runs, refused (an honest load error) or broken (not a model)."""
    (MODELS / name).write_bytes(data)
    rows.append((name, len(data), fate, what))


def tensor(name, kind, *dims):
    return helper.make_tensor_value_info(name, kind, list(dims))


def const(name, values, dtype):
    return numpy_helper.from_array(np.array(values, dtype=dtype), name)


def model(nodes, inputs, outputs, initializers=(), opset=OPSET, ir=IR_VERSION, domains=(), check=True, metadata=None):
    graph = helper.make_graph(list(nodes), "fixture", list(inputs), list(outputs), list(initializers))
    made = helper.make_model(
        graph,
        producer_name="nereid",
        ir_version=ir,
        opset_imports=[helper.make_opsetid("", opset), *[helper.make_opsetid(d, v) for d, v in domains]],
    )
    if metadata:
        helper.set_model_props(made, metadata)
    if check:
        checker.check_model(made, full_check=True)
    return made.SerializeToString(deterministic=True)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


F32, I64, I32, STR = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.STRING


def identities() -> None:
    for name, kind in TYPES.items():
        data = model(
            [node("Identity", ["INPUT0"], ["OUTPUT0"])],
            [tensor("INPUT0", kind, "batch", "n")],
            [tensor("OUTPUT0", kind, "batch", "n")],
        )
        put(f"identity_{name}.onnx", data, "runs", f"INPUT0 {name}[batch,n] -> OUTPUT0, the same")


def arithmetic() -> None:
    for name in ("fp32", "int32"):
        kind = TYPES[name]
        data = model(
            [node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])],
            [tensor(f"INPUT{i}", kind, "batch", 16) for i in (0, 1)],
            [tensor(f"OUTPUT{i}", kind, "batch", 16) for i in (0, 1)],
        )
        put(f"add_sub_{name}.onnx", data, "runs", f"INPUT0, INPUT1 {name}[batch,16] -> OUTPUT0 sum, OUTPUT1 difference")
    data = model(
        [node("Identity", ["Z"], ["SECOND"]), node("Neg", ["A"], ["FIRST"])],
        [tensor("Z", F32, "batch", 2), tensor("A", F32, "batch", 3)],
        [tensor("SECOND", F32, "batch", 2), tensor("FIRST", F32, "batch", 3)],
    )
    put("graph_order.onnx", data, "runs", "Z fp32[batch,2], A fp32[batch,3] -> SECOND = Z, FIRST = -A; neither list is alphabetical")


def shapes() -> None:
    relu = [node("Relu", ["X"], ["Y"])]
    put(
        "relu.onnx",
        model(relu, [tensor("X", F32, "N", 4)], [tensor("Y", F32, "N", 4)], metadata={"author": "nereid", "task": "relu"}),
        "runs",
        "X fp32[N,4] -> Y fp32[N,4]: output shape known from the input's; has custom metadata (author, task)",
    )
    put(
        "batch_one.onnx",
        model(relu, [tensor("X", F32, 1, 4)], [tensor("Y", F32, 1, 4)]),
        "runs",
        "X fp32[1,4] -> Y fp32[1,4]: cannot be batched",
    )
    put(
        "unnamed_dims.onnx",
        model(relu, [tensor("X", F32, None, None)], [tensor("Y", F32, None, None)]),
        "runs",
        "X fp32[?,?] -> Y: open dimensions without names",
    )
    put(
        "unknown_rank.onnx",
        model(
            [node("Reshape", ["X", "SHAPE"], ["Y"])],
            [tensor("X", F32, "N", 4), tensor("SHAPE", I64, "rank")],
            [helper.make_tensor_value_info("Y", F32, None)],
            check=False,
        ),
        "runs",
        "X fp32[N,4], SHAPE int64[rank] -> Y fp32 of that shape: the number of dimensions is open",
    )
    put(
        "nonzero.onnx",
        model(
            [node("NonZero", ["X"], ["INDICES"])],
            [tensor("X", F32, "n")],
            [tensor("INDICES", I64, 1, "count")],
        ),
        "runs",
        "X fp32[n] -> INDICES int64[1,count]: output shape depends on the values",
    )
    put(
        "scalar.onnx",
        model([node("Add", ["X", "X"], ["Y"])], [tensor("X", F32)], [tensor("Y", F32)]),
        "runs",
        "X fp32[] -> Y fp32[] = 2X",
    )
    put(
        "row_mean.onnx",
        model(
            [node("ReduceMean", ["X"], ["MEAN"], axes=[1], keepdims=0), node("ReduceMean", ["X"], ["ALL"], keepdims=0)],
            [tensor("X", F32, "batch", 4)],
            [tensor("MEAN", F32, "batch"), tensor("ALL", F32)],
        ),
        "runs",
        "X fp32[batch,4] -> MEAN fp32[batch], ALL fp32[] over the whole batch: must not be batched",
    )
    put(
        "two_batches.onnx",
        model(
            [node("Transpose", ["B"], ["T"], perm=[1, 0]), node("MatMul", ["A", "T"], ["Y"])],
            [tensor("A", F32, "n", 4), tensor("B", F32, "m", 4)],
            [tensor("Y", F32, "n", "m")],
        ),
        "runs",
        "A fp32[n,4], B fp32[m,4] -> Y fp32[n,m] = A x B': the inputs' first dimensions differ",
    )
    put(
        "pair.onnx",
        model(
            [node("Add", ["A", "B"], ["Y"])],
            [tensor("A", F32, "batch", "n"), tensor("B", F32, "batch", "n")],
            [tensor("Y", F32, "batch", "n")],
        ),
        "runs",
        "A, B fp32[batch,n] -> Y = A + B: one name of a dimension on two inputs",
    )
    put(
        "optional_input.onnx",
        model(
            [node("Add", ["X", "BIAS"], ["Y"])],
            [tensor("X", F32, "N", 4), tensor("BIAS", F32, 4)],
            [tensor("Y", F32, "N", 4)],
            [const("BIAS", [1, 2, 3, 4], np.float32)],
        ),
        "runs",
        "X fp32[N,4], optional BIAS fp32[4] (default 1,2,3,4) -> Y = X + BIAS",
    )
    put(
        "no_inputs.onnx",
        model(
            [node("Identity", ["C"], ["Y"])],
            [],
            [tensor("Y", F32, 3)],
            [const("C", [1, 2, 3], np.float32)],
        ),
        "runs",
        "no input -> Y fp32[3] = 1,2,3",
    )


def fed_by_the_server() -> None:
    column = lambda name, kind=I32: tensor(name, kind, "batch", 1)  # noqa: E731
    put(
        "controls.onnx",
        model(
            [
                node("Add", ["INPUT", "START"], ["SUM"]),
                node("Cast", ["CORRID"], ["ID"], to=I32),
                node("Mul", ["ID", "END"], ["AT_END"]),
                node("Add", ["SUM", "AT_END"], ["RAW"]),
                node("Mul", ["RAW", "READY"], ["OUTPUT"]),
            ],
            [column("INPUT"), column("START"), column("END"), column("READY"), column("CORRID", TensorProto.UINT64)],
            [column("OUTPUT")],
        ),
        "runs",
        "INPUT, START, END, READY int32[batch,1], CORRID uint64[batch,1] -> OUTPUT = (INPUT + START + END x CORRID) x READY",
    )
    put(
        "state_sum.onnx",
        model(
            [node("Add", ["INPUT", "INPUT_STATE"], ["OUTPUT"]), node("Identity", ["OUTPUT"], ["OUTPUT_STATE"])],
            [column("INPUT"), column("INPUT_STATE")],
            [column("OUTPUT"), column("OUTPUT_STATE")],
        ),
        "runs",
        "INPUT, INPUT_STATE int32[batch,1] -> OUTPUT, OUTPUT_STATE, both the sum",
    )
    put(
        "state_inside.onnx",
        model(
            [
                node("ReduceSum", ["input", "one"], ["SUM"], keepdims=1),
                node("ReduceMean", ["state"], ["LEVEL"], axes=[0, 2], keepdims=0),
                node("Unsqueeze", ["LEVEL", "one"], ["COLUMN"]),
                node("Add", ["SUM", "COLUMN"], ["output"]),
                node("Cast", ["sr"], ["RATE"], to=F32),
                node("Add", ["state", "RATE"], ["stateN"]),
            ],
            [tensor("input", F32, None, None), tensor("state", F32, 2, None, 3), tensor("sr", I64)],
            [tensor("output", F32, None, 1), tensor("stateN", F32, None, None, None)],
            [const("one", [1], np.int64)],
        ),
        "runs",
        "input fp32[?,?], state fp32[2,?,3], sr int64[] -> output fp32[?,1], stateN fp32[?,?,?] = state + sr: "
        "the batch is not the state's first dimension",
    )
    put(
        "ragged_sum.onnx",
        model(
            [
                node("CumSum", ["VALUES", "axis"], ["RUNNING"]),
                node("Concat", ["zero", "RUNNING"], ["FROM_ZERO"], axis=0),
                node("Slice", ["BOUNDS", "first", "end", "zeroth"], ["UPPER"]),
                node("Slice", ["BOUNDS", "start", "last", "zeroth"], ["LOWER"]),
                node("Gather", ["FROM_ZERO", "UPPER"], ["HIGH"]),
                node("Gather", ["FROM_ZERO", "LOWER"], ["LOW"]),
                node("Sub", ["HIGH", "LOW"], ["FLAT"]),
                node("Unsqueeze", ["FLAT", "first"], ["SUM"]),
            ],
            [tensor("VALUES", F32, None), tensor("BOUNDS", I32, None)],
            [tensor("SUM", F32, None, 1)],
            [
                const("axis", 0, np.int64),
                const("zero", [0], np.float32),
                const("zeroth", [0], np.int64),
                const("start", [0], np.int64),
                const("first", [1], np.int64),
                const("last", [-1], np.int64),
                const("end", [1 << 31], np.int64),
            ],
        ),
        "runs",
        "VALUES fp32[?] of n requests one after the other, BOUNDS int32[?] of n + 1 -> SUM fp32[?,1], one for each request",
    )
    put(
        "column.onnx",
        model([node("Neg", ["X"], ["Y"])], [tensor("X", F32, "batch")], [tensor("Y", F32, "batch")]),
        "runs",
        "X fp32[batch] -> Y = -X: a single value a row",
    )


def encoder() -> None:
    table = np.sin(np.arange(16 * 8)).reshape(16, 8)
    put(
        "encoder.onnx",
        model(
            [
                node("Gather", ["TABLE", "input_ids"], ["X"]),
                node("Transpose", ["X"], ["XT"], perm=[0, 2, 1]),
                node("MatMul", ["X", "XT"], ["SCORES"]),
                node("Cast", ["attention_mask"], ["MASK"], to=F32),
                node("Sub", ["one", "MASK"], ["HIDDEN"]),
                node("Mul", ["HIDDEN", "far"], ["BIAS"]),
                node("Unsqueeze", ["BIAS", "axis1"], ["BIAS1"]),
                node("Add", ["SCORES", "BIAS1"], ["MASKED"]),
                node("Softmax", ["MASKED"], ["attention"], axis=-1),
                node("MatMul", ["attention", "X"], ["CONTEXT"]),
                node("Add", ["CONTEXT", "X"], ["BOTH"]),
                node("Tanh", ["BOTH"], ["tokens"]),
                node("Unsqueeze", ["MASK", "axis2"], ["MASK2"]),
                node("Mul", ["tokens", "MASK2"], ["OWN"]),
                node("ReduceSum", ["OWN", "axis1"], ["TOTAL"], keepdims=0),
                node("ReduceSum", ["MASK2", "axis1"], ["COUNT"], keepdims=0),
                node("Div", ["TOTAL", "COUNT"], ["pooled"]),
            ],
            [tensor("input_ids", I64, "batch", "length"), tensor("attention_mask", I64, "batch", "length")],
            [
                tensor("tokens", F32, "batch", "length", 8),
                tensor("attention", F32, "batch", "length", "length"),
                tensor("pooled", F32, "batch", 8),
            ],
            [
                const("TABLE", table, np.float32),
                const("one", 1, np.float32),
                const("far", -1e9, np.float32),
                const("axis1", [1], np.int64),
                const("axis2", [2], np.int64),
            ],
        ),
        "runs",
        "input_ids (0 to 15), attention_mask int64[batch,length] -> tokens fp32[batch,length,8], attention fp32[batch,length,length], "
        "pooled fp32[batch,8]: one layer of attention; positions with mask 0 do not count",
    )


def failures_at_run() -> None:
    put(
        "gather.onnx",
        model(
            [node("Gather", ["DATA", "INDEX"], ["Y"])],
            [tensor("INDEX", I64, "batch", "n")],
            [tensor("Y", F32, "batch", "n")],
            [const("DATA", [10, 20, 30, 40], np.float32)],
        ),
        "runs",
        "INDEX int64[batch,n] -> Y fp32[batch,n] from 10,20,30,40; fails while running for an index outside -4..3",
    )
    put(
        "fill.onnx",
        model(
            [node("ConstantOfShape", ["SHAPE"], ["Y"])],
            [tensor("SHAPE", I64, 2)],
            [tensor("Y", F32, "rows", "columns")],
        ),
        "runs",
        "SHAPE int64[2] -> Y fp32[rows,columns] of zeros; huge values cannot be allocated, negative ones are rejected",
    )


def strings() -> None:
    put(
        "string_constant.onnx",
        model(
            [node("Identity", ["C"], ["Y"])],
            [],
            [tensor("Y", STR, 4)],
            [helper.make_tensor("C", STR, [4], ["plain".encode(), "\U0001f600x".encode(), b"a\0b", b"\xff\xfe\x00\x01"])],
        ),
        "runs",
        "no input -> Y string[4]: 'plain', U+1F600 'x', 'a' NUL 'b', bytes FF FE 00 01",
    )
    put(
        "string_codes.onnx",
        model(
            [
                helper.make_node(
                    "LabelEncoder",
                    ["X"],
                    ["CODE"],
                    domain="ai.onnx.ml",
                    keys_strings=["\U0001f600", "a", "\0", ""],
                    values_int64s=[7, 8, 9, 10],
                    default_int64=-1,
                )
            ],
            [tensor("X", STR, "batch", "n")],
            [tensor("CODE", I64, "batch", "n")],
            domains=[("ai.onnx.ml", 2)],
        ),
        "runs",
        "X string[batch,n] -> CODE int64: U+1F600 is 7, 'a' 8, NUL 9, empty 10, others -1: shows whether bytes arrive unchanged",
    )


def foreign_operators() -> None:
    put(
        "string_upper.onnx",
        model(
            [helper.make_node("StringUpper", ["X"], ["Y"], domain="ai.onnx.contrib")],
            [tensor("X", STR, "batch", "n")],
            [tensor("Y", STR, "batch", "n")],
            domains=[("ai.onnx.contrib", 1)],
            check=False,
        ),
        "refused",
        "X string[batch,n] -> Y, ASCII letters in upper case: loads only with the library onnxruntime-extensions",
    )


def long_running() -> None:
    body = helper.make_graph(
        [node("Identity", ["go"], ["go_on"]), node("Add", ["sum", "one"], ["sum_next"])],
        "body",
        [tensor("i", I64), tensor("go", TensorProto.BOOL), tensor("sum", I64, 1)],
        [tensor("go_on", TensorProto.BOOL), tensor("sum_next", I64, 1)],
    )
    put(
        "loop.onnx",
        model(
            [node("Loop", ["ITERATIONS", "true", "zero"], ["COUNT"], body=body)],
            [tensor("ITERATIONS", I64, 1)],
            [tensor("COUNT", I64, 1)],
            [const("true", True, np.bool_), const("zero", [0], np.int64), const("one", [1], np.int64)],
        ),
        "runs",
        "ITERATIONS int64[1] -> COUNT int64[1], the same, counted up step by step: as slow as wished, can be terminated",
    )
    # Weights from integer arithmetic, so that the file stays small; the runtime folds them into constants at load.
    width, hidden, depth = 512, 1024, 24
    nodes, values = [], []
    for name, rows_, columns in (("first", width, hidden), ("middle", hidden, hidden), ("last", hidden, 16)):
        p = name + "_"
        values += [const(p + "count", rows_ * columns, np.int64), const(p + "shape", [rows_, columns], np.int64)]
        nodes += [
            node("Range", ["zero", p + "count", "one"], [p + "range"]),
            node("Mul", [p + "range", p + "range"], [p + "mul"]),
            node("Mod", [p + "mul", "modulus"], [p + "mod"]),
            node("Cast", [p + "mod"], [p + "cast"], to=F32),
            node("Sub", [p + "cast", "centre"], [p + "centred"]),
            node("Mul", [p + "centred", "scale"], [p + "scaled"]),
            node("Reshape", [p + "scaled", p + "shape"], [p + "w"]),
        ]
    nodes += [node("MatMul", ["X", "first_w"], ["m0"]), node("Tanh", ["m0"], ["t0"])]
    for i in range(1, depth):
        nodes += [node("MatMul", [f"t{i - 1}", "middle_w"], [f"m{i}"]), node("Tanh", [f"m{i}"], [f"t{i}"])]
    nodes.append(node("MatMul", [f"t{depth - 1}", "last_w"], ["Y"]))
    values += [
        const("zero", 0, np.int64),
        const("one", 1, np.int64),
        const("modulus", 1000003, np.int64),
        const("centre", 500001, np.float32),
        const("scale", 1.25e-7, np.float32),
    ]
    put(
        "mlp.onnx",
        model(nodes, [tensor("X", F32, "batch", width)], [tensor("Y", F32, "batch", 16)], values),
        "runs",
        "X fp32[batch,512] -> Y fp32[batch,16]: 25 dense layers, weights computed at load, about a millisecond a row on one core",
    )


def not_tensors() -> None:
    probabilities = [
        helper.make_node(
            "LinearClassifier",
            ["X"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=[1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 1.0],
            intercepts=[0.0, 0.0, 0.0],
            post_transform="SOFTMAX",
            multi_class=1,
            **labels,
        )
        for labels in ({"classlabels_ints": [0, 1, 2]}, {"classlabels_strings": ["red", "green", "blue"]})
    ]
    for name, classifier, zipped, key, label in (
        ("zipmap_int64.onnx", probabilities[0], {"classlabels_int64s": [0, 1, 2]}, I64, "0, 1, 2"),
        ("zipmap_string.onnx", probabilities[1], {"classlabels_strings": ["red", "green", "blue"]}, STR, "red, green, blue"),
    ):
        value = helper.make_map_type_proto(key, helper.make_tensor_type_proto(F32, []))
        data = model(
            [classifier, helper.make_node("ZipMap", ["scores"], ["probabilities"], domain="ai.onnx.ml", **zipped)],
            [tensor("X", F32, "N", 4)],
            [
                tensor("label", key, "N"),
                helper.make_value_info("probabilities", helper.make_sequence_type_proto(value)),
            ],
            domains=[("ai.onnx.ml", 1)],
            check=False,
        )
        kind = "int64" if key == I64 else "string"
        put(name, data, "runs", f"X fp32[N,4] -> label {kind}[N] of {label}; probabilities: sequence of map({kind}, fp32)")
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, ["n"]))
    put(
        "sequence_output.onnx",
        model(
            [node("SequenceConstruct", ["A", "B"], ["PARTS"])],
            [tensor("A", F32, "n"), tensor("B", F32, "n")],
            [helper.make_value_info("PARTS", sequence)],
        ),
        "runs",
        "A, B fp32[n] -> PARTS: sequence of two tensors",
    )
    put(
        "sequence_input.onnx",
        model(
            [node("SequenceAt", ["PARTS", "first"], ["Y"])],
            [helper.make_value_info("PARTS", sequence)],
            [tensor("Y", F32, "n")],
            [const("first", 0, np.int64)],
        ),
        "refused",
        "PARTS: sequence of tensors -> Y: loads in the runtime, but no client can send a sequence",
    )
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(F32, ["n"]))
    put(
        "optional_type.onnx",
        model(
            [node("OptionalGetElement", ["X"], ["Y"])],
            [helper.make_value_info("X", optional)],
            [tensor("Y", F32, "n")],
        ),
        "refused",
        "X: optional(tensor) -> Y: ONNX Runtime's Java API cannot describe it",
    )


def odd_types() -> None:
    for name, kind, opset, ir in (
        ("float8", TensorProto.FLOAT8E4M3FN, 19, 9),
        ("int4", TensorProto.INT4, 21, 10),
    ):
        data = model(
            [node("Cast", ["X"], ["Y"], to=F32)],
            [tensor("X", kind, "n")],
            [tensor("Y", F32, "n")],
            opset=opset,
            ir=ir,
        )
        put(f"{name}_input.onnx", data, "refused", f"X {name}[n] -> Y fp32[n]: a type with no name in the protocols")
    data = model(
        [node("Identity", ["X"], ["Y"])],
        [tensor("X", TensorProto.COMPLEX64, "n")],
        [tensor("Y", TensorProto.COMPLEX64, "n")],
    )
    put("complex64.onnx", data, "refused", "X complex64[n] -> Y: the runtime does not load it")


def external_data() -> None:
    def add(location, length=16):
        def outside(name, offset):
            value = TensorProto(name=name, data_type=F32, dims=[4], data_location=TensorProto.EXTERNAL)
            for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
                value.external_data.add(key=key, value=text)
            return value

        return model(
            [node("Add", ["U", "V"], ["W"]), node("Add", ["X", "W"], ["Y"])],
            [tensor("X", F32, "N", 4)],
            [tensor("Y", F32, "N", 4)],
            [outside("U", 0), outside("V", 16)],
            check=False,
        )

    put(
        "external_data.onnx",
        add("external_data.bin"),
        "runs",
        "X fp32[N,4] -> Y = X + (11,22,33,44), a sum of two initializers in external_data.bin, folded at load",
    )
    data = np.array([1, 2, 3, 4, 10, 20, 30, 40], dtype="<f4").tobytes()
    put("external_data.bin", data, "data", "of external_data.onnx: 1,2,3,4 and 10,20,30,40 as fp32")
    put("external_data_missing.onnx", add("no_such_file.bin"), "broken", "its external data file does not exist")
    # A good file, but beside the folder of the models and not in it.
    (MODELS.parent / "outside.bin").write_bytes(data)
    put(
        "external_data_escape.onnx",
        add("../outside.bin"),
        "broken",
        "its external data, ../outside.bin, exists but is outside the folder of the model, which the runtime must not leave",
    )


def broken() -> None:
    data = model(
        [helper.make_node("Frobnicate", ["X"], ["Y"], domain="com.example")],
        [tensor("X", F32, "N", 4)],
        [tensor("Y", F32, "N", 4)],
        domains=[("com.example", 1)],
        check=False,
    )
    put("custom_domain.onnx", data, "refused", "operator com.example.Frobnicate, which no library provides")
    data = model(
        [node("Relu", ["X"], ["Y"])], [tensor("X", F32, "N", 4)], [tensor("Y", F32, "N", 4)], opset=999, check=False
    )
    put("future_opset.onnx", data, "refused", "operator set 999")
    data = model(
        [node("Relu", ["NOWHERE"], ["Y"])], [tensor("X", F32, "N", 4)], [tensor("Y", F32, "N", 4)], check=False
    )
    put("dangling.onnx", data, "refused", "well-formed file, but a node reads a tensor that nothing makes")
    whole = (MODELS / "add_sub_fp32.onnx").read_bytes()
    put("truncated.onnx", whole[: len(whole) * 6 // 10], "broken", "the first 60 % of add_sub_fp32.onnx")
    put("empty.onnx", b"", "broken", "no byte at all")
    put("text.onnx", b"This is not a model.\n", "broken", "a line of text")
    put(
        "pointer.onnx",
        b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 22972370\n",
        "broken",
        "a Git LFS pointer, checked out without its content",
    )


def half_plus() -> None:
    for name, addend in (("half_plus_two", 2.0), ("half_plus_three", 3.0)):
        data = model(
            [node("Mul", ["x", "half"], ["m"]), node("Add", ["m", "addend"], ["y"])],
            [tensor("x", F32, "batch")],
            [tensor("y", F32, "batch")],
            [const("half", 0.5, np.float32), const("addend", addend, np.float32)],
        )
        put(f"{name}.onnx", data, "runs", f"x fp32[batch] -> y = x / 2 + {addend:g}")


def table() -> None:
    lines = [
        "# ONNX fixtures",
        "",
        "Made by `../../scripts/make_fixtures.py`; do not edit. *runs*: loads and answers; *refused*: a readable model that the",
        "backend must not load; *broken*: not a whole model.",
        "",
        "| file | bytes | fate | what |",
        "|---|---|---|---|",
        *[f"| {name} | {size} | {fate} | {what} |" for name, size, fate, what in rows],
        "",
    ]
    (MODELS / "README.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    MODELS.mkdir(parents=True, exist_ok=True)
    identities()
    arithmetic()
    shapes()
    fed_by_the_server()
    encoder()
    failures_at_run()
    strings()
    foreign_operators()
    long_running()
    not_tensors()
    odd_types()
    external_data()
    broken()
    half_plus()
    table()
    known = {name for name, *_ in rows} | {"README.md"}
    for stale in sorted(p.name for p in MODELS.iterdir() if p.name not in known):
        print(f"not made by this script: {stale}")
    print(f"{len(rows)} files, {sum(size for _, size, *_ in rows)} bytes in {MODELS}")


if __name__ == "__main__":
    main()
