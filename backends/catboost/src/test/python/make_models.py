# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the models of the tests, and writes down what the package answers.

Usage: make_models.py DIRECTORY

Each model is NAME.cbm and NAME.json; expected.json holds for each its columns, rows, and the answers of its methods. Made with
catboost 1.2.10.
"""
import json
import math
import os
import sys

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor, Pool

OUT = sys.argv[1]
rng = np.random.RandomState(11)
N = 240
X = rng.randn(N, 4).astype(np.float32)
score = X[:, 0] + np.sin(2 * X[:, 1]) - X[:, 2] * X[:, 3]
missing = X.copy()
missing[rng.rand(*X.shape) < 0.2] = np.nan
new = (2 * rng.randn(30, 4)).astype(np.float32)
holes = new.copy()
holes[rng.rand(*new.shape) < 0.3] = np.nan
frame = pd.DataFrame({
    "age": X[:, 0], "city": rng.choice(["Bern", "Zürich", "Genève", "Basel", "Chur"], N),
    "size": rng.choice(["S", "M"], N), "income": X[:, 1], "code": rng.randint(0, 40, N).astype(str)})
value = score + (frame["city"] == "Bern") * 2 + (frame["code"].astype(int) % 3)
asked = frame.iloc[:30].copy()
asked.loc[asked.index[5], "city"] = "Paris"
asked.loc[asked.index[6], "code"] = "999"
asked.loc[asked.index[7], "size"] = ""
cats = ["city", "size", "code"]
base = dict(iterations=8, depth=3, verbose=0, allow_writing_files=False, random_seed=3, thread_count=1, learning_rate=0.3)
expected = {}


def plain(a):
    a = np.asarray(a)
    if a.ndim == 2 and a.shape[1] == 1:
        a = a[:, 0]
    a = a.tolist()
    return [None if isinstance(v, float) and math.isnan(v) else v for v in a] if a and not isinstance(a[0], list) else a


def add(name, model, x, y, q, cat=None):
    pool = Pool(x, y, cat_features=cat)
    model.fit(pool)
    model.save_model(os.path.join(OUT, name + ".cbm"))
    model.save_model(os.path.join(OUT, name + ".json"), format="json", pool=pool)
    answers = {"predict": plain(model.predict(q)), "margin": plain(model.predict(q, prediction_type="RawFormulaVal"))}
    if isinstance(model, CatBoostClassifier):
        answers["predict_proba"] = plain(model.predict_proba(q))
        if model.get_all_params()["loss_function"] in ("Logloss", "MultiClass"):
            answers["predict_log_proba"] = plain(model.predict_log_proba(q))
    rows = [[None if isinstance(v, float) and math.isnan(v) else v for v in row] for row in np.asarray(q, dtype=object).tolist()]
    expected[name] = {"columns": list(map(str, q.columns)) if hasattr(q, "columns") else None, "rows": rows, "answers": answers}


yes = (score > 0).astype(int)
three = np.digitize(score, [-0.7, 0.8])
names = np.array(["low", "mid", "high"])[three]
counts = np.floor(np.exp(np.clip(score, -2, 2)))
for loss in ["RMSE", "MAE", "Quantile:alpha=0.7", "Huber:delta=1.0", "LogCosh", "RMSEWithUncertainty"]:
    add("reg-" + loss.split(":")[0].lower(), CatBoostRegressor(loss_function=loss, **base), X, score, new)
add("reg-poisson", CatBoostRegressor(loss_function="Poisson", **base), X, counts, new)
add("reg-tweedie", CatBoostRegressor(loss_function="Tweedie:variance_power=1.5", **base), X, counts, new)
add("reg-multi", CatBoostRegressor(loss_function="MultiRMSE", **base), X, np.c_[score, X[:, 0]], new)
add("reg-nan-min", CatBoostRegressor(nan_mode="Min", **base), missing, score, holes)
add("reg-nan-max", CatBoostRegressor(nan_mode="Max", **base), missing, score, holes)
for policy in ["Lossguide", "Depthwise"]:
    add("reg-" + policy.lower(), CatBoostRegressor(grow_policy=policy, **base), missing, score, holes)
    add("three-" + policy.lower(), CatBoostClassifier(grow_policy=policy, **base), X, three, new)
add("two", CatBoostClassifier(**base), X, yes, new)
add("two-names", CatBoostClassifier(**base), X, np.where(yes, "yes", "no"), new)
add("two-bool", CatBoostClassifier(**base), X, yes == 1, new)
add("two-cross", CatBoostClassifier(loss_function="CrossEntropy", **base), X, 1 / (1 + np.exp(-score)), new)
threshold = CatBoostClassifier(**base)
threshold.fit(X, yes)
threshold.set_probability_threshold(0.3)
threshold.fit = lambda pool: threshold
add("two-threshold", threshold, X, yes, new)
scaled = CatBoostRegressor(**base)
scaled.fit(X, score)
scaled.set_scale_and_bias(0.5, -3.25)
scaled.fit = lambda pool: scaled
add("reg-scaled", scaled, X, score, new)
add("three", CatBoostClassifier(**base), X, three, new)
add("three-names", CatBoostClassifier(**base), X, names, new)
add("three-all", CatBoostClassifier(loss_function="MultiClassOneVsAll", **base), X, three + 5, new)
add("tags", CatBoostClassifier(loss_function="MultiLogloss", **base), X, np.c_[yes, three > 1, three > 0].astype(int), new)
add("tags-cross", CatBoostClassifier(loss_function="MultiCrossEntropy", **base), X, np.c_[yes, three > 1].astype(int), new)
wide = dict(base, iterations=30, depth=6)
add("deep", CatBoostRegressor(**wide), missing, score, holes)
add("cat-reg", CatBoostRegressor(**wide), frame, value, asked, cats)
add("cat-onehot", CatBoostRegressor(one_hot_max_size=10, **wide), frame, value, asked, cats)
add("cat-two", CatBoostClassifier(**wide), frame, (value > 1).astype(int), asked, cats)
add("cat-three", CatBoostClassifier(**wide), frame, np.digitize(value, [0, 2]), asked, cats)
for kind in ["Borders", "Buckets", "BinarizedTargetMeanValue", "Counter"]:
    add("cat-" + kind.lower(), CatBoostRegressor(simple_ctr=[kind], combinations_ctr=[kind], **wide), frame, value, asked, cats)
add("cat-buckets-three", CatBoostClassifier(simple_ctr=["Buckets", "Counter"], combinations_ctr=["Borders"], **wide), frame,
    np.digitize(value, [0, 2]), asked, cats)
add("cat-deep", CatBoostRegressor(max_ctr_complexity=4, **dict(wide, one_hot_max_size=2)), frame, value, asked, cats)
add("cat-lossguide", CatBoostRegressor(grow_policy="Lossguide", **wide), frame, value, asked, cats)
# Categories of every length, whole numbers as categories, numbers that are missing within combinations.
words = ["", "a", "ab", "abc", "abcd", "Zürich", "12345678", "123456789", "x" * 16, "y" * 17, "z" * 32, "Löwe" * 7, "w" * 64,
         "v" * 65, "u" * 128, "abcdefghij" * 13]
kinds = pd.DataFrame({
    "word": rng.choice(words, N), "number": np.where(rng.rand(N) < 0.3, np.nan, X[:, 0]),
    "zip": rng.choice([-5, 0, 7, 1000, 99999999999], N), "unused": np.zeros(N)})
strange = value + kinds["word"].str.len() % 5 + (kinds["zip"] == 7)
other = kinds.iloc[:40].copy()
other.loc[other.index[3], "word"] = "q" * 70
other.loc[other.index[4], "zip"] = 8
for mode in ["Min", "Max"]:
    add("cat-words-" + mode.lower(), CatBoostRegressor(nan_mode=mode, max_ctr_complexity=3, **dict(wide, one_hot_max_size=4)), kinds,
        strange, other, ["word", "zip"])
add("cat-none", CatBoostClassifier(**base), frame[["age", "income", "city"]].assign(city="x"), yes, asked[["age", "income", "city"]], ["city"])
constant = CatBoostRegressor(grow_policy="Lossguide", max_leaves=1, **{k: v for k, v in base.items() if k != "depth"})
add("reg-leaf", constant, X, score, new)
with open(os.path.join(OUT, "expected.json"), "w") as out:
    out.write("{\n" + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in sorted(expected.items())) + "\n}\n")
print(len(expected), "models")
