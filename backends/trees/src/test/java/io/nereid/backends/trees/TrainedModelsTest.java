// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.github.metarank.lightgbm4j.LGBMBooster;
import io.github.metarank.lightgbm4j.LGBMBooster.FeatureImportanceType;
import io.github.metarank.lightgbm4j.LGBMDataset;
import io.github.metarank.lightgbm4j.LGBMException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import ml.dmlc.xgboost4j.java.Booster;
import ml.dmlc.xgboost4j.java.DMatrix;
import ml.dmlc.xgboost4j.java.XGBoost;
import ml.dmlc.xgboost4j.java.XGBoostError;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Models that the native libraries train during the test have the same predictions here: every objective with every
 * kind of booster, with and without missing values and categories, of random shapes.
 */
class TrainedModelsTest {
    private static final int FEATURES = 6;
    private static final int TRAINED = 300;
    private static final int ASKED = 200;
    private static final double XGBOOST = 1e-6;
    private static final double LIGHTGBM = 1e-12;

    /** All but survival:aft: XGBoost4J cannot set its labels, which are intervals. */
    private static final List<String> XGBOOST_OBJECTIVES = List.of(
            "reg:squarederror",
            "reg:squaredlogerror",
            "reg:logistic",
            "reg:pseudohubererror",
            "reg:absoluteerror",
            "reg:quantileerror",
            "binary:logistic",
            "binary:logitraw",
            "binary:hinge",
            "count:poisson",
            "reg:gamma",
            "reg:tweedie",
            "survival:cox",
            "multi:softmax",
            "multi:softprob",
            "rank:ndcg",
            "rank:pairwise",
            "rank:map");

    private static final List<String> LIGHTGBM_OBJECTIVES = List.of(
            "regression",
            "regression reg_sqrt=true",
            "regression_l1",
            "huber",
            "fair",
            "quantile",
            "mape",
            "poisson",
            "gamma",
            "tweedie",
            "binary",
            "binary sigmoid=2.5",
            "multiclass",
            "multiclassova",
            "cross_entropy",
            "cross_entropy_lambda",
            "lambdarank",
            "rank_xendcg");

    /** A model to train. */
    private record Case(String objective, String booster, boolean missing, boolean categories) {
        String name() {
            return objective.replaceAll("[^a-z_0-9.]", "-") + "-" + booster + (missing ? "-missing" : "")
                    + (categories ? "-categorical" : "");
        }
    }

    private static List<Case> cases(List<String> objectives, List<String> boosters) {
        List<Case> cases = new ArrayList<>();
        for (String objective : objectives) {
            for (String booster : boosters) {
                for (int i = 0; i < 4; i++) {
                    boolean categories = i >= 2;
                    if (!categories || !booster.equals("gblinear")) {
                        cases.add(new Case(objective, booster, i % 2 == 1, categories));
                    }
                }
            }
        }
        return cases;
    }

    @TestFactory
    Stream<DynamicTest> modelsOfXgboost4jAnswerAsTheyDoThere(@TempDir Path directory) {
        NativeLibraries.needXgboost();
        return cases(XGBOOST_OBJECTIVES, List.of("gbtree", "dart", "gblinear")).stream()
                .map(c -> DynamicTest.dynamicTest(c.name(), () -> {
                    Path file = xgboost(c, directory);
                    double[] x = rows(file, ASKED, true);
                    try (NativeXgboost model = new NativeXgboost(file)) {
                        NativeLibrariesTest.compare(file, x, FEATURES, model::answers, model::margins, XGBOOST);
                    }
                }));
    }

    @TestFactory
    Stream<DynamicTest> modelsOfLightgbm4jAnswerAsTheyDoThere(@TempDir Path directory) {
        NativeLibraries.needLightgbm();
        return cases(LIGHTGBM_OBJECTIVES, List.of("gbdt", "dart", "rf", "linear")).stream()
                // LightGBM rejects this combination.
                .filter(c -> !c.booster().equals("linear") || !c.objective().equals("regression_l1"))
                .map(c -> DynamicTest.dynamicTest(c.name(), () -> {
                    Path file = lightgbm(c, directory);
                    double[] x = rows(file, ASKED, false);
                    try (NativeLightgbm model = new NativeLightgbm(file)) {
                        NativeLibrariesTest.compare(file, x, FEATURES, model::answers, model::margins, LIGHTGBM);
                    }
                }));
    }

    private static double[] rows(Path file, int rows, boolean floats) {
        double[] x = new double[rows * FEATURES];
        NativeLibrariesTest.fill(x, 0, file, FEATURES);
        for (int i = 0; i < x.length && floats; i++) {
            x[i] = (float) x[i];
        }
        return x;
    }

    private static Path xgboost(Case c, Path directory) throws IOException, XGBoostError {
        Random random = new Random(c.name().hashCode());
        double[] x = table(c, random);
        float[] floats = new float[x.length];
        for (int i = 0; i < x.length; i++) {
            floats[i] = (float) x[i];
        }
        Map<String, Object> parameters = new HashMap<>();
        parameters.put("objective", c.objective());
        parameters.put("booster", c.booster());
        parameters.put("nthread", 1);
        parameters.put("seed", random.nextInt(1000));
        parameters.put("eta", 0.3);
        if (c.objective().startsWith("multi")) {
            parameters.put("num_class", 3);
        }
        if (c.objective().equals("reg:quantileerror")) {
            parameters.put("quantile_alpha", 0.3);
        }
        if (c.booster().equals("gblinear")) {
            // The other updater is not deterministic: several threads write the same weights.
            parameters.put("updater", "coord_descent");
        } else {
            // These objectives adjust the leaves after a round, and support one tree per round only.
            boolean alone = List.of("reg:absoluteerror", "reg:quantileerror").contains(c.objective());
            parameters.put("max_depth", 1 + random.nextInt(11));
            parameters.put("num_parallel_tree", !alone && random.nextInt(3) == 0 ? 3 : 1);
            parameters.put("subsample", 0.8);
            parameters.put("max_cat_to_onehot", random.nextBoolean() ? 1 : 20);
        }
        if (c.booster().equals("dart")) {
            parameters.put("rate_drop", 0.3);
            parameters.put("skip_drop", 0.2);
        }
        DMatrix data = new DMatrix(floats, TRAINED, FEATURES, Float.NaN);
        try {
            if (c.categories()) {
                data.setFeatureTypes(new String[] {"q", "q", "q", "q", "c", "c"});
            }
            float[] label = label(c.objective(), x, random);
            data.setLabel(label);
            if (c.objective().startsWith("rank")) {
                data.setGroup(new int[] {100, 100, 100});
            }
            Booster booster = XGBoost.train(data, parameters, 8, Map.of(), null, null);
            try {
                String ending = random.nextBoolean() ? "json" : "ubj";
                return Files.write(directory.resolve(c.name() + "." + ending), booster.toByteArray(ending));
            } finally {
                booster.dispose();
            }
        } finally {
            data.dispose();
        }
    }

    private static Path lightgbm(Case c, Path directory) throws IOException, LGBMException {
        Random random = new Random(c.name().hashCode());
        double[] x = table(c, random);
        boolean linear = c.booster().equals("linear");
        StringBuilder parameters = new StringBuilder("verbosity=-1 num_threads=1 deterministic=true seed=")
                .append(random.nextInt(1000))
                .append(" objective=")
                .append(c.objective())
                .append(" boosting=")
                .append(linear ? "gbdt" : c.booster())
                .append(linear ? " linear_tree=true" : "")
                .append(" num_leaves=")
                .append(2 + random.nextInt(40))
                .append(" min_data_in_leaf=5 bagging_freq=1 bagging_fraction=0.7")
                .append(c.objective().startsWith("multiclass") ? " num_class=3" : "")
                .append(c.missing() && !linear && random.nextInt(3) == 0 ? " zero_as_missing=true" : "")
                .append(c.categories() ? " categorical_feature=4,5 min_data_per_group=5 cat_smooth=1" : "")
                .append(c.categories() && random.nextBoolean() ? " max_cat_to_onehot=20" : "")
                .append(c.objective().equals("lambdarank") ? " lambdarank_truncation_level=10" : "");
        try (LGBMDataset data = LGBMDataset.createFromMat(x, TRAINED, FEATURES, true, parameters.toString(), null)) {
            data.setField("label", label(c.objective(), x, random));
            if (c.objective().contains("rank")) {
                data.setField("group", new int[] {100, 100, 100});
            }
            try (LGBMBooster booster = LGBMBooster.create(data, parameters.toString())) {
                boolean ended = false;
                for (int i = 0; i < 8 && !ended; i++) {
                    ended = booster.updateOneIter();
                }
                String text = booster.saveModelToString(0, -1, FeatureImportanceType.SPLIT);
                return Files.write(directory.resolve(c.name() + ".txt"), text.getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    /** The training data. */
    private static double[] table(Case c, Random random) {
        double[] x = new double[TRAINED * FEATURES];
        for (int i = 0; i < x.length; i++) {
            int feature = i % FEATURES;
            boolean category = c.categories() && feature >= 4;
            x[i] = category
                    ? random.nextInt(feature == 4 ? 12 : 70)
                    : feature == 2 && random.nextInt(5) < 2 ? 0 : random.nextGaussian();
            if (c.missing() && random.nextInt(7) == 0) {
                x[i] = Double.NaN;
            }
        }
        return x;
    }

    private static float[] label(String objective, double[] x, Random random) {
        float[] label = new float[TRAINED];
        for (int row = 0; row < TRAINED; row++) {
            double score = 0.3 * random.nextGaussian();
            for (int f = 0; f < FEATURES; f++) {
                double v = x[row * FEATURES + f];
                score += Double.isNaN(v) ? 0.1 : f < 4 ? v * (1 - 0.4 * f) : Math.sin(3 * v);
            }
            String kind = objective.replaceFirst(" .*", "");
            double y;
            switch (kind) {
                case "multi:softmax",
                        "multi:softprob",
                        "multiclass",
                        "multiclassova",
                        "rank:ndcg",
                        "rank:pairwise",
                        "lambdarank",
                        "rank_xendcg" -> y = score < -1 ? 0 : score < 1 ? 1 : 2;
                case "binary:logistic", "binary:logitraw", "binary:hinge", "binary", "rank:map" ->
                    y = score > 0 ? 1 : 0;
                case "reg:logistic", "cross_entropy", "cross_entropy_lambda" -> y = 1 / (1 + Math.exp(-score));
                case "count:poisson", "poisson" -> y = Math.floor(Math.exp(Math.min(score, 3)));
                case "reg:gamma",
                        "reg:tweedie",
                        "gamma",
                        "tweedie",
                        "mape",
                        "survival:cox",
                        "survival:aft",
                        "reg:squaredlogerror" -> y = Math.exp(Math.max(-3, Math.min(score, 3))) + 0.01;
                default -> y = score;
            }
            label[row] = (float) y;
        }
        return label;
    }
}
