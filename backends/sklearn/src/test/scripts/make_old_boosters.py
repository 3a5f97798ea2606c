# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Saves a regressor of XGBoost as its old versions did, whose pickles hold XGBoost's own memory.

Usage: python make_old_boosters.py DIRECTORY   (writes xgboost-<version>.pkl; run with xgboost 0.90, Python 3.7, and with 1.2.1,
Python 3.8, beside scikit-learn 0.24.2 and numpy<1.24)
"""
import os
import pickle
import sys

import numpy as np
import xgboost

rng = np.random.RandomState(7)
x = rng.randn(60, 3)
model = xgboost.XGBRegressor(n_estimators=2, max_depth=2, objective="reg:squarederror").fit(x, x[:, 0] + 2 * x[:, 1])
with open(os.path.join(sys.argv[1], f"xgboost-{xgboost.__version__}.pkl"), "wb") as out:
    pickle.dump(model, out)
