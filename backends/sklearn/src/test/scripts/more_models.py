# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of make_fixtures.py beyond the common ones: outlier detection, kernels, Gaussian processes, decompositions, clusters and the like.

Usage: python more_models.py DIRECTORY [NAME...]   (makes these alone, or those with such a name, beside what is in
DIRECTORY/<version of scikit-learn>/)
"""
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import fixture_files
import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

MAJOR = tuple(int(p) for p in sklearn.__version__.split(".")[:2])
rng = np.random.RandomState(11)
X = np.round(rng.randn(40, 3) * [1, 2, 0.5] + [0, 1, -1], 4)
score = X[:, 0] + X[:, 1] / 2 - X[:, 2]
y2 = (score > 1.4).astype(int)
y3 = np.digitize(score, [0.8, 2])
names3 = np.array(["setosa", "versicolor", "virginica"])[y3]
t = np.round(3 * score + 0.1 * rng.randn(40), 4)
T2 = np.c_[t, np.round(-t + X[:, 0] ** 2, 4)]
Q = np.vstack([np.round(rng.randn(8, 3) * [1, 2, 0.5] + [0, 1, -1], 4), [[6, -9, 4]], X[:3]])
# Rows apart from those of the training, for what computes distances from squares and products.
Qapart = np.round(Q + 0.0123, 4)
Xpos, Qpos = np.round(np.abs(X), 3), np.round(np.abs(Q), 3)
some3 = np.where(rng.rand(40) < 0.4, -1, y3)
frame = pd.DataFrame({
    "age": np.where(rng.rand(40) < 0.1, np.nan, np.round(rng.rand(40) * 60 + 18)),
    "city": rng.choice(["Bern", "Zürich", "Genève"], 40),
    "income": np.round(rng.rand(40) * 10, 2),
}).astype({"city": object})
Qframe = frame.iloc[:10].copy()
Qframe["city"] = ["Bern", "Zürich", "Paris", "Genève", "Bern"] * 2


def outliers(add):
    from sklearn.covariance import EllipticEnvelope
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    add("oneclass", OneClassSVM(nu=0.2))
    add("oneclass_poly", OneClassSVM(kernel="poly", degree=2, coef0=1, gamma=0.3, nu=0.3))
    add("oneclass_linear", OneClassSVM(kernel="linear", nu=0.4))
    add("oneclass_sigmoid", make_pipeline(StandardScaler(), OneClassSVM(kernel="sigmoid", gamma=0.05, coef0=0.1)))
    if MAJOR >= (1, 0):
        from sklearn.linear_model import SGDOneClassSVM

        add("oneclass_sgd", make_pipeline(StandardScaler(), SGDOneClassSVM(nu=0.3, random_state=1)))
    add("lof", LocalOutlierFactor(6, novelty=True))
    add("lof_manhattan", LocalOutlierFactor(5, novelty=True, metric="manhattan", contamination=0.1))
    add("lof_brute", LocalOutlierFactor(5, novelty=True, algorithm="brute"), q=Qapart)
    add("lof_frame", make_pipeline(mixed(), LocalOutlierFactor(6, novelty=True)), frame, None, Qframe, list(frame.columns))
    add("envelope", EllipticEnvelope(random_state=1))
    add("envelope_covariance", EllipticEnvelope(random_state=1, store_precision=False, contamination=0.2))


def mixed():
    return ColumnTransformer([
        ("num", Pipeline([("i", SimpleImputer()), ("s", StandardScaler())]), ["age", "income"]),
        ("cat", OneHotEncoder(handle_unknown="ignore"), ["city"])])


def least_squares(add):
    from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression

    add("pls", PLSRegression(2), X, t)
    add("pls_two", PLSRegression(2), X, T2)
    add("pls_unscaled", PLSRegression(1, scale=False), X, T2)
    add("pls_canonical", PLSCanonical(2), X, T2)
    add("pls_cca", CCA(1), X, T2)
    add("pls_svd", PLSSVD(2), X, T2)
    add("pls_pipeline", make_pipeline(StandardScaler(), PLSRegression(2)), X, t)
    add("pls_frame", make_pipeline(mixed(), PLSRegression(2)), frame, t, Qframe, list(frame.columns))


def neighbours(add):
    from sklearn.neighbors import NearestCentroid, RadiusNeighborsClassifier, RadiusNeighborsRegressor

    add("centroid", NearestCentroid(), X, names3)
    add("centroid_two", NearestCentroid(), X, y2)
    add("centroid_manhattan", NearestCentroid(metric="manhattan"), X, y3)
    add("centroid_shrunken", NearestCentroid(shrink_threshold=0.3), X, y3)
    if MAJOR >= (1, 6):
        add("centroid_priors", NearestCentroid(priors=[0.2, 0.5, 0.3]), X, y3)
        add("centroid_priors_manhattan", NearestCentroid(metric="manhattan", priors="empirical"), X, y3)
    add("radius", RadiusNeighborsClassifier(2.0), X, y3, X[:9] + 0.01)
    add("radius_distance", RadiusNeighborsClassifier(1.5, weights="distance", outlier_label="most_frequent"), X, names3)
    add("radius_label", RadiusNeighborsClassifier(1.5, weights="distance", p=1, outlier_label=-7), X, y3)
    add("radius_text", RadiusNeighborsClassifier(1.5, outlier_label="virgin"), X, names3)
    add("radius_reg", RadiusNeighborsRegressor(1.5), X, t)
    add("radius_reg_two", RadiusNeighborsRegressor(1.5, weights="distance", p=3), X, T2)


def kernels(add):
    from sklearn.kernel_ridge import KernelRidge

    for kernel in ["linear", "poly", "rbf", "laplacian", "sigmoid", "cosine"]:
        add("kernel_ridge_" + kernel, KernelRidge(alpha=0.5, kernel=kernel, gamma=0.2, coef0=0.5, degree=2), X, t)
    add("kernel_ridge_two", KernelRidge(kernel="rbf"), X, T2)
    add("kernel_ridge_chi2", KernelRidge(kernel="chi2", gamma=0.3), Xpos, t, Qpos)
    add("kernel_ridge_additive", KernelRidge(kernel="additive_chi2"), Xpos, t, Qpos)


def rest(add):
    from sklearn.linear_model import (
        LarsCV, LassoLarsCV, MultiTaskElasticNetCV, MultiTaskLassoCV, OrthogonalMatchingPursuitCV, RANSACRegressor)
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.naive_bayes import GaussianNB
    from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

    add("ransac", RANSACRegressor(random_state=1), X, t)
    add("ransac_neighbours", RANSACRegressor(KNeighborsRegressor(3), min_samples=20, random_state=1), X, T2)
    add("lars_cv", LarsCV(cv=2), X, t)
    add("lasso_lars_cv", LassoLarsCV(cv=2), X, t)
    add("pursuit_cv", OrthogonalMatchingPursuitCV(cv=2), X, t)
    add("tasks_lasso_cv", MultiTaskLassoCV(cv=2, n_alphas=5) if MAJOR < (1, 7) else MultiTaskLassoCV(cv=2, alphas=5), X, T2)
    add("tasks_net_cv", MultiTaskElasticNetCV(cv=2, n_alphas=5) if MAJOR < (1, 7) else MultiTaskElasticNetCV(cv=2, alphas=5), X, T2)
    add("self_training", SelfTrainingClassifier(GaussianNB()), X, some3)
    add("self_training_best", SelfTrainingClassifier(make_pipeline(StandardScaler(), LogisticRegression()), criterion="k_best"), X, some3)
    add("propagation", LabelPropagation(gamma=0.5), X, some3)
    add("propagation_knn", LabelPropagation(kernel="knn", n_neighbors=5), X, some3)
    add("spreading", LabelSpreading(gamma=1), X, some3)
    add("spreading_knn", make_pipeline(StandardScaler(), LabelSpreading(kernel="knn", n_neighbors=4)), X, some3)


def gaussian_processes(add):
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import (
        RBF, ConstantKernel, DotProduct, Exponentiation, ExpSineSquared, Matern, PairwiseKernel, RationalQuadratic, WhiteKernel)

    x, values, pair, three = X[:18], t[:18], T2[:18], names3[:18]
    add("gp", GaussianProcessRegressor(alpha=0.1), x, values)
    add("gp_two", GaussianProcessRegressor(RBF([1.0, 2.0, 0.5]) + WhiteKernel(0.1), normalize_y=True), x, pair)
    add("gp_scaled", GaussianProcessRegressor(ConstantKernel(2.0) * RBF(0.8) + WhiteKernel(0.3), normalize_y=True), x, values)
    fixed = dict(alpha=0.2, optimizer=None)
    for nu in [0.5, 1.5, 2.5, 0.8, 3.3, np.inf]:
        add("gp_matern_" + str(nu).replace(".", "_"), GaussianProcessRegressor(Matern([1.0, 2.0, 0.7], nu=nu), **fixed), x, values)
    add("gp_quadratic", GaussianProcessRegressor(RationalQuadratic(1.3, 0.7), **fixed), x, values)
    add("gp_sine", GaussianProcessRegressor(ExpSineSquared(1.2, 2.5), alpha=9, optimizer=None), x, values)
    add("gp_dot", GaussianProcessRegressor(Exponentiation(DotProduct(0.6), 2) + 0.5, **fixed), x, values)
    add("gp_pairwise", GaussianProcessRegressor(PairwiseKernel(gamma=0.3, metric="laplacian"), **fixed), x, values)
    add("gp_pairwise_poly", GaussianProcessRegressor(PairwiseKernel(gamma=0.3, metric="poly") * 0.1, **fixed), x, values)
    add("gp_class", GaussianProcessClassifier(), x, np.where(y2[:18] == 1, "yes", "no"))
    add("gp_class_kernel", GaussianProcessClassifier(2.0 * Matern(1.5, nu=1.5) + DotProduct(0.2), optimizer=None), x, y2[:18])
    add("gp_class_three", GaussianProcessClassifier(1.5 * RBF(0.8), optimizer=None), x[:14], three[:14], Q[:8])
    add("gp_class_pairs", GaussianProcessClassifier(1.5 * RBF(0.8), optimizer=None, multi_class="one_vs_one"), x[:14], three[:14])
    add("gp_pipeline", make_pipeline(StandardScaler(), GaussianProcessRegressor(alpha=0.1)), x, values)


def clusters(add):
    from sklearn.cluster import AffinityPropagation, Birch, MeanShift

    add("birch", Birch(threshold=0.9), q=Qapart)
    add("birch_all", Birch(threshold=1.2, n_clusters=None), q=Qapart)
    add("birch_pipeline", make_pipeline(StandardScaler(), Birch(n_clusters=4)), q=Qapart)
    add("shift", MeanShift(bandwidth=2.0))
    add("affinity", AffinityPropagation(**({"random_state": 1} if MAJOR < (1, 10) else {})))
    if MAJOR >= (1, 1):
        from sklearn.cluster import BisectingKMeans

        add("bisecting", BisectingKMeans(4, random_state=1), q=Qapart)
        add("bisecting_largest", BisectingKMeans(5, random_state=1, bisecting_strategy="largest_cluster"), q=Qapart)


def decompositions(add):
    from sklearn.decomposition import NMF, FactorAnalysis, FastICA, KernelPCA, MiniBatchSparsePCA, SparsePCA
    from sklearn.neighbors import NeighborhoodComponentsAnalysis
    from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

    add("nmf", NMF(2, init="nndsvda", random_state=1), Xpos, None, Qpos)
    add("nmf_updates", NMF(2, solver="mu", init="nndsvda", random_state=1), Xpos, None, Qpos)
    add("nmf_kl", NMF(2, solver="mu", beta_loss="kullback-leibler", init="nndsvda", random_state=1), Xpos, None, Qpos)
    add("nmf_is", NMF(2, solver="mu", beta_loss="itakura-saito", init="nndsvda", random_state=1), Xpos + 0.1, None, Qpos + 0.1)
    add("nmf_other", NMF(2, solver="mu", beta_loss=1.5, init="nndsvda", random_state=1), Xpos, None, Qpos)
    add("nmf_large", NMF(2, solver="mu", beta_loss=3, init="nndsvda", random_state=1), Xpos, None, Qpos)
    penalty = {"alpha_W": 0.02, "alpha_H": 0.01} if MAJOR >= (1, 0) else {"alpha": 0.1}
    add("nmf_penalty", NMF(2, init="nndsvda", l1_ratio=0.4, random_state=1, **penalty), Xpos, None, Qpos)
    add("nmf_penalty_updates", NMF(2, solver="mu", init="nndsvda", l1_ratio=0.4, random_state=1, **penalty), Xpos, None, Qpos)
    add("nmf_model", make_pipeline(NMF(2, random_state=1), Ridge()), Xpos, t, Qpos)
    if MAJOR >= (1, 1):
        from sklearn.decomposition import MiniBatchNMF

        add("nmf_batches", MiniBatchNMF(2, init="nndsvda", batch_size=20, random_state=1), Xpos, None, Qpos)
        add("nmf_batches_kl", MiniBatchNMF(2, init="nndsvda", beta_loss="kullback-leibler", transform_max_iter=30, random_state=1,
            alpha_W=0.01, l1_ratio=0.5), Xpos, None, Qpos)
    add("ica", FastICA(2, random_state=1, **({"whiten": "unit-variance"} if MAJOR >= (1, 1) else {})))
    add("ica_plain", FastICA(random_state=1, whiten=False), (X - X.mean(0)) / 3, None, Q)
    add("factors", FactorAnalysis(2, random_state=1))
    add("factors_rotated", FactorAnalysis(2, rotation="varimax", random_state=1))
    add("sparse_pca", SparsePCA(2, alpha=0.5, random_state=1))
    add("sparse_pca_batches", MiniBatchSparsePCA(2, alpha=0.5, ridge_alpha=0.1, random_state=1))
    for kernel in ["linear", "poly", "rbf", "sigmoid", "cosine"]:
        add("kernel_pca_" + kernel, KernelPCA(2, kernel=kernel, gamma=0.1, coef0=0.5, degree=2), X[:16])
    add("kernel_pca_default", make_pipeline(StandardScaler(), KernelPCA(kernel="rbf", n_components=3), Ridge()), X[:16], t[:16])
    add("random_gauss", GaussianRandomProjection(2, random_state=1))
    add("random_sparse", SparseRandomProjection(4, random_state=1, density=0.6))
    add("random_sparse_dense", SparseRandomProjection(4, random_state=1, density=0.5, dense_output=True))
    add("components_near", NeighborhoodComponentsAnalysis(2, random_state=1, max_iter=9), X, y3)


def samplers(add):
    from sklearn.ensemble import RandomTreesEmbedding
    from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, RBFSampler, SkewedChi2Sampler

    add("nystroem", Nystroem(n_components=5, random_state=1))
    add("nystroem_poly", Nystroem("polynomial", degree=2, coef0=0.5, gamma=0.2, n_components=4, random_state=1))
    add("nystroem_chi2", Nystroem("chi2", n_components=4, random_state=1), Xpos, None, Qpos)
    add("nystroem_frame", make_pipeline(mixed(), Nystroem(gamma=0.3, n_components=6, random_state=1), LogisticRegression()), frame, y2,
        Qframe, list(frame.columns))
    add("rbf_sampler", RBFSampler(gamma=0.4, n_components=5, random_state=1))
    add("skewed_sampler", SkewedChi2Sampler(skewedness=0.5, n_components=5, random_state=1), Xpos, None, Qpos)
    for steps in [1, 2, 3]:
        add(f"additive_{steps}", AdditiveChi2Sampler(sample_steps=steps), Xpos, None, np.vstack([Qpos, [[0, 1, 2]]]))
    add("additive_interval", AdditiveChi2Sampler(sample_steps=4, sample_interval=0.3), Xpos, None, Qpos)
    if MAJOR >= (0, 24):
        from sklearn.kernel_approximation import PolynomialCountSketch

        add("sketch", PolynomialCountSketch(degree=3, gamma=0.7, coef0=0.4, n_components=9, random_state=1))
        add("sketch_plain", PolynomialCountSketch(n_components=6, random_state=1))
    add("embedding", RandomTreesEmbedding(n_estimators=3, max_depth=3, random_state=1))
    add("embedding_model", make_pipeline(RandomTreesEmbedding(n_estimators=2, max_depth=2, random_state=1), LogisticRegression()), X, y3)


def others(add):
    from sklearn.cluster import FeatureAgglomeration
    from sklearn.decomposition import DictionaryLearning, LatentDirichletAllocation, MiniBatchDictionaryLearning, SparseCoder
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.isotonic import IsotonicRegression
    from sklearn.manifold import Isomap, LocallyLinearEmbedding
    from sklearn.multiclass import OutputCodeClassifier
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
    from sklearn.neural_network import BernoulliRBM
    from sklearn.preprocessing import KernelCenterer, LabelBinarizer
    from sklearn.svm import SVR, LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    kinds = np.c_[rng.randint(0, 4, 40), rng.randint(0, 3, 40), rng.randint(0, 2, 40)]
    add("categorical", CategoricalNB(), kinds, names3, kinds[:9])
    add("categorical_two", CategoricalNB(alpha=0.5, fit_prior=False), kinds, y2, kinds[:9])
    one = np.round(score[:, None], 3)
    asked = np.r_[one[:6] + 0.01, [[-99.0], [99.0]], one[:3]]
    add("isotonic", IsotonicRegression(), one, t, asked)
    add("isotonic_clip", IsotonicRegression(out_of_bounds="clip", increasing="auto"), one, -t, asked)
    products = X @ X.T
    add("centerer", KernelCenterer(), products[:12, :12], None, products[20:25, :12])
    add("codes", OutputCodeClassifier(LogisticRegression(), code_size=2, random_state=1), X, names3)
    add("codes_svm", OutputCodeClassifier(LinearSVC(random_state=1), code_size=1.5, random_state=2), X, y3)
    add("codes_trees", OutputCodeClassifier(DecisionTreeClassifier(max_depth=3, random_state=1), code_size=2, random_state=1), X, y3)
    add("machine_hidden", BernoulliRBM(4, random_state=1, n_iter=3), Xpos / 5, None, Qpos / 9)
    wide = np.c_[X, X[:, 0] + 0.1, X[:, 1] * 2, X[:, 2] - X[:, 0]]
    qwide = np.c_[Q, Q[:, 0] + 0.1, Q[:, 1] * 2, Q[:, 2] - Q[:, 0]]
    for function in [np.mean, np.max, np.median]:
        add("agglomerated_" + function.__name__, FeatureAgglomeration(3, pooling_func=function), wide, None, qwide)
    if MAJOR >= (1, 3):
        from sklearn.preprocessing import TargetEncoder

        encoded = ColumnTransformer([("t", TargetEncoder(random_state=1), ["city"])], remainder="passthrough")
        add("target_encoder", encoded, frame, t, Qframe, list(frame.columns))
        add("target_encoder_two", TargetEncoder(random_state=1, smooth=2.0), kinds.astype(float), y2, np.r_[kinds[:7] * 1.0, [[9, 9, 9]]])
        add("target_encoder_three", TargetEncoder(random_state=1), kinds.astype(float), names3, np.r_[kinds[:7] * 1.0, [[9, 9, 9]]])
        add("target_encoder_model", make_pipeline(ColumnTransformer([("t", TargetEncoder(random_state=1), ["city"]),
            ("n", SimpleImputer(), ["age", "income"])]), LogisticRegression()), frame, y2, Qframe, list(frame.columns))
    add("binarized", LabelBinarizer(), names3, None, names3[:6])
    add("binarized_two", LabelBinarizer(neg_label=-1, pos_label=2), y2, None, y2[:6])
    counts = rng.poisson(1.5, (40, 6))
    add("topics", LatentDirichletAllocation(3, random_state=1), counts, None, np.r_[counts[:5] + 1, [[0] * 6]])
    texts = np.array(["the cat sat on the mat", "dogs bark at night", "a cat and a dog", "night and day", "mats for cats"] * 2, dtype=object)
    add("topics_text", make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, random_state=1, learning_method="online")), texts, None,
        texts[:5])
    add("dictionary", DictionaryLearning(5, random_state=1, max_iter=5), wide, None, qwide)
    add("dictionary_three", MiniBatchDictionaryLearning(5, random_state=1, transform_n_nonzero_coefs=3, split_sign=True), wide, None, qwide)
    add("dictionary_threshold", DictionaryLearning(4, random_state=1, max_iter=5, transform_algorithm="threshold", transform_alpha=0.3), wide,
        None, qwide)
    atoms = rng.randn(5, 6)
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    add("coder", SparseCoder(atoms, transform_n_nonzero_coefs=2), wide, None, qwide)
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.neighbors import KernelDensity

    terms = np.array(["the dark cat", "dogs at the café CAFÉ", "zürich 2nd night mat_mat cat the", "a", "Bark, cat! bark."], dtype=object)
    add("hashed", HashingVectorizer(n_features=32), texts, None, terms)
    add("hashed_grams", HashingVectorizer(n_features=24, ngram_range=(1, 2), norm="l1", alternate_sign=False), texts, None, terms)
    add("hashed_letters", HashingVectorizer(n_features=16, analyzer="char_wb", ngram_range=(2, 3), norm=None), texts, None, terms)
    add("hashed_model", make_pipeline(HashingVectorizer(n_features=64, binary=True), LogisticRegression()), texts, np.array([0, 1] * 5), terms)
    for kernel in ["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]:
        add("density_" + kernel, KernelDensity(kernel=kernel, bandwidth=1.3))
    made = KernelDensity(bandwidth=0.8, metric="manhattan", kernel="exponential")
    made.fit(X, sample_weight=np.arange(1, 41))
    add("density_weights", Fitted(made))
    add("isomap", Isomap(n_neighbors=8, n_components=2), X[:24], None, Qapart)
    add("isomap_model", make_pipeline(StandardScaler(), Isomap(n_neighbors=9, n_components=2), Ridge()), X[:24], t[:24], Qapart)
    add("linear_embedding", LocallyLinearEmbedding(n_neighbors=6, random_state=1), X[:24], None, Qapart)
    add("graph", KNeighborsTransformer(n_neighbors=3), X[:20])
    add("graph_connected", KNeighborsTransformer(n_neighbors=3, mode="connectivity"), X[:20])
    add("graph_radius", RadiusNeighborsTransformer(radius=1.5), X[:20], None, Qapart)
    add("graph_model", make_pipeline(KNeighborsTransformer(n_neighbors=4), Ridge()), X[:20], t[:20])


def composed(add):
    """Ensembles and compositions of the estimators above, with trees of other libraries too."""
    import lightgbm
    import xgboost
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.decomposition import NMF, FastICA
    from sklearn.ensemble import BaggingRegressor, StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import NearestCentroid, RadiusNeighborsRegressor
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.semi_supervised import LabelSpreading

    few = dict(n_estimators=3, num_leaves=4, min_child_samples=5, verbose=-1, random_state=1)
    encoder = {"use_label_encoder": False} if xgboost.__version__ < "1.6" else {}
    trees = xgboost.XGBClassifier(n_estimators=3, max_depth=2, random_state=1, **encoder)
    add("composed_lightgbm", Pipeline([("c", mixed()), ("k", Nystroem(gamma=0.3, n_components=5, random_state=1)),
        ("m", lightgbm.LGBMClassifier(**few))]), frame, y3, Qframe, list(frame.columns))
    add("composed_lightgbm_reg", make_pipeline(FeatureUnion([("i", FastICA(2, random_state=1)), ("s", RBFSampler(
        n_components=3, random_state=1))]), lightgbm.LGBMRegressor(**few)), X, t)
    add("composed_xgboost", Pipeline([("c", ColumnTransformer([("n", make_pipeline(SimpleImputer(), MinMaxScaler(), NMF(
        2, init="nndsvda", random_state=1)), ["age", "income"]), ("o", OneHotEncoder(handle_unknown="ignore"), ["city"])])),
        ("m", trees)]), frame, y2, Qframe, list(frame.columns))
    add("composed_vote", VotingClassifier([("x", trees), ("g", GaussianProcessClassifier()), ("s", LabelSpreading(gamma=1))],
        voting="soft"), X[:20], y2[:20])
    add("composed_vote_reg", VotingRegressor([("k", KernelRidge(kernel="rbf")), ("r", RadiusNeighborsRegressor(9.0)),
        ("l", lightgbm.LGBMRegressor(**few))]), X, t, Q[:8])
    add("composed_stack", StackingClassifier([("c", NearestCentroid()), ("g", GaussianProcessClassifier(optimizer=None))], cv=2,
        final_estimator=LogisticRegression()), X[:24], y2[:24])
    add("composed_stack_reg", StackingRegressor([("k", KernelRidge()), ("g", GaussianProcessRegressor(alpha=0.5))], cv=2,
        final_estimator=Ridge()), X[:24], t[:24])
    add("composed_bagging", BaggingRegressor(KernelRidge(kernel="rbf", gamma=0.2), 3, random_state=1), X[:24], t[:24])
    add("composed_grid", GridSearchCV(make_pipeline(StandardScaler(), PLSRegression()), {"plsregression__n_components": [1, 2]}, cv=2), X, t)
    add("composed_calibrated", CalibratedClassifierCV(make_pipeline(Nystroem(n_components=5, random_state=1), LogisticRegression()), cv=2),
        X, y2)


def common(add):
    """Estimators that are computed as others are, one fixture each."""
    from sklearn.decomposition import IncrementalPCA
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import (
        ARDRegression, ElasticNetCV, GammaRegressor, HuberRegressor, Lars, LassoCV, LassoLars, LassoLarsIC, LogisticRegressionCV,
        MultiTaskElasticNet, MultiTaskLasso, OrthogonalMatchingPursuit, PassiveAggressiveClassifier, PassiveAggressiveRegressor,
        RidgeClassifierCV, TheilSenRegressor, TweedieRegressor)
    from sklearn.model_selection import HalvingGridSearchCV, HalvingRandomSearchCV, RandomizedSearchCV
    from sklearn.svm import NuSVR

    for model in [ARDRegression(), ElasticNetCV(cv=2), HuberRegressor(), Lars(), LassoCV(cv=2), LassoLars(0.05), LassoLarsIC(),
                  OrthogonalMatchingPursuit(), PassiveAggressiveRegressor(random_state=1), TheilSenRegressor(random_state=1, max_subpopulation=50),
                  NuSVR()]:
        add("common_" + type(model).__name__.lower(), model, X, t)
    for model in [MultiTaskElasticNet(0.1), MultiTaskLasso(0.1)]:
        add("common_" + type(model).__name__.lower(), model, X, T2)
    for model in [GammaRegressor(), TweedieRegressor(power=1.5)]:
        add("common_" + type(model).__name__.lower(), model, X, np.abs(t) + 0.1)
    for model in [LogisticRegressionCV(cv=2, Cs=3, max_iter=500), PassiveAggressiveClassifier(random_state=1), RidgeClassifierCV()]:
        add("common_" + type(model).__name__.lower(), model, X, names3)
    if MAJOR >= (1, 0):
        from sklearn.linear_model import QuantileRegressor

        add("common_quantileregressor", QuantileRegressor(alpha=0.1, solver="highs"), X, t)
    add("common_incrementalpca", IncrementalPCA(2, batch_size=20))
    add("common_tfidftransformer", TfidfTransformer(sublinear_tf=True), np.floor(Xpos * 3), None, np.floor(Qpos * 3))
    grid = {"alpha": [0.1, 1.0, 3.0]}
    add("common_randomizedsearchcv", RandomizedSearchCV(Ridge(), grid, n_iter=2, cv=2, random_state=1), X, t)
    add("common_halvinggridsearchcv", HalvingGridSearchCV(Ridge(), grid, cv=2, random_state=1), X, t)
    add("common_halvingrandomsearchcv", HalvingRandomSearchCV(Ridge(), grid, n_candidates=2, cv=2, random_state=1), X, t)
    if MAJOR >= (1, 6):
        from sklearn.frozen import FrozenEstimator

        add("common_frozenestimator", FrozenEstimator(Ridge().fit(X, t)), X, t)


FLOATS = {"composed_xgboost", "composed_vote"}
class Fitted:
    """A model that is fitted already, with more than rows and targets."""

    def __init__(self, model):
        self.model = model

    def fit(self, x):
        return self.model


GROUPS = [outliers, least_squares, neighbours, kernels, rest, gaussian_processes, clusters, decompositions, samplers, others, composed, common]



def models():
    """By name, the fitted model, the rows to predict and the names of the columns."""
    made = {}

    def add(name, model, x=X, y=None, q=Q, columns=None):
        made[name] = (model.fit(x, y) if y is not None else model.fit(x), q, columns)

    for group in GROUPS:
        # The groups draw random numbers of their own, so that one more model changes none of the others.
        rng.seed(GROUPS.index(group))
        group(add)
    return made


if __name__ == "__main__":
    fixture_files.save(os.path.join(sys.argv[1], sklearn.__version__), models(), sys.argv[2:] or ["*"], FLOATS)
