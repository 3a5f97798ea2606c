#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Creates models/simple/1/model.onnx: the sum and the difference of two INT32 vectors of 16. The output is reproducible."""
from pathlib import Path

from onnx import TensorProto, checker, helper

TARGET = Path(__file__).resolve().parent.parent / "models" / "simple" / "1" / "model.onnx"


def main() -> None:
    def vector(name):
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])

    graph = helper.make_graph(
        [
            helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"], name="sum"),
            helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"], name="difference"),
        ],
        "simple",
        [vector("INPUT0"), vector("INPUT1")],
        [vector("OUTPUT0"), vector("OUTPUT1")],
    )
    model = helper.make_model(
        graph, producer_name="nereid", ir_version=8, opset_imports=[helper.make_opsetid("", 14)]
    )
    checker.check_model(model, full_check=True)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(model.SerializeToString(deterministic=True))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
