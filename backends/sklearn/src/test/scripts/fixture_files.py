# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Saves fitted models in all ways of pickle and joblib, and what they return beside them."""
import fnmatch
import json
import math
import os
import pickle
import zlib

import joblib
import numpy as np
import sklearn

METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples"]


def plain(value, method):
    # CatBoost's labels of several classes are a column.
    if method == "predict" and getattr(value, "ndim", 0) == 2 and value.shape[1] == 1 and value.dtype.kind in "OUi":
        value = value.ravel()
    if isinstance(value, list):
        # Probabilities of several targets, side by side.
        value = np.hstack(value)
    if hasattr(value, "toarray"):
        value = value.toarray()
    value = np.asarray(value)
    if value.dtype.kind == "b" or value.dtype.kind in "iu":
        return value.tolist()
    return json.loads(json.dumps(value.tolist()), parse_constant=lambda c: c)


WAYS = [
    ("pkl", lambda m, p: pickle.dump(m, open(p, "wb"))),
    ("joblib", lambda m, p: joblib.dump(m, p)),
    ("pickle", lambda m, p: pickle.dump(m, open(p, "wb"), protocol=2)),
    ("joblib", lambda m, p: joblib.dump(m, p, compress=("zlib", 9))),
    ("joblib", lambda m, p: joblib.dump(m, p, compress=("gzip", 9))),
    ("pkl", lambda m, p: pickle.dump(m, open(p, "wb"), protocol=5)),
]


def way(name, model):
    if name.endswith("_skops"):
        import skops.io

        return "skops", skops.io.dump
    return WAYS[zlib.crc32(name.encode()) % len(WAYS)]


def scores(model):
    """Whether score_samples is one of the methods; PCA and others have it, and nothing serves it there."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return type(last).__name__ in {
        "IsolationForest", "GaussianMixture", "BayesianGaussianMixture", "OneClassSVM", "LocalOutlierFactor", "EllipticEnvelope",
        "SGDOneClassSVM", "KernelDensity"}


def save(directory, models, wanted=(), floats=(), unwrapped=()):
    """Writes the models, all or those whose names match one of the patterns, and expected.json with their results.

    models: by name, the model, its rows and its columns' names; floats: those that compute in 32 bits; unwrapped: what is saved in the
    place of a model.
    """
    expected = {}
    path = os.path.join(directory, "expected.json")
    if wanted:
        models = {name: models[name] for name in models if any(fnmatch.fnmatch(name, given) for given in wanted)}
        with open(path) as before:
            expected = json.load(before)
    for name, (model, q, columns) in sorted(models.items()):
        answers = {}
        for method in METHODS:
            if hasattr(model, method) and (method != "score_samples" or scores(model)):
                try:
                    with np.errstate(all="ignore"):
                        answers[method] = plain(getattr(model, method)(q), method)
                except Exception as e:
                    # Some versions have errors of their own, such as neighbours of 1.5 with texts as labels.
                    print(f"{name} has no {method}: {type(e).__name__}: {e}")
        ending, dump = way(name, model)
        # Bytes that do not depend on who made them would be nice; the random state inside is what differs.
        before = expected.get(name, {}).get("file")
        if before and os.path.exists(os.path.join(directory, before)):
            os.remove(os.path.join(directory, before))
        dump(unwrapped[name] if name in unwrapped else model, os.path.join(directory, name + "." + ending))
        q = q.toarray() if hasattr(q, "toarray") else q
        rows = q.values.tolist() if hasattr(q, "values") else q.tolist() if q.ndim > 1 else [[v] for v in q.tolist()]
        rows = [[None if isinstance(v, float) and math.isnan(v) else v for v in row] for row in rows]
        expected[name] = {"file": name + "." + ending, "columns": columns, "rows": rows, "answers": answers}
        if name in floats:
            expected[name]["tolerance"] = 1e-6
    with open(path, "w") as out:
        out.write("{\n" + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in sorted(expected.items())) + "\n}\n")
    print(sklearn.__version__, len(expected), "models")
