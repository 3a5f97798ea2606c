"""Trains small models with the scikit-learn of this interpreter, saves them, and stores what they answer beside them.

Usage: python make_fixtures.py DIRECTORY [NAME...]   (writes DIRECTORY/<version of scikit-learn>/; with names, such as
'xgb*', only those, beside what is there). The gradient boosting libraries of the fixtures: XGBoost 1.5.2, LightGBM 3.2.1, CatBoost
1.0.6 beside scikit-learn 0.24.2; 1.7.6, 3.3.5, 1.2 beside 1.1.3; 3.2.0, 4.7.0, 1.2.10 beside 1.9.1.
"""
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import pandas as pd
import sklearn
from scipy.sparse import csr_matrix

try:
    from sklearn.experimental import enable_hist_gradient_boosting  # noqa: F401
except Exception:
    pass
import fixture_files
import more_models
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier, AdaBoostRegressor,
    BaggingClassifier, BaggingRegressor, ExtraTreesClassifier, ExtraTreesRegressor, GradientBoostingClassifier,
    GradientBoostingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest,
    RandomForestClassifier, RandomForestRegressor, StackingClassifier, StackingRegressor, VotingClassifier,
    VotingRegressor)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet, Lasso, LinearRegression, LogisticRegression, Perceptron, PoissonRegressor, Ridge, RidgeClassifier,
    SGDClassifier, SGDRegressor)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer, FunctionTransformer, KBinsDiscretizer, LabelEncoder, MaxAbsScaler, MinMaxScaler, Normalizer,
    OneHotEncoder, OrdinalEncoder, PolynomialFeatures, PowerTransformer, RobustScaler, StandardScaler)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

VERSION = sklearn.__version__
MAJOR = tuple(int(p) for p in VERSION.split(".")[:2])
OUT = os.path.join(sys.argv[1], VERSION)
os.makedirs(OUT, exist_ok=True)

rng = np.random.RandomState(7)
X = np.round(rng.randn(90, 4) * [1, 10, 0.1, 100] + [0, 5, 1, -50], 4)
score = X[:, 0] + (X[:, 1] - 5) / 10 - (X[:, 2] - 1) * 5
y2 = (score > 0).astype(int)
y3 = np.digitize(score, [-0.8, 0.9])
names3 = np.array(["setosa", "versicolor", "virginica"])[y3]
t = 3 * score + (X[:, 3] + 50) / 100 + 0.1 * rng.randn(90)
T2 = np.c_[t, -t + X[:, 0]]
Xpos = np.floor(np.abs(X))
Xnan = X.copy()
Xnan[rng.rand(*X.shape) < 0.15] = np.nan
Xcat = np.c_[rng.randint(0, 4, 90), rng.randint(0, 3, 90) * 10, rng.randint(0, 2, 90)].astype(float)
Q = np.vstack([np.round(rng.randn(10, 4) * [1, 10, 0.1, 100] + [0, 5, 1, -50], 4), X[:3]])
Qpos, Qcat = np.floor(np.abs(Q)), Xcat[:12]
Qodd = np.vstack([Qcat, [9, 7, 5]])
Qnan = Q.copy()
Qnan[rng.rand(*Q.shape) < 0.2] = np.nan
frame = pd.DataFrame({
    "age": np.where(rng.rand(90) < 0.1, np.nan, np.round(rng.rand(90) * 60 + 18)),
    "city": rng.choice(["Bern", "Zürich", "Genève"], 90),
    "size": rng.choice(["S", "M", "L"], 90),
    "income": np.round(rng.rand(90) * 1000, 2),
}).astype({"city": object, "size": object})
docs = np.array(["the cat sat on the mat", "a dog and a cat", "Dogs bark at NIGHT, dogs!", "naïve café in Zürich",
                 "the night is dark and full of terrors", "cats and dogs and mats"] * 3, dtype=object)
ydocs = np.array([0, 1, 1, 0, 0, 1] * 3)
Qdocs = np.array(["the dark cat", "dogs at the café CAFÉ", "nothing known", "zürich 2nd night mat_mat", "a", "Bark, cat! bark."],
                 dtype=object)

sparse = {"sparse_output": False} if MAJOR >= (1, 2) else {"sparse": False}
log = "log_loss" if MAJOR >= (1, 1) else "log"
models = {}


def add(name, model, x=X, y=None, q=Q, columns=None):
    models[name] = (model.fit(x, y) if y is not None else model.fit(x), q, columns)


add("standard", StandardScaler())
add("minmax", MinMaxScaler(feature_range=(-1, 2)))
add("minmax_clip", MinMaxScaler(clip=True))
add("maxabs", MaxAbsScaler())
add("robust", RobustScaler())
for norm in ["l1", "l2", "max"]:
    add("normalizer_" + norm, Normalizer(norm=norm))
add("binarizer", Binarizer(threshold=0.5))
add("imputer_mean", SimpleImputer(), Xnan, None, Qnan)
add("imputer_indicator", SimpleImputer(strategy="median", add_indicator=True), Xnan, None, Qnan)
add("imputer_constant", SimpleImputer(strategy="constant", fill_value=-1), Xnan, None, Qnan)
add("onehot", OneHotEncoder(**sparse), Xcat, None, Qcat)
add("onehot_drop", OneHotEncoder(drop="first", **sparse), Xcat, None, Qcat)
add("onehot_binary", OneHotEncoder(drop="if_binary", **sparse), Xcat, None, Qcat)
add("onehot_ignore", OneHotEncoder(handle_unknown="ignore"), Xcat, None, Qodd)
add("ordinal", OrdinalEncoder(), Xcat, None, Qcat)
add("ordinal_unknown", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-7), Xcat, None,
    Qodd)
if MAJOR >= (1, 1):
    add("onehot_infrequent", OneHotEncoder(min_frequency=25, handle_unknown="infrequent_if_exist", **sparse), Xcat, None,
        Qodd)
add("poly", PolynomialFeatures(2))
add("poly_inter", PolynomialFeatures(3, interaction_only=True, include_bias=False))
add("power", PowerTransformer())
add("function", FunctionTransformer(np.log1p), Xpos, None, Qpos)
add("bins", KBinsDiscretizer(4, encode="ordinal", strategy="uniform"))
add("bins_onehot", KBinsDiscretizer(3, strategy="quantile"))
add("pca", PCA(3))
add("pca_whiten", PCA(2, whiten=True))
add("svd", TruncatedSVD(2, random_state=1))
add("variance", VarianceThreshold(0.5))
add("kbest", SelectKBest(k=2), X, y2)
add("union", FeatureUnion([("a", StandardScaler()), ("b", PCA(2))], transformer_weights={"b": 2.5}))

add("linear", LinearRegression(), X, t)
add("linear_two", LinearRegression(), X, T2)
add("ridge", Ridge(), X, t)
add("lasso", Lasso(0.1), X, t)
add("elasticnet", ElasticNet(0.1), X, t)
add("poisson", PoissonRegressor(), X / 100, np.abs(t), Q / 100)
add("logistic", LogisticRegression(max_iter=2000), X, y2)
add("logistic_three", LogisticRegression(max_iter=5000), X, y3)
add("logistic_names", LogisticRegression(max_iter=5000), X, names3)
add("logistic_bool", LogisticRegression(max_iter=2000), X, y2 == 1)
add("logistic_liblinear", LogisticRegression(solver="liblinear"), X, y2)
if MAJOR < (1, 7):
    add("logistic_ovr", LogisticRegression(multi_class="ovr", max_iter=5000), X, y3)
    add("logistic_multi2", LogisticRegression(multi_class="multinomial", max_iter=5000), X, y2)
add("sgd", make_pipeline(StandardScaler(), SGDClassifier(random_state=1)), X, y3)
add("sgd_log", make_pipeline(StandardScaler(), SGDClassifier(loss=log, random_state=1)), X, y3)
add("sgd_huber", make_pipeline(StandardScaler(), SGDClassifier(loss="modified_huber", random_state=1)), X, y3)
add("sgd_reg", make_pipeline(StandardScaler(), SGDRegressor(random_state=1)), X, t)
add("linear_svc", make_pipeline(StandardScaler(), LinearSVC(random_state=1)), X, y3)
add("linear_svc_two", make_pipeline(StandardScaler(), LinearSVC(random_state=1)), X, y2)
add("linear_svr", make_pipeline(StandardScaler(), LinearSVR(random_state=1)), X, t)
add("perceptron", make_pipeline(StandardScaler(), Perceptron(random_state=1)), X, y2)
add("ridge_classifier", RidgeClassifier(), X, names3)
add("lda", LinearDiscriminantAnalysis(), X, y3)
add("lda_two", LinearDiscriminantAnalysis(), X, y2)

add("tree", DecisionTreeClassifier(max_depth=3), X, names3)
add("tree_reg", DecisionTreeRegressor(max_depth=3), X, t)
add("tree_two", DecisionTreeRegressor(max_depth=3), X, T2)
add("extra_tree", ExtraTreeRegressor(max_depth=3, random_state=1), X, t)
add("forest", RandomForestClassifier(5, max_depth=3, random_state=1), X, y3)
add("forest_two", RandomForestClassifier(5, max_depth=3, random_state=1), X, y2)
add("forest_reg", RandomForestRegressor(5, max_depth=3, random_state=1), X, t)
add("extra", ExtraTreesClassifier(5, max_depth=3, random_state=1), X, y3)
add("extra_reg", ExtraTreesRegressor(5, max_depth=3, random_state=1), X, t)
if MAJOR >= (1, 4):
    add("forest_missing", RandomForestClassifier(5, max_depth=3, random_state=1), Xnan, y3, Qnan)
add("boost", GradientBoostingClassifier(n_estimators=5, max_depth=2), X, y2)
add("boost_three", GradientBoostingClassifier(n_estimators=5, max_depth=2), X, y3)
add("boost_exp", GradientBoostingClassifier(n_estimators=5, max_depth=2, loss="exponential"), X, y2)
add("boost_zero", GradientBoostingClassifier(n_estimators=5, max_depth=2, init="zero"), X, y2)
add("boost_reg", GradientBoostingRegressor(n_estimators=5, max_depth=2), X, t)
add("boost_huber", GradientBoostingRegressor(n_estimators=5, max_depth=2, loss="huber"), X, t)
hist = dict(max_iter=5, max_leaf_nodes=5, min_samples_leaf=5)
add("hist", HistGradientBoostingClassifier(**hist), Xnan, y2, Qnan)
add("hist_three", HistGradientBoostingClassifier(**hist), Xnan, y3, Qnan)
add("hist_reg", HistGradientBoostingRegressor(**hist), Xnan, t, Qnan)
add("hist_poisson", HistGradientBoostingRegressor(loss="poisson", **hist), X, np.abs(t))
if MAJOR >= (1, 0):
    add("hist_categorical", HistGradientBoostingClassifier(categorical_features=[0, 2], **hist), Xcat / [1, 10, 1], y2,
        np.vstack([Qcat / [1, 10, 1], [9, 7, np.nan]]))

if MAJOR >= (1, 5):
    kinds = frame.astype({"city": "category", "size": "category"})
    add("hist_frame", HistGradientBoostingClassifier(categorical_features="from_dtype", **hist), kinds, y2,
        kinds.iloc[:12].astype({"city": object, "size": object}).astype({"city": "category", "size": "category"}),
        list(frame.columns))

add("kmeans", KMeans(3, n_init=2, random_state=1), X)
add("kmeans_mini", MiniBatchKMeans(3, n_init=2, random_state=1), X)
add("nb", GaussianNB(), X, y3)
add("nb_multi", MultinomialNB(), Xpos, y3, Qpos)
add("nb_complement", ComplementNB(), Xpos, y3, Qpos)
add("nb_bernoulli", BernoulliNB(binarize=0.2), X, names3)
add("knn", KNeighborsClassifier(3), X, y3)
add("knn_distance", KNeighborsClassifier(4, weights="distance", p=1), X, y3)
add("knn_brute", KNeighborsClassifier(4, algorithm="brute", p=3), X, names3)
add("knn_reg", KNeighborsRegressor(3, weights="distance"), X, t)
add("knn_reg_two", KNeighborsRegressor(3), X, T2)
sv = dict(probability=True, random_state=1) if MAJOR < (1, 8) else {}
add("svc", make_pipeline(StandardScaler(), SVC(**sv)), X, y2)
add("svc_three", make_pipeline(StandardScaler(), SVC(**sv)), X, names3)
add("svc_ovo", make_pipeline(StandardScaler(), SVC(kernel="poly", decision_function_shape="ovo")), X, y3)
add("svc_linear", make_pipeline(StandardScaler(), SVC(kernel="linear", break_ties=True)), X, y3)
add("svc_sigmoid", make_pipeline(StandardScaler(), SVC(kernel="sigmoid", coef0=0.1)), X, y3)
add("nusvc", make_pipeline(StandardScaler(), NuSVC(nu=0.2)), X, y3)
add("svr", make_pipeline(StandardScaler(), SVR()), X, t)
add("mlp", make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(6, 4), max_iter=30, random_state=1)), X, y3)
add("mlp_two", make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=5, activation="tanh", max_iter=30, random_state=1)), X, y2)
add("mlp_reg", make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=5, activation="logistic", max_iter=30, random_state=1)), X, t)
parts = [("a", LogisticRegression(max_iter=2000)), ("b", GaussianNB()), ("c", DecisionTreeClassifier(max_depth=2))]
add("vote_soft", VotingClassifier(parts, voting="soft", weights=[1, 2, 1.5]), X, names3)
add("vote_hard", VotingClassifier(parts), X, names3)
reg_parts = [("a", LinearRegression()), ("b", DecisionTreeRegressor(max_depth=2))]
add("vote_reg", VotingRegressor(reg_parts), X, t)
add("stack", StackingClassifier(parts, cv=2), X, y2)
add("stack_three", StackingClassifier(parts, cv=2, passthrough=True, final_estimator=GaussianNB()), X, names3)
add("stack_reg", StackingRegressor(reg_parts, cv=2), X, t)
add("bagging", BaggingClassifier(DecisionTreeClassifier(max_depth=2), 4, max_features=2, random_state=1), X, y3)
add("bagging_reg", BaggingRegressor(LinearRegression(), 3, random_state=1), X, t)
add("calibrated", CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC(random_state=1)), cv=2), X, y2)
add("calibrated_iso", CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic"), X, y3)
add("isolation", IsolationForest(n_estimators=6, max_samples=32, random_state=1))
add("isolation_some", IsolationForest(n_estimators=6, max_features=2, contamination=0.1, random_state=1))
add("label", LabelEncoder(), names3, None, names3[:8])
add("grid", GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2),
    X, y2)
add("pipeline", Pipeline([("s", StandardScaler()), ("none", "passthrough"), ("p", PCA(3)), ("m", LogisticRegression())]),
    X, y3)
add("pipeline_transform", Pipeline([("i", SimpleImputer()), ("s", MinMaxScaler())]), Xnan, None, Qnan)
add("columns_array", ColumnTransformer([("n", StandardScaler(), slice(0, 2)), ("o", OneHotEncoder(handle_unknown="ignore"),
    [2])], remainder="passthrough"), Xcat, None, Qcat)
mixed = ColumnTransformer([
    ("num", Pipeline([("i", SimpleImputer(strategy="median")), ("s", StandardScaler())]), ["age", "income"]),
    ("cat", Pipeline([("i", SimpleImputer(strategy="most_frequent")), ("o", OneHotEncoder(handle_unknown="ignore"))]),
     ["city"]),
    ("ord", OrdinalEncoder(categories=[["S", "M", "L"]]), ["size"]),
])
add("frame", mixed, frame, None, frame.iloc[:12], list(frame.columns))
add("frame_model", Pipeline([("c", mixed), ("m", LogisticRegression())]), frame, y2, frame.iloc[:12], list(frame.columns))
add("frame_numbers", make_pipeline(StandardScaler(), Ridge()), pd.DataFrame(X, columns=["a", "b", "c", "d"]), t,
    pd.DataFrame(Q, columns=["a", "b", "c", "d"]), ["a", "b", "c", "d"])
add("count", CountVectorizer(), docs, None, Qdocs)
add("count_bigram", CountVectorizer(ngram_range=(1, 2), binary=True, stop_words=["the", "and"]), docs, None, Qdocs)
add("count_char", CountVectorizer(analyzer="char", ngram_range=(1, 3), strip_accents="unicode"), docs, None, Qdocs)
add("count_wb", CountVectorizer(analyzer="char_wb", ngram_range=(3, 4), strip_accents="ascii"), docs, None, Qdocs)
add("tfidf", TfidfVectorizer(), docs, None, Qdocs)
add("tfidf_sublinear", TfidfVectorizer(sublinear_tf=True, norm="l1", stop_words="english"), docs, None, Qdocs)
add("text_model", make_pipeline(TfidfVectorizer(), LogisticRegression()), docs, ydocs, Qdocs)
add("text_nb", make_pipeline(CountVectorizer(), MultinomialNB()), docs, ydocs, Qdocs)
multi = np.c_[y3, y2 + 5]
add("tree_many", DecisionTreeClassifier(max_depth=3), X, multi)
add("forest_many", RandomForestClassifier(5, max_depth=3, random_state=1), X, multi)
add("forest_many_names", ExtraTreesClassifier(5, max_depth=3, random_state=1), X, np.c_[names3, names3[::-1]])
add("forest_reg_many", RandomForestRegressor(5, max_depth=3, random_state=1), X, T2)
add("knn_many", KNeighborsClassifier(4, weights="distance"), X, multi)
add("multi_classifier", MultiOutputClassifier(LogisticRegression(max_iter=5000)), X, multi)
add("multi_svc", MultiOutputClassifier(make_pipeline(StandardScaler(), LinearSVC(random_state=1))), X, multi)
add("multi_regressor", MultiOutputRegressor(GradientBoostingRegressor(n_estimators=4, max_depth=2)), X, T2)
add("chain_regressor", RegressorChain(Ridge(), order=[1, 0]), X, T2)
add("chain_regressor_three", RegressorChain(Ridge(), order=[2, 0, 1]), X, np.c_[T2, X[:, 1] * t])
add("chain_classifier", ClassifierChain(LogisticRegression(max_iter=5000), order=[1, 0]), X, np.c_[y2, y3 > 1].astype(int))
add("ridge_two", make_pipeline(StandardScaler(), Ridge()), X, T2)
# Who weighs votes has names of its own for how, which newer versions only warn of or do not know.
samme = {"algorithm": "SAMME"} if MAJOR < (1, 4) else {}
add("ada", AdaBoostClassifier(n_estimators=6, random_state=1, **samme), X, y2)
add("ada_three", AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=1, **samme), X, names3)
if MAJOR < (1, 4):
    add("ada_real", AdaBoostClassifier(n_estimators=6, random_state=1), X, y2)
    add("ada_real_three", AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=1), X, names3)
add("ada_reg", AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=6, random_state=1), X, t)
add("rest", OneVsRestClassifier(LogisticRegression(max_iter=5000)), X, names3)
add("rest_two", OneVsRestClassifier(make_pipeline(StandardScaler(), LinearSVC(random_state=1))), X, names3 == "setosa")
add("rest_trees", OneVsRestClassifier(DecisionTreeClassifier(max_depth=2)), X, y3)
add("rest_tags", OneVsRestClassifier(LogisticRegression(max_iter=5000)), X, np.c_[y2, y3 > 0, y3 > 1].astype(int))
add("one_on_one", OneVsOneClassifier(make_pipeline(StandardScaler(), LinearSVC(random_state=1))), X, names3)
add("one_on_one_two", OneVsOneClassifier(LogisticRegression(max_iter=5000)), X, y2)
add("one_on_one_trees", OneVsOneClassifier(DecisionTreeClassifier(max_depth=2)), X, y3)
add("sgd_sparse", make_pipeline(StandardScaler(), SGDClassifier(penalty="l1", alpha=0.1, random_state=1)), X, y3)
models["sgd_sparse"][0].steps[-1][1].sparsify()
add("knn_sparse", KNeighborsClassifier(3), csr_matrix(Xcat), y3, Qcat)
add("svc_sparse", SVC(gamma=0.1), csr_matrix(Xcat), y3, csr_matrix(Qcat))


from sklearn.compose import TransformedTargetRegressor
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import (
    RFE, RFECV, GenericUnivariateSelect, SelectFdr, SelectFpr, SelectFromModel, SelectFwe, SelectPercentile, f_regression)
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import QuantileTransformer

Xwide = np.c_[X, rng.randn(90, 3), X[:, 0] * X[:, 2]]
Qwide = np.c_[Q, rng.randn(13, 3), Q[:, 0] * Q[:, 2]]
Xempty = np.c_[Xnan, np.full(90, np.nan)]
Qempty = np.c_[Qnan, np.ones(13)]
add("select_linear", SelectFromModel(LogisticRegression(max_iter=5000)), Xwide, y3, Qwide)
add("select_lasso", SelectFromModel(Lasso(0.05)), Xwide, t, Qwide)
add("select_l1", SelectFromModel(LogisticRegression(penalty="l1", solver="liblinear", C=0.1)), Xwide, y2, Qwide)
add("select_forest", SelectFromModel(RandomForestClassifier(9, max_depth=4, random_state=1), threshold="1.25*median"), Xwide, y3,
    Qwide)
add("select_boost", SelectFromModel(GradientBoostingClassifier(n_estimators=5, max_depth=2), max_features=3, threshold=-np.inf),
    Xwide, y3, Qwide)
add("select_ada", SelectFromModel(AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=6, random_state=1)), Xwide, t,
    Qwide)
add("select_tree", SelectFromModel(DecisionTreeClassifier(max_depth=4), threshold="median"), Xwide, y3, Qwide)
add("select_norm", SelectFromModel(LinearRegression(), norm_order=2, threshold="0.1*mean"), Xwide, np.c_[t, -t + X[:, 0]], Qwide)
add("select_svm", SelectFromModel(SVR(kernel="linear", C=0.1)), StandardScaler().fit_transform(Xwide), t, Qwide)
if MAJOR >= (1, 1):
    add("select_prefit", SelectFromModel(Ridge().fit(Xwide, t), prefit=True), Xwide, t, Qwide)
if MAJOR >= (1, 0):
    inner = make_pipeline(StandardScaler(), LinearRegression())
    add("select_named", SelectFromModel(inner, importance_getter="named_steps.linearregression.coef_"), Xwide, t, Qwide)
add("select_pipeline", make_pipeline(SelectFromModel(ExtraTreesClassifier(9, max_depth=4, random_state=1)),
    LogisticRegression(max_iter=5000)), Xwide, names3, Qwide)
add("rfe", RFE(LogisticRegression(max_iter=5000), n_features_to_select=3), Xwide, names3, Qwide)
add("rfe_reg", RFE(Ridge(), n_features_to_select=3), Xwide, t, Qwide)
add("rfe_cv", RFECV(LinearRegression(), cv=2), Xwide, t, Qwide)
add("rfe_pipeline", make_pipeline(StandardScaler(), RFE(DecisionTreeClassifier(max_depth=3, random_state=1),
    n_features_to_select=4), GaussianNB()), Xwide, y3, Qwide)
if MAJOR >= (1, 0):
    from sklearn.feature_selection import SequentialFeatureSelector

    add("select_sequential", SequentialFeatureSelector(Ridge(), n_features_to_select=2, cv=2), X, t)
add("select_percentile", SelectPercentile(f_regression, percentile=40), Xwide, t, Qwide)
add("select_fpr", SelectFpr(f_regression, alpha=0.2), Xwide, t, Qwide)
add("select_fdr", SelectFdr(f_regression, alpha=0.2), Xwide, t, Qwide)
add("select_fwe", SelectFwe(f_regression, alpha=0.2), Xwide, t, Qwide)
for mode, param in [("percentile", 40), ("k_best", 3), ("fpr", 0.2), ("fdr", 0.2), ("fwe", 0.2)]:
    add("select_" + mode + "_generic", GenericUnivariateSelect(f_regression, mode=mode, param=param), Xwide, t, Qwide)
add("select_all_generic", make_pipeline(GenericUnivariateSelect(f_regression, mode="k_best", param="all"), Ridge()), Xwide, t, Qwide)
repeated = np.round(Xnan, 0)
add("quantile", QuantileTransformer(n_quantiles=20), Xnan, None, Qnan)
add("quantile_normal", QuantileTransformer(n_quantiles=30, output_distribution="normal"), Xnan, None, Qnan)
add("quantile_repeated", QuantileTransformer(n_quantiles=40, output_distribution="normal"), repeated, None, np.round(Qnan, 0))
add("target_log", TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1), X, np.abs(t))
add("target_standard", TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), X, t)
add("target_minmax", TransformedTargetRegressor(LinearRegression(), transformer=MinMaxScaler()), X, T2)
add("target_quantile", TransformedTargetRegressor(LinearRegression(), transformer=QuantileTransformer(
    n_quantiles=20, output_distribution="normal")), X, t)
add("target_power", TransformedTargetRegressor(Ridge(), transformer=PowerTransformer()), X, t)
add("target_boxcox", TransformedTargetRegressor(Ridge(), transformer=PowerTransformer(method="box-cox")), X, np.abs(t) + 1)
add("target_chain", TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge()), transformer=make_pipeline(
    FunctionTransformer(np.log1p, np.expm1), StandardScaler())), X, np.abs(t))
add("target_plain", TransformedTargetRegressor(Ridge()), X, t)
add("knn_imputer", KNNImputer(n_neighbors=3), Xnan, None, Qnan)
add("knn_imputer_distance", KNNImputer(n_neighbors=4, weights="distance", add_indicator=True), Xnan, None, Qnan)
add("knn_imputer_number", KNNImputer(missing_values=-1), np.where(np.isnan(Xnan), -1, Xnan), None,
    np.where(np.isnan(Qnan), -1, Qnan))
add("knn_imputer_empty", KNNImputer(n_neighbors=3), Xempty, None, Qempty)
if MAJOR >= (1, 2):
    add("knn_imputer_keep", KNNImputer(n_neighbors=3, keep_empty_features=True), Xempty, None, Qempty)
    add("iterative_keep", IterativeImputer(random_state=1, max_iter=3, keep_empty_features=True), Xempty, None, Qempty)
add("iterative", IterativeImputer(random_state=1), Xnan, None, Qnan)
add("iterative_trees", IterativeImputer(DecisionTreeRegressor(max_depth=3, random_state=1), max_iter=3, random_state=1,
    add_indicator=True), Xnan, None, Qnan)
add("iterative_limits", IterativeImputer(min_value=0, max_value=[1, 5, 1, 10], max_iter=2, random_state=1,
    initial_strategy="median"), Xnan, None, Qnan)
add("iterative_empty", IterativeImputer(max_iter=2, random_state=1), Xempty, None, Qempty)
add("iterative_model", make_pipeline(IterativeImputer(random_state=1), StandardScaler(), LogisticRegression()), Xnan, y3, Qnan)
add("indicator", MissingIndicator(), Xnan, None, Qnan)
add("indicator_all", MissingIndicator(features="all"), Xnan, None, Qnan)
add("indicator_union", FeatureUnion([("i", SimpleImputer()), ("m", MissingIndicator(features="all"))]), Xnan, None, Qnan)
for kind in ["full", "tied", "diag", "spherical"]:
    add("mixture_" + kind, GaussianMixture(3, covariance_type=kind, random_state=1), X)
    add("bayes_" + kind, BayesianGaussianMixture(n_components=3, covariance_type=kind, random_state=1), X)
    add("bayes_weights_" + kind, BayesianGaussianMixture(n_components=4, covariance_type=kind, random_state=1, weight_concentration_prior=0.3,
        weight_concentration_prior_type="dirichlet_distribution"), Xwide, None, Qwide)
add("qda", QuadraticDiscriminantAnalysis(), X, names3)
add("qda_two", QuadraticDiscriminantAnalysis(reg_param=0.1), X, y2)
if MAJOR >= (1, 0):
    from sklearn.preprocessing import SplineTransformer

    for kind in ["constant", "linear", "continue", "periodic"]:
        add("spline_" + kind, SplineTransformer(n_knots=5, extrapolation=kind))
    add("spline_line", SplineTransformer(n_knots=4, degree=1, extrapolation="linear", include_bias=False))
    add("spline_steps", SplineTransformer(n_knots=4, degree=0, extrapolation="linear"))
    add("spline_quantile", SplineTransformer(n_knots=6, degree=2, knots="quantile", include_bias=False))
    add("spline_error", SplineTransformer(extrapolation="error"), X, None, X[:12])
    add("spline_model", make_pipeline(SplineTransformer(), Ridge()), X, t)
if MAJOR >= (1, 8):
    add("spline_missing", SplineTransformer(handle_missing="zeros"), Xnan, None, Qnan)
if MAJOR >= (1, 5):
    from sklearn.metrics import f1_score, make_scorer
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    yes = np.where(y2 == 1, "yes", "no")
    add("threshold", FixedThresholdClassifier(LogisticRegression(), threshold=0.2), X, y2)
    add("threshold_label", FixedThresholdClassifier(make_pipeline(StandardScaler(), LinearSVC(random_state=1)), threshold=0.4,
        pos_label="no", response_method="decision_function"), X, yes)
    add("threshold_auto", FixedThresholdClassifier(GaussianNB()), X, yes)
    add("threshold_tuned", TunedThresholdClassifierCV(LogisticRegression(), cv=3), X, yes)
    add("threshold_metric", TunedThresholdClassifierCV(LogisticRegression(), cv=3, scoring=make_scorer(f1_score, pos_label="no")),
        X, yes)
    add("threshold_one", TunedThresholdClassifierCV(LogisticRegression(), cv=3, scoring="f1"), X, 2 - y2)

# Gradient boosting libraries beside scikit-learn: their objects alone, and as a part of scikit-learn's.
import catboost
import lightgbm
import xgboost

FLOATS = set()


def add_booster(name, model, data=None, y=None, q=None, columns=None, floats=False, **fit):
    data, q = (X if data is None else data), (Q if q is None else q)
    models[name] = (model if isinstance(model, OWN) else model.fit(data, y, **fit), q, columns)
    if floats:
        # XGBoost computes in 32 bits.
        FLOATS.add(name)


class Matrix:
    """A booster without a scikit-learn class, which predicts from an array here; it is saved without this."""

    def __init__(self, booster, wrap):
        self.booster = booster
        self.predict = lambda q: booster.predict(wrap(q))


OWN = (Matrix,)
XGB = dict(n_estimators=4, max_depth=3, random_state=1)
LGB = dict(n_estimators=4, num_leaves=5, min_child_samples=5, verbose=-1, random_state=1)
CAT = dict(iterations=4, depth=3, verbose=0, allow_writing_files=False, random_seed=1, thread_count=1)
stop = {"early_stopping_rounds": 2}
XV = tuple(int(p) for p in xgboost.__version__.split(".")[:2])
LV = tuple(int(p) for p in lightgbm.__version__.split(".")[:2])
encoder = {"use_label_encoder": False} if XV < (1, 6) else {}
add_booster("xgb", xgboost.XGBClassifier(**XGB, **encoder), Xnan, y2, Qnan, floats=True)
add_booster("xgb_three", xgboost.XGBClassifier(**XGB, **encoder), X, y3, floats=True)
add_booster("xgb_softmax", xgboost.XGBClassifier(objective="multi:softmax", **XGB, **encoder), X, y3, floats=True)
if XV < (1, 6):
    add_booster("xgb_names", xgboost.XGBClassifier(use_label_encoder=True, **XGB), X, names3, floats=True)
else:
    add_booster("xgb_tags", xgboost.XGBClassifier(**XGB), X, np.c_[y2, y3 > 0, y3 > 1].astype(int), floats=True)
    add_booster("xgb_reg_two", xgboost.XGBRegressor(**XGB), X, T2, floats=True)
add_booster("xgb_reg", xgboost.XGBRegressor(**XGB), X, t, floats=True)
add_booster("xgb_missing", xgboost.XGBRegressor(missing=-1, **XGB), np.where(np.isnan(Xnan), -1, Xnan), t,
    np.where(np.isnan(Qnan), -1, Qnan), floats=True)
add_booster("xgb_linear", xgboost.XGBRegressor(booster="gblinear", n_estimators=4), X / 100, t, Q / 100, floats=True)
add_booster("xgb_dart", xgboost.XGBRegressor(booster="dart", rate_drop=0.3, **XGB), X, t, floats=True)
add_booster("xgb_rank", xgboost.XGBRanker(**XGB), X, y3, floats=True, group=[45, 45])
add_booster("xgb_forest", xgboost.XGBRFClassifier(**XGB, **encoder), X, y2, floats=True)
early = dict(XGB, n_estimators=40, learning_rate=1.0)
if XV < (1, 6):
    add_booster("xgb_early", xgboost.XGBClassifier(**early, **encoder), X[:60], y2[:60], floats=True,
        eval_set=[(X[60:], y2[60:])], verbose=False, **stop)
else:
    add_booster("xgb_early", xgboost.XGBClassifier(**early, **stop), X[:60], y2[:60], floats=True,
        eval_set=[(X[60:], y2[60:])], verbose=False)
add_booster("xgb_booster", Matrix(xgboost.train({"objective": "multi:softprob", "num_class": 3, "max_depth": 3},
    xgboost.DMatrix(X, y3), 4), xgboost.DMatrix), floats=True)
add_booster("xgb_frame", xgboost.XGBRegressor(**XGB), pd.DataFrame(X, columns=["a", "b", "c", "d"]), t,
    pd.DataFrame(Q, columns=["a", "b", "c", "d"]), ["a", "b", "c", "d"], floats=True)
add_booster("xgb_pipeline", Pipeline([("s", StandardScaler()), ("m", xgboost.XGBClassifier(**XGB, **encoder))]), X, y3,
    floats=True)
add_booster("xgb_columns", Pipeline([("c", mixed), ("m", xgboost.XGBClassifier(**XGB, **encoder))]), frame, y2,
    frame.iloc[:12], list(frame.columns), floats=True)
add_booster("xgb_grid", GridSearchCV(xgboost.XGBRegressor(**XGB), {"max_depth": [2, 3]}, cv=2), X, t, floats=True)
add_booster("xgb_calibrated", CalibratedClassifierCV(xgboost.XGBClassifier(**XGB, **encoder), cv=2), X, y2, floats=True)
add_booster("lgbm", lightgbm.LGBMClassifier(**LGB), Xnan, y2, Qnan)
add_booster("lgbm_three", lightgbm.LGBMClassifier(**LGB), X, names3)
add_booster("lgbm_names", lightgbm.LGBMClassifier(**LGB), X, np.where(y2 == 1, "yes", "no"))
add_booster("lgbm_reg", lightgbm.LGBMRegressor(**LGB), X, t)
add_booster("lgbm_poisson", lightgbm.LGBMRegressor(objective="poisson", **LGB), X, np.abs(t))
add_booster("lgbm_dart", lightgbm.LGBMRegressor(boosting_type="dart", **LGB), X, t)
add_booster("lgbm_rank", lightgbm.LGBMRanker(**LGB), X, y3, group=[45, 45])
fast = dict(LGB, n_estimators=40, learning_rate=1.0)
kept = {"callbacks": [lightgbm.early_stopping(2, verbose=False)]} if LV >= (4, 0) else {"early_stopping_rounds": 2}
add_booster("lgbm_early", lightgbm.LGBMRegressor(**fast), X[:60], t[:60], eval_set=[(X[60:], t[60:])], **kept)
add_booster("lgbm_booster", Matrix(lightgbm.train({"objective": "binary", "num_leaves": 5, "min_data_in_leaf": 5,
    "verbose": -1}, lightgbm.Dataset(X, y2), 4), np.asarray))
add_booster("lgbm_frame", lightgbm.LGBMClassifier(**LGB), pd.DataFrame(X, columns=["a", "b", "c", "d"]), y3,
    pd.DataFrame(Q, columns=["a", "b", "c", "d"]), ["a", "b", "c", "d"])
add_booster("lgbm_pipeline", make_pipeline(SimpleImputer(), StandardScaler(), lightgbm.LGBMClassifier(**LGB)), Xnan, y3, Qnan)
add_booster("lgbm_multi", MultiOutputRegressor(lightgbm.LGBMRegressor(**LGB)), X, T2)
# Categories of data frames, as texts: XGBoost stores them from version 3.1 on.
sorted_kinds = pd.DataFrame({
    "age": frame["age"], "city": pd.Categorical(frame["city"]), "size": pd.Categorical(frame["size"]), "income": frame["income"]})
asked_kinds = sorted_kinds.iloc[:12].copy()
asked_kinds["city"] = pd.Categorical(["Zürich", "Bern", "Paris", None, "Genève", "Bern"] * 2)
asked_kinds["size"] = pd.Categorical(["S", "M", "L", "XL", "M", None] * 2)
for kind, model in [("lgbm_kinds", lightgbm.LGBMClassifier(**LGB)), ("lgbm_kinds_reg", lightgbm.LGBMRegressor(**dict(LGB, n_estimators=9)))]:
    add_booster(kind, model, sorted_kinds, y2, asked_kinds, list(frame.columns))
some_kinds = sorted_kinds.assign(income=pd.Categorical(np.round(frame["income"]) % 3))
add_booster("lgbm_kinds_numbers", Matrix(lightgbm.train({"objective": "regression", "num_leaves": 5, "min_data_in_leaf": 5,
    "verbose": -1}, lightgbm.Dataset(some_kinds, t), 4), lambda q: q), q=asked_kinds.assign(income=pd.Categorical([0.0, 1.0, 2.0] * 4)),
    columns=list(frame.columns))
if XV >= (3, 1):
    # Known categories alone: others are an error there; and texts of ASCII, as version 3.2 stores others cut off.
    plain_kinds = sorted_kinds.assign(city=pd.Categorical(frame["city"].replace({"Zürich": "Chur", "Genève": "Nyon"})))
    known_kinds = asked_kinds.assign(city=pd.Categorical(["Chur", "Bern", "Nyon", None, "Nyon", "Bern"] * 2),
        size=pd.Categorical(["S", "M", "L", "S", "M", None] * 2))
    add_booster("xgb_kinds", xgboost.XGBClassifier(enable_categorical=True, **XGB), plain_kinds, y2, known_kinds, list(frame.columns),
        floats=True)
    add_booster("xgb_kinds_sets", xgboost.XGBRegressor(enable_categorical=True, max_cat_to_onehot=1, **dict(XGB, n_estimators=9)),
        plain_kinds, t, known_kinds, list(frame.columns), floats=True)
add_booster("cat", catboost.CatBoostClassifier(**CAT), Xnan, y2, Qnan)
add_booster("cat_three", catboost.CatBoostClassifier(**CAT), X, names3)
add_booster("cat_bool", catboost.CatBoostClassifier(**CAT), X, y2 == 1)
add_booster("cat_numbers", catboost.CatBoostClassifier(**CAT), X, y3 * 10 + 1)
add_booster("cat_reg", catboost.CatBoostRegressor(**CAT), X, t)
add_booster("cat_poisson", catboost.CatBoostRegressor(loss_function="Poisson", **CAT), X, np.abs(t))
add_booster("cat_plain", catboost.CatBoost(dict(CAT, loss_function="Logloss")), X, y2)
add_booster("cat_rank", catboost.CatBoostRanker(**CAT), X, y3, group_id=np.repeat([0, 1], 45))
add_booster("cat_tags", catboost.CatBoostClassifier(loss_function="MultiLogloss", **CAT), X,
    np.c_[y2, y3 > 0, y3 > 1].astype(int))
kinds = frame.fillna({"age": 40})
add_booster("cat_frame", catboost.CatBoostClassifier(cat_features=["city", "size"], **CAT), kinds, y2, kinds.iloc[:12],
    list(kinds.columns))
add_booster("cat_pipeline", make_pipeline(StandardScaler(), catboost.CatBoostRegressor(**CAT)), X, t)
add_booster("vote_boosters", VotingClassifier([("x", xgboost.XGBClassifier(**XGB, **encoder)),
    ("l", lightgbm.LGBMClassifier(**LGB)), ("c", catboost.CatBoostClassifier(**CAT))], voting="soft"), X, y3, floats=True)
add_booster("stack_boosters", StackingRegressor([("x", xgboost.XGBRegressor(**XGB)), ("l", lightgbm.LGBMRegressor(**LGB))],
    cv=2, final_estimator=Ridge()), X, t, floats=True)
add_booster("select_boosters", make_pipeline(SelectFromModel(xgboost.XGBClassifier(**XGB, **encoder)),
    SelectFromModel(lightgbm.LGBMClassifier(**LGB)), SelectFromModel(catboost.CatBoostClassifier(**CAT), threshold="median"),
    LogisticRegression(max_iter=5000)), Xwide, y2, Qwide)
add_booster("xgb_target", TransformedTargetRegressor(xgboost.XGBRegressor(**XGB), transformer=StandardScaler()), X, t, floats=True)
if MAJOR >= (1, 9):
    add_booster("xgb_skops", make_pipeline(StandardScaler(), xgboost.XGBClassifier(**XGB)), X, y3, floats=True)
    add_booster("lgbm_skops", lightgbm.LGBMClassifier(**LGB), X, names3)
    add_booster("cat_skops", catboost.CatBoostRegressor(**CAT), X, t)


wanted = sys.argv[2:]
models.update(more_models.models())
unwrapped = {name: model.booster for name, (model, _, _) in models.items() if isinstance(model, OWN)}
fixture_files.save(OUT, models, wanted, FLOATS | more_models.FLOATS, unwrapped)
