#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs every fixture that README.md lists as runnable on ONNX Runtime, and checks that the broken ones do not load."""
import sys
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto

from make_fixtures import MODELS, TYPES

# Rejected by the backend's own rules; ONNX Runtime itself loads them.
LOADED_BY_THE_RUNTIME = {"sequence_input.onnx", "optional_type.onnx", "float8_input.onnx", "int4_input.onnx"}
X24 = np.array([[-1, 2, -3, 4], [5, -6, 7, -8]], np.float32)


def fates():
    for line in (MODELS / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 6 and cells[3] in ("runs", "refused", "broken"):
            yield cells[1], cells[3]


def session(name):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(MODELS / name), options, providers=["CPUExecutionProvider"])


def run(name, **inputs):
    return session(name).run(None, inputs)


def raw_identity(name, kind):
    """Types that numpy knows, and bf16, go through as values; ml_dtypes names bf16."""
    values = {
        TensorProto.BOOL: np.array([[True, False, True]]),
        TensorProto.STRING: np.array([["a", "", "Grüße"]], dtype=object),
        TensorProto.BFLOAT16: np.array([[1.5, -2.0, 0.0]], dtype=ml_dtypes.bfloat16),
    }.get(kind)
    if values is None:
        values = np.array([[0, 1, 100]], dtype=onnx.helper.tensor_dtype_to_np_dtype(kind))
    if kind == TensorProto.BFLOAT16:
        s = session(name)
        value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(values.view(np.uint16), TensorProto.BFLOAT16)
        out = s.run_with_ort_values(None, {"INPUT0": value})[0]
        assert out.data_type() == "tensor(bfloat16)" and out.shape() == [1, 3], out.data_type()
        return
    (out,) = run(name, INPUT0=values)
    assert out.dtype == values.dtype or kind == TensorProto.STRING, out.dtype
    assert out.tolist() == values.tolist(), out


def checks():
    same = np.testing.assert_array_equal
    for name, kind in TYPES.items():
        yield f"identity_{name}.onnx", lambda f, kind=kind: raw_identity(f, kind)
    for name, dtype in (("fp32", np.float32), ("int32", np.int32)):
        a, b = np.arange(32, dtype=dtype).reshape(2, 16), np.ones((2, 16), dtype)
        yield f"add_sub_{name}.onnx", lambda f, a=a, b=b: same(run(f, INPUT0=a, INPUT1=b), [a + b, a - b])

    def order(f):
        s = session(f)
        assert [i.name for i in s.get_inputs()] == ["Z", "A"]
        assert [o.name for o in s.get_outputs()] == ["SECOND", "FIRST"]
        second, first = s.run(None, {"Z": np.ones((1, 2), np.float32), "A": np.ones((1, 3), np.float32)})
        same(second, [[1, 1]]), same(first, [[-1, -1, -1]])

    yield "graph_order.onnx", order

    def relu(f):
        assert session(f).get_modelmeta().custom_metadata_map == {"author": "nereid", "task": "relu"}
        same(run(f, X=X24)[0], np.maximum(X24, 0))

    yield "relu.onnx", relu
    yield "batch_one.onnx", lambda f: same(run(f, X=X24[:1])[0], np.maximum(X24[:1], 0))
    yield "unnamed_dims.onnx", lambda f: same(run(f, X=X24)[0], np.maximum(X24, 0))
    yield "unknown_rank.onnx", lambda f: same(run(f, X=X24, SHAPE=np.array([2, 2, 2]))[0], X24.reshape(2, 2, 2))
    yield "nonzero.onnx", lambda f: same(run(f, X=np.array([0, 1, 0, 2], np.float32))[0], [[1, 3]])
    yield "scalar.onnx", lambda f: same(run(f, X=np.array(21, np.float32))[0], 42)

    def mean(f):
        rows, everything = run(f, X=X24)
        same(rows, [0.5, -0.5]), same(everything, 0)

    yield "row_mean.onnx", mean
    yield "two_batches.onnx", lambda f: same(run(f, A=X24, B=X24[:1])[0], X24 @ X24[:1].T)
    yield "pair.onnx", lambda f: same(run(f, A=X24, B=X24)[0], 2 * X24)

    def optional(f):
        same(run(f, X=X24)[0], X24 + np.array([1, 2, 3, 4], np.float32))
        same(run(f, X=X24, BIAS=np.zeros(4, np.float32))[0], X24)

    yield "optional_input.onnx", optional
    yield "no_inputs.onnx", lambda f: same(run(f)[0], [1, 2, 3])

    def controls(f):
        column = lambda *v: np.array(v, np.int32).reshape(-1, 1)  # noqa: E731
        ids = np.array([[7], [9]], np.uint64)
        out = run(f, INPUT=column(5, 6), START=column(1, 0), END=column(0, 1), READY=column(1, 1), CORRID=ids)
        same(out[0], [[6], [15]])

    yield "controls.onnx", controls
    three, four = np.array([[3]], np.int32), np.array([[4]], np.int32)
    yield "state_sum.onnx", lambda f: same(run(f, INPUT=three, INPUT_STATE=four), [[[7]], [[7]]])

    def inside(f):
        out, state = run(f, input=X24, state=np.ones((2, 2, 3), np.float32), sr=np.array(8))
        same(out, X24.sum(1, keepdims=True) + 1), same(state, np.full((2, 2, 3), 9))

    yield "state_inside.onnx", inside
    ragged = np.array([1, 2, 3, 4, 5], np.float32)
    bounds = np.array([0, 2, 2, 5], np.int32)
    yield "ragged_sum.onnx", lambda f: same(run(f, VALUES=ragged, BOUNDS=bounds)[0], [[3], [0], [12]])
    yield "column.onnx", lambda f: same(run(f, X=ragged)[0], -ragged)

    def padded(f):
        ids, mask = np.array([[3, 1, 4]]), np.ones((1, 3), np.int64)
        alone = run(f, input_ids=ids, attention_mask=mask)
        wide = run(f, input_ids=np.pad(ids, ((0, 0), (0, 2))), attention_mask=np.pad(mask, ((0, 0), (0, 2))))
        for a, b in zip(alone, [wide[0][:, :3], wide[1][:, :3, :3], wide[2]]):
            np.testing.assert_allclose(a, b, atol=1e-6)

    yield "encoder.onnx", padded

    def gather(f):
        same(run(f, INDEX=np.array([[0, -1]]))[0], [[10, 40]])
        fails(lambda: run(f, INDEX=np.array([[4]])), "idx=4 must be within the inclusive range")

    yield "gather.onnx", gather

    def fill(f):
        same(run(f, SHAPE=np.array([2, 3]))[0], np.zeros((2, 3)))
        fails(lambda: run(f, SHAPE=np.array([1 << 31, 1 << 20])), "")
        fails(lambda: run(f, SHAPE=np.array([-1, 2])), "")

    yield "fill.onnx", fill
    # Python decodes strings as UTF-8 and cannot show the fourth; the sizes are enough here.
    yield "string_constant.onnx", lambda f: session(f)
    codes = np.array([["\U0001f600", "a", "\0", "", "b"]], dtype=object)
    yield "string_codes.onnx", lambda f: print("   codes:", run(f, X=codes)[0].tolist())

    def loop(f):
        same(run(f, ITERATIONS=np.array([1000]))[0], [1000])
        began = time.perf_counter()
        run(f, ITERATIONS=np.array([100_000]))
        print(f"   {(time.perf_counter() - began) * 10:.1f} µs a step")

    yield "loop.onnx", loop

    def mlp(f):
        s = session(f)
        for batch in (1, 8):
            x = np.random.default_rng(1).random((batch, 512), dtype=np.float32)
            (y,) = s.run(None, {"X": x})
            assert y.shape == (batch, 16) and np.isfinite(y).all() and np.abs(y).max() > 1e-3
            began = time.perf_counter()
            for _ in range(200):
                s.run(None, {"X": x})
            print(f"   batch {batch}: {(time.perf_counter() - began) * 5:.2f} ms, largest {np.abs(y).max():.3g}")

    yield "mlp.onnx", mlp
    for name, keys in (("int64", [0, 1, 2]), ("string", ["red", "green", "blue"])):

        def zipmap(f, keys=keys):
            label, probabilities = run(f, X=np.eye(4, dtype=np.float32)[:3])
            assert label.tolist() == keys, label
            assert [sorted(p) for p in probabilities] == [sorted(keys)] * 3
            assert all(abs(sum(p.values()) - 1) < 1e-6 for p in probabilities)

        yield f"zipmap_{name}.onnx", zipmap
    yield "sequence_output.onnx", lambda f: same(run(f, A=X24[0], B=X24[1])[0], X24)
    yield "external_data.onnx", lambda f: same(run(f, X=X24)[0], X24 + np.array([11, 22, 33, 44], np.float32))


def fails(action, part):
    try:
        action()
    except Exception as e:  # noqa: BLE001 the runtime has many
        text = " ".join(str(e).split())
        assert part in text, text
        print(f"   fails: {text[:150]}")
        return
    raise AssertionError("did not fail")


def main() -> int:
    passed, failed = 0, 0
    todo = dict(checks())
    for name, fate in fates():
        try:
            if fate == "runs":
                todo.pop(name)(name)
            elif name in LOADED_BY_THE_RUNTIME:
                session(name)
            else:
                fails(lambda: session(name), "")
            passed += 1
            print(f"ok {name}")
        except Exception as e:  # noqa: BLE001
            failed += 1
            print(f"FAILED {name}: {type(e).__name__} {e}")
    failed += len(todo)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
