// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.NameSuggestions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * Builds estimators from the objects of a model file, by class name: the table of all supported scikit-learn classes.
 * Depth and number are limited, because a malicious file can nest an object in itself. Confined to one thread.
 */
final class Assembly implements Estimator.Factory {
    private static final int MAX_DEPTH = 24;
    private static final int MAX_ESTIMATORS = 100_000;

    private static final Map<String, BiFunction<Fields, Estimator.Factory, Estimator>> KNOWN = known();

    private int depth;
    private int count;

    private static Map<String, BiFunction<Fields, Estimator.Factory, Estimator>> known() {
        Map<String, BiFunction<Fields, Estimator.Factory, Estimator>> k = new HashMap<>();
        transformers(k);
        models(k);
        return Map.copyOf(k);
    }

    private static void put(
            Map<String, BiFunction<Fields, Estimator.Factory, Estimator>> k,
            Function<Fields, Estimator> maker,
            String... names) {
        for (String name : names) {
            k.put(name, (f, a) -> maker.apply(f));
        }
    }

    private static void transformers(Map<String, BiFunction<Fields, Estimator.Factory, Estimator>> k) {
        put(k, Scaling::standard, "StandardScaler");
        put(k, Scaling::minMax, "MinMaxScaler");
        put(k, Scaling::maxAbs, "MaxAbsScaler");
        put(k, Scaling::robust, "RobustScaler");
        put(k, RowScaling::of, "Normalizer");
        put(k, Imputer::of, "SimpleImputer");
        put(k, Encoder::oneHot, "OneHotEncoder");
        put(k, Encoder::ordinal, "OrdinalEncoder");
        put(k, LabelEncoder::new, "LabelEncoder");
        put(k, FunctionTransformer::binarizer, "Binarizer");
        put(k, FunctionTransformer::of, "FunctionTransformer");
        put(k, FeatureSelector::varianceThreshold, "VarianceThreshold");
        put(k, FeatureSelector::selectKBest, "SelectKBest");
        put(k, PowerScaling::of, "PowerTransformer");
        put(k, Polynomial::of, "PolynomialFeatures");
        put(k, Bins::of, "KBinsDiscretizer");
        put(k, Projection::pca, "PCA", "IncrementalPCA");
        put(k, Projection::svd, "TruncatedSVD");
        put(k, TextCounts::of, "CountVectorizer");
        put(k, TermWeights::of, "TfidfTransformer");
        put(k, TermWeights::vectorizer, "TfidfVectorizer");
        k.put("Pipeline", Chain::of);
        k.put("FeatureUnion", Parallel::featureUnion);
        k.put("ColumnTransformer", ColumnTransformerReader::build);
    }

    private static void models(Map<String, BiFunction<Fields, Estimator.Factory, Estimator>> k) {
        put(k, Linear::regressor, "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet");
        put(k, Linear::regressor, "ElasticNetCV", "Lars", "LassoLars", "BayesianRidge", "ARDRegression");
        put(k, Linear::regressor, "HuberRegressor", "TheilSenRegressor", "OrthogonalMatchingPursuit");
        put(k, Linear::regressor, "QuantileRegressor", "MultiTaskLasso", "MultiTaskElasticNet", "LassoLarsIC");
        put(k, Linear::flatRegressor, "SGDRegressor", "LinearSVR", "PassiveAggressiveRegressor");
        put(k, Linear::logRegressor, "PoissonRegressor", "GammaRegressor", "TweedieRegressor");
        put(k, Linear::logistic, "LogisticRegression", "LogisticRegressionCV");
        put(k, Linear::sgd, "SGDClassifier");
        put(k, Linear::scoresOnly, "LinearSVC", "Perceptron", "RidgeClassifier", "RidgeClassifierCV");
        put(k, Linear::scoresOnly, "PassiveAggressiveClassifier");
        put(k, Linear::discriminantAnalysis, "LinearDiscriminantAnalysis");
        put(k, Forest::classifier, "DecisionTreeClassifier", "ExtraTreeClassifier");
        put(k, Forest::classifier, "RandomForestClassifier", "ExtraTreesClassifier");
        put(k, Forest::regressor, "DecisionTreeRegressor", "ExtraTreeRegressor");
        put(k, Forest::regressor, "RandomForestRegressor", "ExtraTreesRegressor");
        k.put("GradientBoostingClassifier", Boosting::classifier);
        k.put("GradientBoostingRegressor", Boosting::regressor);
        k.put("HistGradientBoostingClassifier", HistogramBoosting::classifier);
        k.put("HistGradientBoostingRegressor", HistogramBoosting::regressor);
        put(k, Clusters::of, "KMeans", "MiniBatchKMeans");
        put(k, Bayes::gaussian, "GaussianNB");
        put(k, Bayes::multinomial, "MultinomialNB");
        put(k, Bayes::complement, "ComplementNB");
        put(k, Bayes::bernoulli, "BernoulliNB");
        put(k, Neighbors::classifier, "KNeighborsClassifier");
        put(k, Neighbors::regressor, "KNeighborsRegressor");
        put(k, Svm::classifier, "SVC", "NuSVC");
        put(k, Svm::regressor, "SVR", "NuSVR");
        put(k, Network::classifier, "MLPClassifier");
        put(k, Network::regressor, "MLPRegressor");
        put(k, Dummies::classifier, "DummyClassifier");
        put(k, Dummies::regressor, "DummyRegressor");
        put(k, Isolation::new, "IsolationForest");
        k.put("VotingClassifier", Voting::classifier);
        k.put("VotingRegressor", Voting::regressor);
        k.put("StackingClassifier", Stacking::of);
        k.put("StackingRegressor", Stacking::of);
        k.put("BaggingClassifier", Bagging::classifier);
        k.put("BaggingRegressor", Bagging::regressor);
        k.put("AdaBoostClassifier", Ada::classifier);
        k.put("AdaBoostRegressor", Ada::regressor);
        k.put("OneVsRestClassifier", OneVsRestClassifier::of);
        k.put("OneVsOneClassifier", OneVsOneClassifier::of);
        k.put("MultiOutputRegressor", MultiOutput::regressor);
        k.put("MultiOutputClassifier", MultiOutput::classifier);
        k.put("RegressorChain", EstimatorChain::of);
        k.put("ClassifierChain", EstimatorChain::of);
        k.put("CalibratedClassifierCV", Calibration::new);
        for (String search :
                List.of("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")) {
            k.put(search, (f, a) -> a.build(f.required("best_estimator_")));
        }
        k.put("FrozenEstimator", (f, a) -> a.build(f.required("estimator")));
    }

    /**
     * {@inheritDoc}
     *
     * <p>Also fails when estimators are nested too deeply.
     */
    @Override
    public Estimator build(Object value) {
        if (!(value instanceof PyObject object)) {
            throw Refusal.unsupported("it contains " + Values.kind(value) + " (expected: a fitted estimator)");
        }
        Fields f = new Fields(object);
        boolean known = object.type().isOf("sklearn");
        BiFunction<Fields, Estimator.Factory, Estimator> maker = known ? KNOWN.get(f.type()) : null;
        if (maker == null) {
            String near = known && f.type().length() < 64
                    ? NameSuggestions.didYouMean(f.type(), List.copyOf(KNOWN.keySet()), "")
                    : "";
            throw Refusal.unsupported("estimator " + f.path() + " is not supported"
                    + (near.isEmpty() || f.type().length() < 4 ? "" : "; " + near));
        }
        if (++depth > MAX_DEPTH || ++count > MAX_ESTIMATORS) {
            throw Refusal.corrupt(
                    "estimators are nested too deeply (expected: at most " + MAX_DEPTH + " in each other)");
        }
        Estimator built = maker.apply(f, this);
        depth--;
        return built;
    }
}
