// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.boosting.BoosterLoader;
import io.nereid.backends.sklearn.boosting.Boosters;
import io.nereid.backends.sklearn.calibration.CalibratedClassifier;
import io.nereid.backends.sklearn.cluster.BisectingClusters;
import io.nereid.backends.sklearn.cluster.FeatureAgglomeration;
import io.nereid.backends.sklearn.cluster.KMeans;
import io.nereid.backends.sklearn.cluster.NearestCluster;
import io.nereid.backends.sklearn.compose.ColumnTransformerReader;
import io.nereid.backends.sklearn.compose.ColumnUnion;
import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.compose.TransformedTarget;
import io.nereid.backends.sklearn.covariance.EllipticEnvelope;
import io.nereid.backends.sklearn.crossdecomposition.PartialLeastSquares;
import io.nereid.backends.sklearn.decomposition.ComponentProjection;
import io.nereid.backends.sklearn.decomposition.NonNegativeFactorization;
import io.nereid.backends.sklearn.decomposition.SparseCoding;
import io.nereid.backends.sklearn.decomposition.TopicDistribution;
import io.nereid.backends.sklearn.discriminant.QuadraticDiscriminant;
import io.nereid.backends.sklearn.dummy.DummyEstimators;
import io.nereid.backends.sklearn.ensemble.AdaBoost;
import io.nereid.backends.sklearn.ensemble.Bagging;
import io.nereid.backends.sklearn.ensemble.GradientBoosting;
import io.nereid.backends.sklearn.ensemble.HistGradientBoosting;
import io.nereid.backends.sklearn.ensemble.IsolationForest;
import io.nereid.backends.sklearn.ensemble.RandomForest;
import io.nereid.backends.sklearn.ensemble.Stacking;
import io.nereid.backends.sklearn.ensemble.TreesEmbedding;
import io.nereid.backends.sklearn.ensemble.Voting;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.featureextraction.CountVectorizer;
import io.nereid.backends.sklearn.featureextraction.TfidfTransformer;
import io.nereid.backends.sklearn.featureselection.ModelSelection;
import io.nereid.backends.sklearn.gaussianprocess.GaussianProcessClassifier;
import io.nereid.backends.sklearn.gaussianprocess.GaussianProcessRegressor;
import io.nereid.backends.sklearn.impute.IterativeImputer;
import io.nereid.backends.sklearn.impute.KnnImputer;
import io.nereid.backends.sklearn.impute.MissingIndicator;
import io.nereid.backends.sklearn.isotonic.IsotonicRegression;
import io.nereid.backends.sklearn.kernel.AdditiveChiSquaredSampler;
import io.nereid.backends.sklearn.kernel.KernelCentring;
import io.nereid.backends.sklearn.kernel.KernelProjection;
import io.nereid.backends.sklearn.kernel.KernelRidge;
import io.nereid.backends.sklearn.kernel.PolynomialSketch;
import io.nereid.backends.sklearn.kernel.RandomFeatures;
import io.nereid.backends.sklearn.linear.LinearModels;
import io.nereid.backends.sklearn.linear.LinearOneClass;
import io.nereid.backends.sklearn.manifold.Isomap;
import io.nereid.backends.sklearn.manifold.LocallyLinearEmbedding;
import io.nereid.backends.sklearn.mixture.GaussianMixture;
import io.nereid.backends.sklearn.modelselection.ThresholdClassifier;
import io.nereid.backends.sklearn.multiclass.OneVsOneClassifier;
import io.nereid.backends.sklearn.multiclass.OneVsRestClassifier;
import io.nereid.backends.sklearn.multiclass.OutputCodeClassifier;
import io.nereid.backends.sklearn.multioutput.EstimatorChain;
import io.nereid.backends.sklearn.multioutput.MultiOutput;
import io.nereid.backends.sklearn.naivebayes.CategoricalBayes;
import io.nereid.backends.sklearn.naivebayes.NaiveBayes;
import io.nereid.backends.sklearn.neighbors.KernelDensity;
import io.nereid.backends.sklearn.neighbors.LocalOutlierFactor;
import io.nereid.backends.sklearn.neighbors.NearestCentroid;
import io.nereid.backends.sklearn.neighbors.NearestNeighbors;
import io.nereid.backends.sklearn.neighbors.NeighborGraph;
import io.nereid.backends.sklearn.neighbors.RadiusNeighbors;
import io.nereid.backends.sklearn.neural.MultiLayerPerceptron;
import io.nereid.backends.sklearn.neural.RestrictedBoltzmannMachine;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.preprocessing.CategoryEncoder;
import io.nereid.backends.sklearn.preprocessing.FeatureScaler;
import io.nereid.backends.sklearn.preprocessing.FeatureSelector;
import io.nereid.backends.sklearn.preprocessing.FunctionTransformer;
import io.nereid.backends.sklearn.preprocessing.KBinsDiscretizer;
import io.nereid.backends.sklearn.preprocessing.LabelBinarizer;
import io.nereid.backends.sklearn.preprocessing.LabelEncoder;
import io.nereid.backends.sklearn.preprocessing.LinearProjection;
import io.nereid.backends.sklearn.preprocessing.Normalizer;
import io.nereid.backends.sklearn.preprocessing.PolynomialFeatures;
import io.nereid.backends.sklearn.preprocessing.PowerTransformer;
import io.nereid.backends.sklearn.preprocessing.QuantileTransformer;
import io.nereid.backends.sklearn.preprocessing.SimpleImputer;
import io.nereid.backends.sklearn.preprocessing.SplineTransformer;
import io.nereid.backends.sklearn.preprocessing.TargetEncoder;
import io.nereid.backends.sklearn.semisupervised.LabelPropagation;
import io.nereid.backends.sklearn.svm.OneClassSvm;
import io.nereid.backends.sklearn.svm.SupportVectorMachine;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * Builds estimators from the objects of a model file, by class name: the table of all supported scikit-learn classes.
 * Depth and number are limited, because a malicious file can nest an object in itself. Confined to one thread.
 */
public final class EstimatorFactory implements Estimator.Factory {
    private static final int MAX_DEPTH = 24;
    private static final int MAX_ESTIMATORS = 100_000;

    private static final Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> KNOWN = known();

    private final BoosterLoader boosters;
    private int depth;
    private int count;

    /** @param boosters loads the models of other libraries that the file contains */
    public EstimatorFactory(BoosterLoader boosters) {
        this.boosters = boosters;
    }

    private static Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> known() {
        Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> k = new HashMap<>();
        transformers(k);
        models(k);
        rareTransformers(k);
        rareModels(k);
        return Map.copyOf(k);
    }

    /** The names of scikit-learn's classes that are computed. */
    static Set<String> supported() {
        return KNOWN.keySet();
    }

    private static void put(
            Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> k,
            Function<EstimatorAttributes, Estimator> maker,
            String... names) {
        for (String name : names) {
            k.put(name, (f, a) -> maker.apply(f));
        }
    }

    private static void transformers(Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> k) {
        put(k, FeatureScaler::standard, "StandardScaler");
        put(k, FeatureScaler::minMax, "MinMaxScaler");
        put(k, FeatureScaler::maxAbs, "MaxAbsScaler");
        put(k, FeatureScaler::robust, "RobustScaler");
        put(k, Normalizer::of, "Normalizer");
        put(k, SimpleImputer::of, "SimpleImputer");
        put(k, CategoryEncoder::oneHot, "OneHotEncoder");
        put(k, CategoryEncoder::ordinal, "OrdinalEncoder");
        put(k, LabelEncoder::new, "LabelEncoder");
        put(k, FunctionTransformer::binarizer, "Binarizer");
        put(k, FunctionTransformer::of, "FunctionTransformer");
        put(k, FeatureSelector::varianceThreshold, "VarianceThreshold");
        put(k, FeatureSelector::selectKBest, "SelectKBest");
        put(k, PowerTransformer::of, "PowerTransformer");
        put(k, QuantileTransformer::of, "QuantileTransformer");
        put(k, SplineTransformer::of, "SplineTransformer");
        put(k, KnnImputer::of, "KNNImputer");
        put(k, MissingIndicator::of, "MissingIndicator");
        put(k, ModelSelection::fromModel, "SelectFromModel");
        put(k, ModelSelection::percentile, "SelectPercentile");
        put(k, ModelSelection::significant, "SelectFpr", "SelectFdr", "SelectFwe");
        put(k, ModelSelection::generic, "GenericUnivariateSelect");
        put(k, PolynomialFeatures::of, "PolynomialFeatures");
        put(k, KBinsDiscretizer::of, "KBinsDiscretizer");
        put(k, LinearProjection::pca, "PCA", "IncrementalPCA");
        put(k, LinearProjection::svd, "TruncatedSVD");
        put(k, CountVectorizer::of, "CountVectorizer");
        put(k, CountVectorizer::hashing, "HashingVectorizer");
        put(k, TfidfTransformer::of, "TfidfTransformer");
        put(k, TfidfTransformer::vectorizer, "TfidfVectorizer");
        k.put("IterativeImputer", IterativeImputer::of);
        for (String name : List.of("RFE", "RFECV", "SequentialFeatureSelector")) {
            k.put(name, ModelSelection::supported);
        }
        k.put("Pipeline", Pipeline::of);
        k.put("FeatureUnion", ColumnUnion::featureUnion);
        k.put("ColumnTransformer", ColumnTransformerReader::build);
    }

    private static void models(Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> k) {
        put(k, LinearModels::regressor, "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet");
        put(k, LinearModels::regressor, "ElasticNetCV", "Lars", "LassoLars", "BayesianRidge", "ARDRegression");
        put(k, LinearModels::regressor, "HuberRegressor", "TheilSenRegressor", "OrthogonalMatchingPursuit");
        put(k, LinearModels::regressor, "QuantileRegressor", "MultiTaskLasso", "MultiTaskElasticNet", "LassoLarsIC");
        put(k, LinearModels::flatRegressor, "SGDRegressor", "LinearSVR", "PassiveAggressiveRegressor");
        put(k, LinearModels::logRegressor, "PoissonRegressor", "GammaRegressor", "TweedieRegressor");
        put(k, LinearModels::logistic, "LogisticRegression", "LogisticRegressionCV");
        put(k, LinearModels::sgd, "SGDClassifier");
        put(k, LinearModels::scoresOnly, "LinearSVC", "Perceptron", "RidgeClassifier", "RidgeClassifierCV");
        put(k, LinearModels::scoresOnly, "PassiveAggressiveClassifier");
        put(k, LinearModels::discriminantAnalysis, "LinearDiscriminantAnalysis");
        put(k, QuadraticDiscriminant::of, "QuadraticDiscriminantAnalysis");
        put(k, GaussianMixture::of, "GaussianMixture", "BayesianGaussianMixture");
        put(k, RandomForest::classifier, "DecisionTreeClassifier", "ExtraTreeClassifier");
        put(k, RandomForest::classifier, "RandomForestClassifier", "ExtraTreesClassifier");
        put(k, RandomForest::regressor, "DecisionTreeRegressor", "ExtraTreeRegressor");
        put(k, RandomForest::regressor, "RandomForestRegressor", "ExtraTreesRegressor");
        k.put("GradientBoostingClassifier", GradientBoosting::classifier);
        k.put("GradientBoostingRegressor", GradientBoosting::regressor);
        k.put("HistGradientBoostingClassifier", HistGradientBoosting::classifier);
        k.put("HistGradientBoostingRegressor", HistGradientBoosting::regressor);
        put(k, KMeans::of, "KMeans", "MiniBatchKMeans");
        put(k, NaiveBayes::gaussian, "GaussianNB");
        put(k, NaiveBayes::multinomial, "MultinomialNB");
        put(k, NaiveBayes::complement, "ComplementNB");
        put(k, NaiveBayes::bernoulli, "BernoulliNB");
        put(k, NearestNeighbors::classifier, "KNeighborsClassifier");
        put(k, NearestNeighbors::regressor, "KNeighborsRegressor");
        put(k, SupportVectorMachine::classifier, "SVC", "NuSVC");
        put(k, SupportVectorMachine::regressor, "SVR", "NuSVR");
        put(k, MultiLayerPerceptron::classifier, "MLPClassifier");
        put(k, MultiLayerPerceptron::regressor, "MLPRegressor");
        put(k, DummyEstimators::classifier, "DummyClassifier");
        put(k, DummyEstimators::regressor, "DummyRegressor");
        put(k, IsolationForest::new, "IsolationForest");
        k.put("VotingClassifier", Voting::classifier);
        k.put("VotingRegressor", Voting::regressor);
        k.put("StackingClassifier", Stacking::of);
        k.put("StackingRegressor", Stacking::of);
        k.put("BaggingClassifier", Bagging::classifier);
        k.put("BaggingRegressor", Bagging::regressor);
        k.put("AdaBoostClassifier", AdaBoost::classifier);
        k.put("AdaBoostRegressor", AdaBoost::regressor);
        k.put("OneVsRestClassifier", OneVsRestClassifier::of);
        k.put("OneVsOneClassifier", OneVsOneClassifier::of);
        k.put("MultiOutputRegressor", MultiOutput::regressor);
        k.put("MultiOutputClassifier", MultiOutput::classifier);
        k.put("RegressorChain", EstimatorChain::of);
        k.put("ClassifierChain", EstimatorChain::of);
        k.put("CalibratedClassifierCV", CalibratedClassifier::new);
        k.put("FixedThresholdClassifier", ThresholdClassifier::fixed);
        k.put("TunedThresholdClassifierCV", ThresholdClassifier::tuned);
        k.put("TransformedTargetRegressor", TransformedTarget::of);
        for (String search :
                List.of("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")) {
            k.put(search, (f, a) -> a.build(f.required("best_estimator_")));
        }
        k.put("FrozenEstimator", (f, a) -> a.build(f.required("estimator")));
    }

    private static void rareTransformers(Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> k) {
        put(k, NonNegativeFactorization::of, "NMF");
        put(k, NonNegativeFactorization::batches, "MiniBatchNMF");
        put(k, ComponentProjection::independent, "FastICA");
        put(k, ComponentProjection::factors, "FactorAnalysis");
        put(k, ComponentProjection::sparse, "SparsePCA", "MiniBatchSparsePCA");
        put(k, ComponentProjection::plain, "GaussianRandomProjection", "SparseRandomProjection");
        put(k, ComponentProjection::plain, "NeighborhoodComponentsAnalysis");
        put(k, KernelProjection::pca, "KernelPCA");
        put(k, KernelProjection::nystroem, "Nystroem");
        put(k, RandomFeatures::rbf, "RBFSampler");
        put(k, RandomFeatures::skewedChiSquared, "SkewedChi2Sampler");
        put(k, AdditiveChiSquaredSampler::of, "AdditiveChi2Sampler");
        put(k, PolynomialSketch::of, "PolynomialCountSketch");
        put(k, TreesEmbedding::of, "RandomTreesEmbedding");
        put(k, KernelCentring::of, "KernelCenterer");
        put(k, RestrictedBoltzmannMachine::of, "BernoulliRBM");
        put(k, FeatureAgglomeration::of, "FeatureAgglomeration");
        put(k, TargetEncoder::of, "TargetEncoder");
        put(k, LabelBinarizer::of, "LabelBinarizer");
        put(k, TopicDistribution::of, "LatentDirichletAllocation");
        put(k, SparseCoding::of, "DictionaryLearning", "MiniBatchDictionaryLearning", "SparseCoder");
        put(k, LocallyLinearEmbedding::of, "LocallyLinearEmbedding");
        put(k, NeighborGraph::nearest, "KNeighborsTransformer");
        put(k, NeighborGraph::within, "RadiusNeighborsTransformer");
        k.put("Isomap", Isomap::of);
    }

    private static void rareModels(Map<String, BiFunction<EstimatorAttributes, Estimator.Factory, Estimator>> k) {
        put(k, OneClassSvm::of, "OneClassSVM");
        put(k, LinearOneClass::of, "SGDOneClassSVM");
        put(k, LocalOutlierFactor::of, "LocalOutlierFactor");
        put(k, EllipticEnvelope::of, "EllipticEnvelope");
        put(k, PartialLeastSquares::of, "PLSRegression", "PLSCanonical", "CCA");
        put(k, PartialLeastSquares::svd, "PLSSVD");
        put(k, NearestCentroid::of, "NearestCentroid");
        put(k, RadiusNeighbors::classifier, "RadiusNeighborsClassifier");
        put(k, RadiusNeighbors::regressor, "RadiusNeighborsRegressor");
        put(k, KernelRidge::of, "KernelRidge");
        put(k, KernelDensity::of, "KernelDensity");
        put(k, LabelPropagation::of, "LabelPropagation", "LabelSpreading");
        put(k, LinearModels::regressor, "LarsCV", "LassoLarsCV", "OrthogonalMatchingPursuitCV");
        put(k, LinearModels::regressor, "MultiTaskLassoCV", "MultiTaskElasticNetCV");
        put(k, GaussianProcessRegressor::of, "GaussianProcessRegressor");
        put(k, GaussianProcessClassifier::binary, "_BinaryGaussianProcessClassifierLaplace");
        k.put("GaussianProcessClassifier", GaussianProcessClassifier::of);
        put(k, NearestCluster::birch, "Birch");
        put(k, NearestCluster::of, "MeanShift", "AffinityPropagation");
        put(k, BisectingClusters::of, "BisectingKMeans");
        put(k, CategoricalBayes::of, "CategoricalNB");
        put(k, IsotonicRegression::of, "IsotonicRegression");
        k.put("OutputCodeClassifier", OutputCodeClassifier::of);
        k.put("RANSACRegressor", (f, a) -> a.build(f.required("estimator_")));
        k.put("SelfTrainingClassifier", (f, a) -> a.build(f.required("estimator_", "base_estimator_")));
    }

    /**
     * {@inheritDoc}
     *
     * <p>Also fails when estimators are nested too deeply.
     */
    @Override
    public Estimator build(Object value) {
        if (!(value instanceof PyObject object)) {
            throw UnsupportedModel.unsupported(
                    "it contains " + PythonValues.kind(value) + " (expected: a fitted estimator)");
        }
        EstimatorAttributes f = new EstimatorAttributes(object);
        boolean known = object.type().isOf("sklearn");
        BiFunction<EstimatorAttributes, Estimator.Factory, Estimator> maker =
                known ? KNOWN.get(f.type()) : Boosters.has(object) ? (own, all) -> Boosters.build(own, boosters) : null;
        if (maker == null) {
            String near = known && f.type().length() < 64
                    ? NameSuggestions.didYouMean(f.type(), List.copyOf(KNOWN.keySet()), "")
                    : "";
            throw UnsupportedModel.unsupported("estimator " + f.path() + " is not supported"
                    + (near.isEmpty() || f.type().length() < 4 ? "" : "; " + near));
        }
        if (++depth > MAX_DEPTH || ++count > MAX_ESTIMATORS) {
            throw UnsupportedModel.corrupt(
                    "estimators are nested too deeply (expected: at most " + MAX_DEPTH + " in each other)");
        }
        Estimator built;
        try {
            built = maker.apply(f, this);
        } catch (ServingException e) {
            throw e;
        } catch (RuntimeException e) {
            // Sizes that a class does not check itself, such as an index that another attribute has no element for.
            throw UnsupportedModel.corrupt(f.path() + " has attributes that do not fit each other ("
                    + e.getClass().getSimpleName() + ")");
        }
        depth--;
        return built;
    }
}
