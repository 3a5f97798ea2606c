// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.NameSuggestions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * Makes estimators of what a file holds. Bounded in depth and number, for a file may nest one in itself. Confined to
 * one thread.
 */
final class Assembly implements Estimator.Factory {
    private static final int MAX_DEPTH = 24;
    private static final int MAX_ESTIMATORS = 100_000;

    private static final Map<String, BiFunction<Fields, Assembly, Estimator>> KNOWN = known();

    private int depth;
    private int count;

    private static Map<String, BiFunction<Fields, Assembly, Estimator>> known() {
        Map<String, BiFunction<Fields, Assembly, Estimator>> k = new HashMap<>();
        transformers(k);
        models(k);
        return Map.copyOf(k);
    }

    private static void put(
            Map<String, BiFunction<Fields, Assembly, Estimator>> k,
            Function<Fields, Estimator> maker,
            String... names) {
        for (String name : names) {
            k.put(name, (f, a) -> maker.apply(f));
        }
    }

    private static void transformers(Map<String, BiFunction<Fields, Assembly, Estimator>> k) {
        put(k, Scaling::standard, "StandardScaler");
        put(k, Scaling::minMax, "MinMaxScaler");
        put(k, Scaling::maxAbs, "MaxAbsScaler");
        put(k, Scaling::robust, "RobustScaler");
        put(k, RowScaling::of, "Normalizer");
        put(k, Imputer::of, "SimpleImputer");
        put(k, Encoder::oneHot, "OneHotEncoder");
        put(k, Encoder::ordinal, "OrdinalEncoder");
        put(k, Columns.LabelNumbers::new, "LabelEncoder");
        put(k, Columns::binarizer, "Binarizer");
        put(k, Columns::function, "FunctionTransformer");
        put(k, Columns::varianceThreshold, "VarianceThreshold");
        put(k, Columns::selectKBest, "SelectKBest");
        put(k, PowerScaling::of, "PowerTransformer");
        put(k, Polynomial::of, "PolynomialFeatures");
        put(k, Bins::of, "KBinsDiscretizer");
        put(k, Projection::pca, "PCA", "IncrementalPCA");
        put(k, Projection::svd, "TruncatedSVD");
        put(k, TextCounts::of, "CountVectorizer");
        put(k, TermWeights::of, "TfidfTransformer");
        put(k, TermWeights::vectorizer, "TfidfVectorizer");
        k.put("Pipeline", Assembly::pipeline);
        k.put("FeatureUnion", Assembly::union);
        k.put("ColumnTransformer", (f, a) -> new ColumnPlan(f).build(a));
    }

    private static void models(Map<String, BiFunction<Fields, Assembly, Estimator>> k) {
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
        k.put("VotingClassifier", Ensembles::votingClassifier);
        k.put("VotingRegressor", Ensembles::votingRegressor);
        k.put("StackingClassifier", Ensembles::stacking);
        k.put("StackingRegressor", Ensembles::stacking);
        k.put("BaggingClassifier", Ensembles::baggingClassifier);
        k.put("BaggingRegressor", Ensembles::baggingRegressor);
        k.put("AdaBoostClassifier", Ada::classifier);
        k.put("AdaBoostRegressor", Ada::regressor);
        k.put("OneVsRestClassifier", Duels::oneAgainstRest);
        k.put("OneVsOneClassifier", Duels::oneAgainstOne);
        k.put("MultiOutputRegressor", Targets::regressor);
        k.put("MultiOutputClassifier", Targets::classifier);
        k.put("RegressorChain", Targets::chain);
        k.put("ClassifierChain", Targets::chain);
        k.put("CalibratedClassifierCV", Calibration::new);
        for (String search :
                List.of("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")) {
            k.put(search, (f, a) -> a.build(f.required("best_estimator_")));
        }
        k.put("FrozenEstimator", (f, a) -> a.build(f.required("estimator")));
    }

    /**
     * The estimator of a record.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for what is none, or none that is known
     */
    @Override
    public Estimator build(Object value) {
        if (!(value instanceof PyObject object)) {
            throw Refusal.unsupported("it holds " + Values.kind(value) + " (expected: a fitted estimator)");
        }
        Fields f = new Fields(object);
        BiFunction<Fields, Assembly, Estimator> maker = object.type().isOf("sklearn") ? KNOWN.get(f.type()) : null;
        if (maker == null) {
            String near = object.type().isOf("sklearn") && f.type().length() < 64
                    ? NameSuggestions.didYouMean(f.type(), List.copyOf(KNOWN.keySet()), "")
                    : "";
            throw Refusal.unsupported("estimator " + f.path() + " is not supported"
                    + (near.isEmpty() || f.type().length() < 4 ? "" : "; of those near it, " + near));
        }
        if (++depth > MAX_DEPTH || ++count > MAX_ESTIMATORS) {
            throw Refusal.corrupt(
                    "estimators are nested too deeply (expected: at most " + MAX_DEPTH + " in each other)");
        }
        Estimator built = maker.apply(f, this);
        depth--;
        return built;
    }

    /** Whether a step of a pipeline does nothing. */
    static boolean idle(Object step) {
        return step == PyNone.NONE || "passthrough".equals(step);
    }

    private static Estimator pipeline(Fields f, Assembly assembly) {
        List<Estimator> steps = new ArrayList<>();
        for (Object step : f.list("steps")) {
            Object estimator = Fields.asList(step).get(1);
            if (!idle(estimator)) {
                steps.add(assembly.build(estimator));
            }
        }
        return steps.isEmpty() ? new Columns.Same(f.type(), -1) : Chain.of(f.type(), steps);
    }

    private static Estimator union(Fields f, Assembly assembly) {
        List<Parallel.Part> parts = new ArrayList<>();
        for (Object item : f.list("transformer_list")) {
            List<Object> named = Fields.asList(item);
            Object transformer = named.get(1);
            if ("drop".equals(transformer)) {
                continue;
            }
            double weight = weight(f, named.get(0));
            parts.add(
                    new Parallel.Part(idle(transformer) ? null : transformer(f, assembly, transformer), null, weight));
        }
        int features = -1;
        for (Parallel.Part part : parts) {
            features = part.transformer() != null ? part.transformer().features() : features;
        }
        return new Parallel(f.type(), features, parts);
    }

    static Estimator transformer(Fields f, Assembly assembly, Object value) {
        Estimator transformer = assembly.build(value);
        if (!transformer.can(Method.TRANSFORM)) {
            throw Refusal.unsupported(f.path() + " with a " + transformer.type() + ", which does not transform");
        }
        return transformer;
    }

    static double weight(Fields f, Object name) {
        return f.any("transformer_weights") instanceof PyDict d && d.items().get(name) != null
                ? Values.number(d.items().get(name))
                : 1;
    }
}
