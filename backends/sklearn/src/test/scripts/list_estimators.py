# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of scikit-learn's public estimators in docs/FORMATS.md: those that are computed, and why the others are not.

An estimator is computed when a fixture of this version of scikit-learn contains it, as FixturesTest compares all of them.
Usage: python list_estimators.py DIRECTORY DOCUMENT   (the fixtures, and docs/FORMATS.md, whose part between the two marks is replaced)
"""
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import joblib
import sklearn
from sklearn.base import BaseEstimator
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.utils import all_estimators

METHODS = ["predict", "predict_proba", "decision_function", "transform", "score_samples"]
REASONS = {
    "DictVectorizer": "its input is dictionaries",
    "FeatureHasher": "its input is dictionaries",
    "MultiLabelBinarizer": "its input is lists of labels",
    "PatchExtractor": "its input is images, and a row becomes several",
}
directory, document = sys.argv[1:]
computed, seen = set(), set()


def walk(value, depth=0):
    if depth > 8 or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, BaseEstimator):
        if type(value).__module__.startswith("sklearn."):
            computed.add(type(value).__name__)
        fitted = {k: v for k, v in vars(value).items() if k.endswith("_") or k in ("steps", "transformer_list")}
        for child in fitted.values():
            walk(child, depth + 1)
    elif isinstance(value, (list, tuple)) or getattr(value, "dtype", None) == object:
        for child in list(value)[:64] if getattr(value, "ndim", 1) else []:
            walk(child, depth + 1)
    elif isinstance(value, dict):
        for child in list(value.values())[:64]:
            walk(child, depth + 1)


loaded = []
fixtures = os.path.join(directory, sklearn.__version__)
for name in sorted(os.listdir(fixtures)):
    if not name.endswith((".json", ".skops")):
        try:
            loaded.append(joblib.load(os.path.join(fixtures, name)))
        except ImportError as e:
            # A library of another version than the one that saved it.
            print(f"{name} is left out: {e}")
            continue
        walk(loaded[-1])

packages, without = {}, []
for name, kind in all_estimators():
    package = ".".join(part for part in kind.__module__.split(".")[:2] if not part.startswith("_"))
    serves = any(hasattr(kind, method) for method in METHODS) or name == "FrozenEstimator"
    if name in computed and serves:
        packages.setdefault(package, ([], []))[0].append(name)
    elif serves:
        packages.setdefault(package, ([], []))[1].append(f"{name}: {REASONS[name]}" if name in REASONS else name)
    else:
        without.append(name)
unknown = [n for _, (_, refused) in packages.items() for n in refused if ":" not in n]
lines = ["", "| package | computed | refused by name |", "|---|---|---|"]
for package, (yes, no) in sorted(packages.items()):
    lines.append(f"| `{package}` | {', '.join(yes)} | {'; '.join(no)} |")
total = sum(len(yes) for yes, _ in packages.values())
lines += [
    "",
    f"{total} of the {len(all_estimators())} public estimators of scikit-learn {sklearn.__version__} are computed. Without a method that"
    " takes new rows, so that there is nothing to serve: " + ", ".join(without) + ".",
    ""]
with open(document, encoding="utf-8") as given:
    text = given.read()
start, end = "<!-- list_estimators.py: begin -->\n", "<!-- list_estimators.py: end -->\n"
before, rest = text.split(start)
text = before + start + "\n".join(lines) + "\n" + end + rest.split(end)[1]
with open(document, "w", encoding="utf-8") as out:
    out.write(text)
print(total, "computed; without a reason:", unknown)
