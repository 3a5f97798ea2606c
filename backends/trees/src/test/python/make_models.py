# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the models of the tests, and writes down what the Python packages answer.

Usage: make_models.py DIRECTORY [xgboost|lightgbm|early|contributions] [PREFIX]

Each model is a file beside NAME.expected, which holds, little-endian: the four counts of rows, features, answers of a
row and margins of a row (int32), the rows, the answers and the margins (float64).

With "contributions" the models that are there already are asked for what each feature contributes to every third of
those rows: NAME.contributions holds, little-endian, the counts of rows, outputs and features + 1 (int32), and the values
(float64). A model that the installed package cannot explain gets none.
"""
import os
import sys

import numpy as np

ROWS = 400
FEATURES = 6


def data(seed, missing, categories, wide=False):
    """Rows of six features; the last two are categories when that is asked for."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, FEATURES))
    x[:, 1] = np.round(x[:, 1], 1)
    x[rng.random(ROWS) < 0.4, 2] = 0.0
    if categories:
        x[:, 4] = rng.integers(0, 12, ROWS)
        x[:, 5] = rng.integers(0, 70, ROWS)
    if not wide:
        x = x.astype(np.float32).astype(np.float64)
    score = x[:, 0] + np.sin(2 * x[:, 1]) - x[:, 2] * x[:, 3]
    if categories:
        score = score + (x[:, 4] % 3) - (x[:, 5] % 5 == 0)
    else:
        score = score + 0.5 * x[:, 4] - 0.2 * x[:, 5] ** 2
    if missing:
        x[rng.random(x.shape) < 0.15] = np.nan
    return x, score


def probes(x, thresholds, categories, seed, infinite):
    """Rows to ask about: some that were learned, some new, some made of thresholds, zeros and what is missing."""
    rng = np.random.default_rng(seed + 1)
    some = x[:20].copy()
    new = rng.normal(size=(20, FEATURES)) * 2
    edges = np.zeros((24, FEATURES))
    for f in range(FEATURES):
        if len(thresholds.get(f, [])):
            edges[:, f] = rng.choice(np.asarray(thresholds[f], dtype=np.float64), 24)
    edges[0] = 0.0
    edges[1] = -0.0
    edges[2] = np.nan
    edges[3] = 1e-36
    edges[4, 2] = np.nan
    edges[5:8][rng.random((3, FEATURES)) < 0.5] = np.nan
    if categories:
        for part in (new, edges):
            part[:, 4] = rng.integers(-1, 16, len(part))
            part[:, 5] = rng.integers(0, 90, len(part))
        edges[8, 4] = 3.7
        edges[9, 5] = 1e6
        edges[10, 4:] = np.nan
    elif infinite:
        edges[11] = np.inf
        edges[12] = -np.inf
    return np.vstack([some, new, edges]).astype(np.float32).astype(np.float64)


def write(directory, name, x, answers, margins):
    answers = np.asarray(answers, dtype=np.float64).reshape(len(x), -1)
    margins = np.asarray(margins, dtype=np.float64).reshape(len(x), -1)
    with open(os.path.join(directory, name + ".expected"), "wb") as f:
        f.write(np.asarray([len(x), x.shape[1], answers.shape[1], margins.shape[1]], dtype="<i4").tobytes())
        for part in (x, answers, margins):
            f.write(part.astype("<f8").tobytes())


def target(objective, score, rng):
    if objective.startswith("multi"):
        return np.digitize(score, [-1, 0.5]).astype(float)
    if objective in ("reg:logistic", "cross_entropy", "cross_entropy_lambda"):
        return 1 / (1 + np.exp(-score))
    if objective.startswith("binary") or objective in ("rank:map",):
        return (score > 0.3).astype(float)
    if objective in ("count:poisson", "poisson"):
        return rng.poisson(np.exp(np.clip(score, -2, 2))).astype(float)
    if objective in ("reg:gamma", "reg:tweedie", "gamma", "tweedie", "survival:cox", "survival:aft", "mape"):
        return np.exp(np.clip(score, -3, 3)) + 0.01
    if objective in ("reg:squaredlogerror",):
        return np.exp(np.clip(score, -3, 3))
    if objective.startswith("rank") or objective in ("lambdarank", "rank_xendcg"):
        return np.clip(np.digitize(score, [-1, 0, 1]), 0, 3).astype(float)
    return score


def xgboost_models(directory, prefix):
    import json

    import xgboost as xgb

    objectives = [
        "reg:squarederror", "reg:squaredlogerror", "reg:logistic", "reg:pseudohubererror", "reg:absoluteerror",
        "binary:logistic", "binary:logitraw", "binary:hinge", "count:poisson", "reg:gamma", "reg:tweedie",
        "survival:cox", "survival:aft", "multi:softmax", "multi:softprob", "rank:ndcg", "rank:pairwise", "rank:map",
    ]
    cases = []
    for i, objective in enumerate(objectives):
        cases.append((objective, "gbtree", i % 2 == 0, i % 3 == 0, {}))
    for objective in ("reg:squarederror", "binary:logistic", "multi:softprob", "count:poisson", "rank:pairwise"):
        cases.append((objective, "dart", True, objective == "binary:logistic", {}))
        cases.append((objective, "gblinear", True, False, {}))
    for i, objective in enumerate(("binary:logistic", "reg:squarederror", "multi:softprob", "reg:gamma")):
        cases.append((objective, "gbtree", True, True, {"tag": "categories", "max_cat_to_onehot": 1 + 9 * (i % 2)}))
        cases.append((objective, "gbtree", False, False, {"tag": "forest", "num_parallel_tree": 3, "subsample": 0.7}))
    cases.append(("reg:squarederror", "gbtree", True, False, {"tag": "exact", "tree_method": "exact", "max_depth": 12}))
    cases.append(("binary:logistic", "gbtree", True, False, {"tag": "lossguide", "grow_policy": "lossguide",
                                                             "max_leaves": 40, "max_depth": 0}))
    cases.append(("reg:squarederror", "gbtree", True, False, {"tag": "base", "base_score": 0.25}))
    cases.append(("reg:squarederror", "gbtree", True, False, {"tag": "stump", "max_depth": 1}))
    cases.append(("reg:squarederror", "gbtree", True, False, {"tag": "targets", "targets": 3}))
    cases.append(("binary:logistic", "gbtree", True, False, {"tag": "targets", "targets": 3}))
    if int(xgb.__version__.split(".")[0]) >= 2:
        cases.append(("reg:quantileerror", "gbtree", True, False, {"quantile_alpha": 0.3}))
        cases.append(("reg:quantileerror", "gbtree", True, False, {"tag": "several", "quantile_alpha": [0.1, 0.5, 0.9]}))
        cases.append(("reg:squarederror", "gbtree", True, False,
                      {"tag": "vectors", "targets": 3, "multi_strategy": "multi_output_tree"}))
    if int(xgb.__version__.split(".")[0]) < 2:
        cases = cases[:30:3] + cases[-5:]
    for i, (objective, booster, missing, categories, extra) in enumerate(cases):
        extra = dict(extra)
        tag = extra.pop("tag", "")
        targets = extra.pop("targets", 1)
        rng = np.random.default_rng(i)
        x, score = data(i, missing, categories)
        y = target(objective, score, rng)
        if targets > 1:
            y = np.stack([y] + [target(objective, np.roll(score, k) * 0.3 + score, rng) for k in range(1, targets)], 1)
        kind = (["q"] * 4 + ["c", "c"]) if categories else None
        train = xgb.DMatrix(x, y, feature_types=kind, enable_categorical=categories,
                            feature_names=["f%d of it" % f for f in range(FEATURES)] if i % 4 == 0 else None)
        if objective.startswith("rank"):
            train.set_group([20] * (ROWS // 20))
        if objective == "survival:aft":
            train.set_float_info("label_lower_bound", y)
            train.set_float_info("label_upper_bound", np.where(rng.random(ROWS) < 0.3, np.inf, y))
        params = {"objective": objective, "booster": booster, "max_depth": 4, "eta": 0.3, "seed": i, "nthread": 1, **extra}
        if booster == "gblinear":
            del params["max_depth"]
            params["eta"] = 0.5
            x = np.nan_to_num(x)
        else:
            params.setdefault("tree_method", "hist")
        if booster == "dart":
            params["rate_drop"] = 0.4
        if objective.startswith("multi"):
            params["num_class"] = 3
        model = xgb.train(params, train, 7)
        name = prefix + "-".join([p for p in (objective.replace(":", "-"), booster, tag) if p])
        name += ("-missing" if missing else "") + ("-categorical" if categories else "")
        ending = "ubj" if i % 2 else "json"
        model.save_model(os.path.join(directory, name + "." + ending))
        thresholds = {}
        if booster != "gblinear":
            for f, feature in enumerate(model.feature_names or ["f%d" % f for f in range(FEATURES)]):
                found = []
                for t in json.loads(model.save_raw("json"))["learner"]["gradient_booster"].get(
                        "model", {}).get("trees", []):
                    found += [c for c, s, l in zip(t["split_conditions"], t["split_indices"], t["left_children"])
                              if s == f and l != -1]
                thresholds[f] = found
        ask = probes(x, thresholds, categories, i, False)
        if booster == "gblinear":
            ask = ask[:40]
        test = xgb.DMatrix(ask, feature_types=kind, enable_categorical=categories, feature_names=model.feature_names)
        write(directory, name, ask, model.predict(test), model.predict(test, output_margin=True))
        print(name, os.path.getsize(os.path.join(directory, name + "." + ending)))


def lightgbm_models(directory, prefix):
    import lightgbm as lgb

    objectives = ["regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie",
                  "binary", "multiclass", "multiclassova", "cross_entropy", "cross_entropy_lambda", "lambdarank",
                  "rank_xendcg"]
    cases = []
    for i, objective in enumerate(objectives):
        cases.append((objective, "gbdt", i % 2 == 0, i % 3 == 0, {}))
    for objective in ("regression", "binary", "multiclass", "poisson"):
        cases.append((objective, "dart", True, True, {}))
        cases.append((objective, "rf", True, False, {"bagging_freq": 1, "bagging_fraction": 0.6}))
        cases.append((objective, "gbdt", True, True, {"tag": "zero", "zero_as_missing": True}))
        cases.append((objective, "gbdt", True, False, {"tag": "nomissing", "use_missing": False}))
    for objective in ("regression", "binary", "multiclass"):
        cases.append((objective, "gbdt", True, True, {"tag": "linear", "linear_tree": True}))
        cases.append((objective, "gbdt", True, False, {"tag": "wide", "wide": True}))
    cases.append(("binary", "gbdt", True, True, {"tag": "sigmoid", "sigmoid": 1.7}))
    cases.append(("regression", "gbdt", True, False, {"tag": "sqrt", "reg_sqrt": True}))
    cases.append(("regression", "gbdt", True, False, {"tag": "stump", "num_leaves": 2}))
    cases.append(("regression", "gbdt", True, False, {"tag": "constant", "min_data_in_leaf": 1000}))
    cases.append(("regression", "gbdt", True, True, {"tag": "onehot", "max_cat_to_onehot": 20}))
    cases.append(("regression", "gbdt", False, False, {"tag": "zerowide", "zero_as_missing": True, "wide": True}))
    if lgb.__version__.startswith("3."):
        cases = cases[::4]
    for i, (objective, boosting, missing, categories, extra) in enumerate(cases):
        extra = dict(extra)
        tag = extra.pop("tag", "")
        wide = extra.pop("wide", False)
        rng = np.random.default_rng(i)
        x, score = data(100 + i, missing, categories, wide)
        y = target(objective, score, rng)
        train = lgb.Dataset(x, y, categorical_feature=[4, 5] if categories else [],
                            group=[20] * (ROWS // 20) if objective in ("lambdarank", "rank_xendcg") else None)
        params = {"objective": objective, "boosting": boosting, "num_leaves": 12, "learning_rate": 0.2, "seed": i,
                  "num_threads": 1, "verbose": -1, "min_data_in_leaf": 5, "deterministic": True, **extra}
        if objective.startswith("multi"):
            params["num_class"] = 3
        model = lgb.train(params, train, 8)
        name = prefix + "-".join([p for p in (objective, boosting, tag) if p])
        name += ("-missing" if missing else "") + ("-categorical" if categories else "")
        model.save_model(os.path.join(directory, name + ".txt"))
        thresholds = {}

        def walk(node):
            if "split_feature" in node:
                if node["decision_type"] != "==":
                    thresholds.setdefault(node["split_feature"], []).append(float(node["threshold"]))
                walk(node["left_child"])
                walk(node["right_child"])

        for t in model.dump_model()["tree_info"]:
            walk(t["tree_structure"])
        ask = probes(x, thresholds, categories, i, tag != "linear")
        if wide:
            ask = np.vstack([ask, x[20:60]])
            for f, found in thresholds.items():
                ask[-20:, f] = rng.choice(found, 20)
        write(directory, name, ask, model.predict(ask), model.predict(ask, raw_score=True))
        print(name, os.path.getsize(os.path.join(directory, name + ".txt")))


def early_models(directory, prefix):
    """XGBoost with early stopping: NAME.json, and NAME-best.expected, NAME-range.expected, NAME-all.expected."""
    import xgboost as xgb

    for objective in ("binary:logistic", "multi:softprob", "reg:squarederror"):
        rng = np.random.default_rng(3)
        x, score = data(3, True, False)
        y = target(objective, score, rng)
        noisy = target(objective, score + rng.normal(size=len(score)) * 2, rng)
        params = {"objective": objective, "max_depth": 4, "eta": 0.8, "seed": 3, "nthread": 1}
        if objective.startswith("multi"):
            params["num_class"] = int(y.max()) + 1
        booster = xgb.train(params, xgb.DMatrix(x, noisy), 40, evals=[(xgb.DMatrix(x, y), "e")], early_stopping_rounds=4,
                            verbose_eval=False)
        name = prefix + objective.replace(":", "-")
        booster.save_model(os.path.join(directory, name + ".json"))
        for tag, ends in (("best", (0, booster.best_iteration + 1)), ("range", (1, 3)), ("all", (0, 0))):
            ask = xgb.DMatrix(x[:30])
            answers = booster.predict(ask, iteration_range=ends).reshape(30, -1)
            margins = booster.predict(ask, iteration_range=ends, output_margin=True).reshape(30, -1)
            with open(os.path.join(directory, name + "-" + tag + ".expected"), "wb") as out:
                np.array([30, FEATURES, answers.shape[1], margins.shape[1]], "<i4").tofile(out)
                for part in (x[:30], answers, margins):
                    np.ascontiguousarray(part, "<f8").tofile(out)
        print(name, booster.best_iteration, booster.num_boosted_rounds())


def contributions(directory, prefix):
    for file in sorted(os.listdir(directory)):
        name, ending = os.path.splitext(file)
        path = os.path.join(directory, file)
        if ending not in (".json", ".ubj", ".txt") or not name.startswith(prefix):
            continue
        expected = os.path.join(directory, name + ".expected")
        if not os.path.exists(expected):
            expected = os.path.join(directory, name + "-all.expected")
        with open(expected, "rb") as f:
            rows, features, _, _ = np.fromfile(f, "<i4", 4)
            ask = np.fromfile(f, "<f8", rows * features).reshape(rows, features)[::3]
        try:
            if ending == ".txt":
                import lightgbm as lgb

                found = lgb.Booster(model_file=path).predict(ask, pred_contrib=True)
            else:
                import xgboost as xgb

                model = xgb.Booster(model_file=path)
                found = model.predict(xgb.DMatrix(ask, feature_names=model.feature_names,
                                                  feature_types=model.feature_types,
                                                  enable_categorical=True), pred_contribs=True)
        except Exception as e:
            print(name, "none:", str(e).strip().splitlines()[-1 if ending == ".txt" else 0][:120])
            continue
        found = np.asarray(found, dtype="<f8").reshape(len(ask), -1, features + 1)
        with open(os.path.join(directory, name + ".contributions"), "wb") as out:
            np.asarray(found.shape, "<i4").tofile(out)
            found.tofile(out)
        print(name, found.shape)


if __name__ == "__main__":
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    given = sys.argv[3] if len(sys.argv) > 3 else ""
    {"xgboost": xgboost_models, "lightgbm": lightgbm_models, "early": early_models,
     "contributions": contributions}[sys.argv[2]](out, given)
