"""Makes the models in src/test/resources/mlflow with the mlflow package, and writes down what its pyfunc.predict answers.

    pip install mlflow-skinny scikit-learn xgboost-cpu lightgbm cloudpickle onnx skl2onnx onnxruntime pandas skops
    python make_models.py

Each model's directory gets expected.json: requests, as /invocations takes them, with the answers of
mlflow.pyfunc.load_model(directory).predict.
"""

import json
import pathlib
import shutil
import sys
import warnings

import lightgbm
import mlflow
import mlflow.lightgbm
import mlflow.onnx
import mlflow.pyfunc
import mlflow.sklearn
import mlflow.xgboost
import numpy as np
import pandas as pd
import xgboost
from mlflow.models import infer_signature
from skl2onnx import to_onnx
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[1] / "resources" / "mlflow"

rng = np.random.default_rng(7)
N = 120
X = pd.DataFrame(
    {
        "sepal length": rng.normal(5.8, 0.8, N),
        "sepal width": rng.normal(3.0, 0.4, N),
        "petal length": rng.normal(3.7, 1.7, N),
        "petal width": rng.normal(1.2, 0.7, N),
    }
).round(3)
Y = (X["petal length"] > 2.5).astype(int) + (X["petal width"] > 1.5).astype(int)
M = pd.DataFrame(
    {
        "age": rng.integers(18, 80, N),
        "city": rng.choice(["Bern", "Basel", "Chur"], N),
        "income": rng.normal(60, 12, N).round(2),
    }
)
MY = ((M["age"] > 40) ^ (M["city"] == "Bern")).map({True: "yes", False: "no"})


def plain(value):
    if isinstance(value, pd.DataFrame):
        return {c: value[c].tolist() for c in value.columns}
    if isinstance(value, dict):
        return {k: np.asarray(v).tolist() for k, v in value.items()}
    return np.asarray(value).tolist()


def finish(name, *requests):
    """Writes down requests and answers; drops what only Python needs."""
    directory = ROOT / name
    model = mlflow.pyfunc.load_model(str(directory))
    cases = []
    for request in requests:
        if "dataframe_split" in request:
            split = request["dataframe_split"]
            data = pd.DataFrame(split["data"], columns=split["columns"])
            if model.metadata.signature:
                data = data.astype({c: t for c, t in M.dtypes.items() if c in data} or float)
        else:
            data = np.asarray(request["inputs"], dtype=np.float32 if "onnx" in name else np.float64)
        cases.append({"request": request, "answer": plain(model.predict(data))})
    (directory / "expected.json").write_text(json.dumps(cases))
    for junk in ("conda.yaml", "python_env.yaml", "requirements.txt"):
        (directory / junk).unlink(missing_ok=True)
    print(name, sum(f.stat().st_size for f in directory.rglob("*") if f.is_file()))


def split(frame, rows=slice(0, 9)):
    frame = frame[rows]
    return {"dataframe_split": {"columns": list(frame.columns), "data": frame.values.tolist()}}


def fresh(name):
    shutil.rmtree(ROOT / name, ignore_errors=True)
    return str(ROOT / name)


NO = {"pip_requirements": []}
ROOT.mkdir(parents=True, exist_ok=True)
backwards = X[X.columns[::-1]]

m = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
s = infer_signature(X, m.predict(X))
for fmt in ("cloudpickle", "pickle", "skops"):
    mlflow.sklearn.save_model(
        m, fresh("sklearn-" + fmt), signature=s, input_example=X[:2], serialization_format=fmt, **NO
    )
    finish("sklearn-" + fmt, split(X), split(backwards))
mlflow.sklearn.save_model(
    m,
    fresh("sklearn-proba"),
    signature=s,
    serialization_format="cloudpickle",
    pyfunc_predict_fn="predict_proba",
    **NO,
)
finish("sklearn-proba", split(X))
m = LogisticRegression().fit(X.values, Y)
mlflow.sklearn.save_model(m, fresh("sklearn-unsigned"), serialization_format="cloudpickle", **NO)
finish("sklearn-unsigned", {"inputs": X[:9].values.tolist()})
m = make_pipeline(
    ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder="passthrough"),
    RandomForestClassifier(5, max_depth=3, random_state=1),
).fit(M, MY)
for fmt in ("cloudpickle", "skops"):
    mlflow.sklearn.save_model(
        m,
        fresh("sklearn-mixed-" + fmt),
        signature=infer_signature(M, m.predict(M)),
        serialization_format=fmt,
        skops_trusted_types=["sklearn.tree._tree.Tree"] if fmt == "skops" else None,
        **NO,
    )
    finish("sklearn-mixed-" + fmt, split(M), split(M[M.columns[::-1]]))
m = ElasticNet(alpha=0.1).fit(X, X["petal length"] * 2 + X["sepal width"])
F = X.astype(np.float32)
mlflow.sklearn.save_model(
    m, fresh("sklearn-float"), signature=infer_signature(F, m.predict(F)), serialization_format="cloudpickle", **NO
)
directory = ROOT / "sklearn-float"
cases = [{"request": split(X), "answer": plain(mlflow.pyfunc.load_model(str(directory)).predict(F[:9]))}]
(directory / "expected.json").write_text(json.dumps(cases))

m = xgboost.XGBClassifier(n_estimators=4, max_depth=3).fit(X, Y)
mlflow.xgboost.save_model(m, fresh("xgboost-classifier"), signature=infer_signature(X, m.predict(X)), **NO)
finish("xgboost-classifier", split(X), split(backwards))
m = xgboost.XGBRegressor(n_estimators=4, max_depth=3).fit(X, X["petal length"])
mlflow.xgboost.save_model(
    m, fresh("xgboost-regressor"), signature=infer_signature(X, m.predict(X)), model_format="json", **NO
)
finish("xgboost-regressor", split(X))
m = xgboost.train(
    {"objective": "multi:softprob", "num_class": 3, "max_depth": 3}, xgboost.DMatrix(X, label=Y), num_boost_round=3
)
mlflow.xgboost.save_model(m, fresh("xgboost-booster"), signature=infer_signature(X), **NO)
finish("xgboost-booster", split(X))

m = lightgbm.train(
    {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_leaves": 5}, lightgbm.Dataset(X, label=Y), 3
)
mlflow.lightgbm.save_model(m, fresh("lightgbm-booster"), signature=infer_signature(X, m.predict(X)), **NO)
finish("lightgbm-booster", split(X), split(backwards))
m = lightgbm.LGBMClassifier(n_estimators=20, num_leaves=5, min_child_samples=5, verbose=-1).fit(X, Y)
mlflow.lightgbm.save_model(m, fresh("lightgbm-classifier"), signature=infer_signature(X, m.predict(X)), **NO)
finish("lightgbm-classifier", split(X), split(backwards))
names = np.array(["setosa", "versicolor", "virginica"])[Y]
m = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=5, min_child_samples=5, verbose=-1).fit(X, names)
mlflow.lightgbm.save_model(
    m, fresh("lightgbm-pickle"), signature=infer_signature(X, m.predict(X)), serialization_format="cloudpickle", **NO
)
finish("lightgbm-pickle", split(X), split(backwards))
m = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=5, verbose=-1).fit(X, Y > 0)
mlflow.lightgbm.save_model(m, fresh("lightgbm-truth"), signature=infer_signature(X, m.predict(X)), **NO)
# With early stopping.
m = lightgbm.LGBMRegressor(n_estimators=60, num_leaves=5, min_child_samples=5, learning_rate=0.5, verbose=-1)
m.fit(X[:60], X["petal length"][:60] + rng.normal(0, 1, 60), eval_X=X[60:], eval_y=X["petal length"][60:],
      callbacks=[lightgbm.early_stopping(5, verbose=False)])
assert 0 < m.best_iteration_ < 60
mlflow.lightgbm.save_model(m, fresh("lightgbm-regressor"), signature=infer_signature(X, m.predict(X)), **NO)
finish("lightgbm-regressor", split(X))

m = LogisticRegression().fit(X.values.astype(np.float32), Y)
o = to_onnx(m, X[:1].values.astype(np.float32), options={"zipmap": False}, target_opset=18)
tensors = X.values.astype(np.float32)
mlflow.onnx.save_model(o, fresh("onnx"), signature=infer_signature(tensors, m.predict(tensors)), **NO)
finish("onnx", {"inputs": tensors[:9].tolist()})
mlflow.onnx.save_model(o, fresh("onnx-columns"), signature=infer_signature(F), **NO)
directory = ROOT / "onnx-columns"
names = [i.name for i in o.graph.input]
cases = [{"request": split(X), "answer": plain(mlflow.pyfunc.load_model(str(ROOT / "onnx")).predict(tensors[:9]))}]
(directory / "expected.json").write_text(json.dumps(cases))


class Doubled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input * 2


mlflow.pyfunc.save_model(fresh("pyfunc"), python_model=Doubled(), **NO)
for name in ("pyfunc", "sklearn-float", "onnx-columns", "lightgbm-truth"):
    for junk in ("conda.yaml", "python_env.yaml", "requirements.txt"):
        (ROOT / name / junk).unlink(missing_ok=True)
print(sys.version.split()[0], mlflow.__version__)
