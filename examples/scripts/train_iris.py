#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains models/iris/1/model.onnx: scaled logistic regression on Fisher's iris flowers (150 rows, bundled with scikit-learn).

Input `input` FP32[batch,4] (sepal length, sepal width, petal length, petal width, in cm), outputs `label` INT64[batch,1]
(an index into labels.txt) and `probabilities` FP32[batch,3]. With the pinned versions of requirements.txt the bytes are
the same every time on one machine; another BLAS may change the last digit of a coefficient.
"""
from pathlib import Path

import numpy as np
import onnx
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MODEL = Path(__file__).resolve().parent.parent / "models" / "iris"


def name_batch(value) -> None:
    """Names the batch dimension, which skl2onnx leaves unnamed."""
    dims = value.type.tensor_type.shape.dim
    if not dims:
        dims.add()
    dims[0].Clear()
    dims[0].dim_param = "batch"


def label_per_row(graph) -> None:
    """Reshapes `label` from [batch] to [batch, 1], so that every tensor has a dimension beyond the batch."""
    for node in graph.node:
        node.output[:] = ["label_flat" if name == "label" else name for name in node.output]
    graph.initializer.append(onnx.helper.make_tensor("last_axis", onnx.TensorProto.INT64, [1], [1]))
    graph.node.append(onnx.helper.make_node("Unsqueeze", ["label_flat", "last_axis"], ["label"], name="label_per_row"))
    label = next(output for output in graph.output if output.name == "label")
    label.type.tensor_type.shape.dim.add().dim_value = 1


def main() -> None:
    data = load_iris()
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=10.0, max_iter=1000, tol=1e-8))
    accuracy = cross_val_score(classifier, data.data, data.target, cv=10).mean()
    classifier.fit(data.data, data.target)
    model = to_onnx(
        classifier,
        initial_types=[("input", FloatTensorType([None, 4]))],
        target_opset={"": 15, "ai.onnx.ml": 3},
        options={id(classifier): {"zipmap": False, "output_class_labels": False}},
        name="iris",
    )
    for output, name in zip(model.graph.output, ["label", "probabilities"]):
        assert output.name == name, output.name
    for value in [*model.graph.input, *model.graph.output]:
        name_batch(value)
    label_per_row(model.graph)
    del model.opset_import[:]
    model.opset_import.extend([onnx.helper.make_opsetid("", 15), onnx.helper.make_opsetid("ai.onnx.ml", 1)])
    model.domain = ""
    model.ir_version = 8
    model.producer_name = "nereid"
    model.producer_version = ""
    model.doc_string = ""
    model.graph.doc_string = ""
    onnx.checker.check_model(model, full_check=True)
    target = MODEL / "1" / "model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(model.SerializeToString(deterministic=True))
    (MODEL / "labels.txt").write_text("".join(f"{name}\n" for name in data.target_names))
    print(f"{target}: {target.stat().st_size} bytes, accuracy over ten folds {accuracy:.3f}")
    for row in ([5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [6.9, 3.1, 5.4, 2.1]):
        print(row, classifier.predict_proba(np.array([row])).round(4)[0].tolist())


if __name__ == "__main__":
    main()
