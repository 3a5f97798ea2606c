# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The libraries' side of the row libraries: trains models, and predicts with them in a loop of one thread.

    python3 library_loop.py DIRECTORY

Needs numpy, scikit-learn and catboost; with tensorflow there is one case more, a SavedModel of three dense layers. Writes one model for each case into DIRECTORY, and prints a line `CASE BACKEND FILE` for it, then
an empty line. From then on it reads lines `CASE ROWS SEED SECONDS`, predicts so many rows for at least so long, and answers each with the
CPU time of a row in microseconds and the sum of the predictions. Rows are numbers of java.util.Random from 0 to 1.
"""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import math
import pathlib
import pickle
import sys
import time

import catboost
import numpy
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

try:
    import tensorflow
except ImportError:
    tensorflow = None

FEATURES = 20
TRAINED = 4000
TREES = 100


class JavaRandom:
    """The generator of java.util.Random, so that both sides predict for the same rows and nothing has to be sent."""

    def __init__(self, seed: int) -> None:
        self.seed = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def bits(self, count: int) -> int:
        self.seed = (self.seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self.seed >> (48 - count)

    def double(self) -> float:
        return ((self.bits(26) << 27) + self.bits(27)) / (1 << 53)


def uniform(rows: int, seed: int) -> numpy.ndarray:
    random = JavaRandom(seed)
    return numpy.array([random.double() for _ in range(rows * FEATURES)]).reshape(rows, FEATURES)


def models() -> dict:
    x = uniform(TRAINED, 3)
    noise = numpy.random.default_rng(5).normal(size=TRAINED)
    y = 4 * x[:, 0] + numpy.sin(6 * x[:, 1]) + 3 * x[:, 2] * x[:, 3] + 0.1 * noise
    made = {
        "catboost": catboost.CatBoostRegressor(
            iterations=TREES, depth=6, thread_count=1, verbose=False, allow_writing_files=False, random_seed=1
        ),
        "random-forest": RandomForestRegressor(TREES, max_depth=10, n_jobs=1, random_state=1),
        "gradient-boosting": GradientBoostingRegressor(n_estimators=TREES, max_depth=6, random_state=1),
        "hist-gradient-boosting": HistGradientBoostingRegressor(max_iter=TREES, random_state=1),
        "polynomial-ridge": make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()),
        "svr": make_pipeline(StandardScaler(), SVR()),
    }
    for model in made.values():
        model.fit(x, y)
    return made


def saved_model(directory: pathlib.Path):
    """Writes a SavedModel, and returns its signature as TensorFlow loads it from there."""
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    random = numpy.random.default_rng(7)
    sizes = (FEATURES, 64, 64, 1)
    module = tensorflow.Module()
    module.layers = [tensorflow.Variable(random.normal(size=shape) / math.sqrt(shape[0])) for shape in zip(sizes, sizes[1:])]

    @tensorflow.function(input_signature=[tensorflow.TensorSpec((None, FEATURES), tensorflow.float64, name="x")])
    def serve(x):
        for layer in module.layers[:-1]:
            x = tensorflow.nn.relu(x @ layer)
        return {"predict": x @ module.layers[-1]}

    tensorflow.saved_model.save(module, str(directory), signatures={"serving_default": serve})
    return tensorflow.saved_model.load(str(directory)).signatures["serving_default"]


def predict(name: str, model, x: numpy.ndarray) -> numpy.ndarray:
    if name == "savedmodel":
        return model(x=tensorflow.constant(x))["predict"].numpy().ravel()
    return model.predict(x, thread_count=1) if name == "catboost" else model.predict(x)


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    made = models()
    if tensorflow is not None:
        made["savedmodel"] = saved_model(directory / "savedmodel.savedmodel")
    for name, model in made.items():
        backend = {"catboost": "catboost", "savedmodel": "tensorflow"}.get(name, "sklearn")
        file = f"{name}.{ {'catboost': 'cbm', 'tensorflow': 'savedmodel'}.get(backend, 'pkl')}"
        if backend == "catboost":
            model.save_model(str(directory / file))
        elif backend == "sklearn":
            (directory / file).write_bytes(pickle.dumps(model))
        print(name, backend, file)
    print(flush=True)
    rows_of: dict = {}
    for line in sys.stdin:
        name, rows, seed, seconds = line.split()
        x = rows_of.setdefault((rows, seed), uniform(int(rows), int(seed)))
        answers = predict(name, made[name], x)
        begun = time.process_time()
        took = 0.0
        runs = 0
        turns = max(1, 20 // len(x))
        while took < float(seconds):
            for _ in range(turns):
                predict(name, made[name], x)
            runs += turns
            took = time.process_time() - begun
        print(took * 1e6 / runs / len(x), math.fsum(answers), flush=True)


main()
