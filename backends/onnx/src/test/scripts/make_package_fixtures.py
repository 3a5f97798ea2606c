#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the ONNX models in ../resources/packages as skl2onnx and onnxruntime-extensions write them, with what those packages
answer in expected.json.

    python3 -m venv venv && venv/bin/pip install -r requirements-packages.txt
    venv/bin/python make_package_fixtures.py
"""
import json
from pathlib import Path

import numpy as np
import onnxruntime
import onnxruntime_extensions
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

PLACE = Path(__file__).resolve().parent.parent / "resources" / "packages"
ROWS = 4
OPSET = {"": 17, "ai.onnx.ml": 3}
expected = {}


def plain(array):
    """An array, or what ZipMap makes, as lists."""
    if isinstance(array, list):
        return [[float(v) for v in row.values()] for row in array]
    return [v.decode() if isinstance(v, bytes) else v for v in array.ravel().tolist()] if array.ndim == 1 else array.tolist()


def save(name, data, feeds, options=None, library=False):
    (PLACE / f"{name}.onnx").write_bytes(data)
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    answers = session.run(None, feeds)
    expected[name] = {
        "library": library,
        "inputs": {k: {"type": str(v.dtype), "shape": list(v.shape), "data": v.ravel().tolist()} for k, v in feeds.items()},
        "outputs": {o.name: plain(a) for o, a in zip(session.get_outputs(), answers)},
    }
    return answers


def classifier(name, estimator, x, y, **options):
    """A classifier; the converted model gives the results of scikit-learn."""
    estimator.fit(x, y)
    rows = x[:ROWS].astype(np.float32)
    made = to_onnx(estimator, rows[:1], target_opset=OPSET, options={id(estimator): options} if options else None)
    label, *scores = save(name, made.SerializeToString(), {"X": rows})
    assert [str(v) for v in label] == [str(v) for v in estimator.predict(rows)], name
    if not options:
        assert np.allclose(plain(scores[0]), estimator.predict_proba(rows), atol=1e-5), name
        expected[name]["classes"] = [str(c) for c in estimator.classes_]


def classifiers() -> None:
    x, three = make_classification(60, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=1)
    x = x.astype(np.float32)
    names = np.array(["red", "green", "blue"])[three]
    two = np.array(["no", "yes"])[(three > 0).astype(int)]
    classifier("logistic_numbers", LogisticRegression(), x, three)
    classifier("logistic_names", LogisticRegression(), x, names)
    classifier("logistic_two", LogisticRegression(), x, two)
    classifier("far_numbers", LogisticRegression(), x, three * 100 - 7)
    classifier("tree", DecisionTreeClassifier(max_depth=3, random_state=1), x, three)
    classifier("forest", RandomForestClassifier(5, max_depth=3, random_state=1), x, names)
    classifier("scaled", make_pipeline(StandardScaler(), LogisticRegression()), x, names)
    classifier("mlp", MLPClassifier((6,), random_state=1, max_iter=300), x, three)
    classifier("svc", SVC(probability=True, random_state=1), x, names)
    classifier("columns_of_scores", LogisticRegression(), x, names, zipmap="columns")
    classifier("tensor_of_scores", LogisticRegression(), x, names, zipmap=False)

    import pandas as pd

    frame = pd.DataFrame({"age": np.arange(40) % 17 + 20, "city": [["Bern", "Basel", "Chur"][i % 3] for i in range(40)]})
    frame["age"] = frame["age"].astype(np.float32)
    wanted = np.array(["young", "old"])[((frame["age"] > 28) & (frame["city"] != "Chur")).astype(int)]
    model = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["city"])]),
        LogisticRegression(),
    ).fit(frame, wanted)
    types = [("age", FloatTensorType([None, 1])), ("city", StringTensorType([None, 1]))]
    made = to_onnx(model, initial_types=types, target_opset=OPSET)
    rows = frame[:ROWS]
    label, scores = save(
        "mixed_columns",
        made.SerializeToString(),
        {"age": rows[["age"]].to_numpy(np.float32), "city": rows[["city"]].to_numpy(object)},
    )
    assert list(label) == list(model.predict(rows)) and np.allclose(plain(scores), model.predict_proba(rows), atol=1e-5)
    expected["mixed_columns"]["classes"] = list(model.classes_)


def custom(name, nodes, inputs, outputs, feeds):
    """A model with operators of onnxruntime-extensions."""
    graph = helper.make_graph(nodes, name, inputs, outputs)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    save(name, model.SerializeToString(), feeds, options, library=True)


def contrib(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, domain="ai.onnx.contrib", **attributes)


def info(name, kind, *dims):
    return helper.make_tensor_value_info(name, kind, list(dims))


def custom_operators() -> None:
    text, number = TensorProto.STRING, TensorProto.INT64
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] the a man cat play ##s ##ing runs , .".split()
    custom(
        "bert_tokenizer",
        [
            contrib(
                "BertTokenizer",
                ["text"],
                ["input_ids", "token_type_ids", "attention_mask"],
                vocab_file="\n".join(words).encode(),
                do_lower_case=1,
                strip_accents=1,
            )
        ],
        [info("text", text, 1)],
        [info(n, number, "tokens") for n in ("input_ids", "token_type_ids", "attention_mask")],
        {"text": np.array(["The man runs, a cät plays."], dtype=object)},
    )
    custom(
        "regex_replace",
        [
            helper.make_node("Constant", [], ["pattern"], value_string=r"(\d+)-(\d+)"),
            helper.make_node("Constant", [], ["rewrite"], value_string=r"\2-\1"),
            helper.make_node("Constant", [], ["one"], value_ints=[1]),
            helper.make_node("Reshape", ["pattern", "one"], ["pattern1"]),
            helper.make_node("Reshape", ["rewrite", "one"], ["rewrite1"]),
            contrib("StringRegexReplace", ["text", "pattern1", "rewrite1"], ["replaced"], global_replace=1),
            contrib("StringUpper", ["replaced"], ["upper"]),
        ],
        [info("text", text, "n")],
        [info("upper", text, "n")],
        {"text": np.array(["tel 12-345", "none", "1-2 and 3-4"], dtype=object)},
    )
    custom(
        "hash_bucket",
        [
            helper.make_node("Constant", [], ["buckets"], value_ints=[1000]),
            contrib("StringToHashBucketFast", ["text", "buckets"], ["bucket"]),
        ],
        [info("text", text, "n")],
        [info("bucket", number, "n")],
        {"text": np.array(["a", "bc", "", "déjà"], dtype=object)},
    )


def main() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    for old in PLACE.iterdir():
        old.unlink()
    classifiers()
    custom_operators()
    (PLACE / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(expected)} models, {sum(p.stat().st_size for p in PLACE.iterdir())} bytes in {PLACE}")


if __name__ == "__main__":
    main()
