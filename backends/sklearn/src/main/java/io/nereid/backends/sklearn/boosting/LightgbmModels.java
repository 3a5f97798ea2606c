// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.JsonValues;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.json.JsonReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The Python classes of LightGBM. The state of a {@code Booster} has its model in the library's text format under
 * {@code _handle}, before version 4 {@code handle}; the classes for scikit-learn hold a Booster. All predict with the
 * iterations up to the best one of early stopping. Stateless.
 */
final class LightgbmModels {
    static final String BACKEND = "lightgbm";

    private static final String FILE = "model.txt";
    private static final String CATEGORIES = "\npandas_categorical:";

    private LightgbmModels() {}

    static Estimator of(EstimatorAttributes f, BoosterLoader loader) {
        BoosterFile file = file(f);
        return switch (f.type()) {
            case "Booster", "LGBMModel", "LGBMRegressor", "LGBMRanker" ->
                new BoosterRegressor(f.type(), loader.load(file), LoadedBooster.DEFAULT);
            case "LGBMClassifier" -> classifier(f, loader.load(file));
            default -> throw UnsupportedModel.unsupported("estimator " + f.path() + " is not supported");
        };
    }

    static BoosterFile file(EstimatorAttributes f) {
        EstimatorAttributes booster = f.type().equals("Booster") ? f : new EstimatorAttributes(f.object("_Booster"));
        if (!(booster.required("_handle", "handle") instanceof String text)) {
            throw booster.unsupported("_handle");
        }
        int best = booster.integer("best_iteration", 0);
        return new BoosterFile(
                f.path(),
                BACKEND,
                FILE,
                text.getBytes(StandardCharsets.UTF_8),
                best > 0 ? Map.of("iteration_range", "0," + best) : Map.of(),
                Double.NaN,
                categories(text),
                false);
    }

    /**
     * The texts of the columns that had text categories in training. The last line of the model has the categories of each
     * column of a data frame that had some, without saying of which: they are those whose values the model knows as
     * categories, if these are as many.
     */
    private static Map<Integer, List<String>> categories(String text) {
        int at = text.lastIndexOf(CATEGORIES);
        int infos = text.indexOf("\nfeature_infos=");
        if (at < 0 || infos < 0) {
            return Map.of();
        }
        String line =
                text.substring(at + CATEGORIES.length()).lines().findFirst().orElse("");
        byte[] utf8 = line.getBytes(StandardCharsets.UTF_8);
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(utf8, utf8.length + JsonReader.SLACK), 0, utf8.length);
        if (!(JsonValues.read(reader) instanceof List<?> lists) || lists.isEmpty()) {
            return Map.of();
        }
        String[] features = text.substring(infos + "\nfeature_infos=".length())
                .lines()
                .findFirst()
                .orElse("")
                .split(" ", -1);
        List<Integer> columns = new ArrayList<>();
        for (int c = 0; c < features.length; c++) {
            if (features[c].contains(":") && !features[c].startsWith("[")) {
                columns.add(c);
            }
        }
        Map<Integer, List<String>> categories = new HashMap<>();
        for (int i = 0; columns.size() == lists.size() && i < columns.size(); i++) {
            if (lists.get(i) instanceof List<?> values && values.stream().allMatch(v -> v instanceof String)) {
                categories.put(
                        columns.get(i), values.stream().map(String::valueOf).toList());
            }
        }
        return categories;
    }

    private static Estimator classifier(EstimatorAttributes f, LoadedBooster booster) {
        ClassLabels labels = ClassLabels.of(
                f.any("_le") instanceof PyObject encoder
                        ? new EstimatorAttributes(encoder).array("classes_")
                        : f.array("_classes"));
        int width = Math.max(1, booster.width(LoadedBooster.DEFAULT));
        if (width != (labels.count() <= 2 ? 1 : labels.count())) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + labels.count() + " classes and " + width + " scores for a row");
        }
        // The method decision_function is of version 4.7, as is this attribute; calibrators prefer it to probabilities.
        boolean decides = f.contains("_fitted_with_feature_names");
        return new BoosterClassifier(f.type(), booster, labels, false, true, decides);
    }

    /**
     * The importance of each feature, by the parameter {@code importance_type}: the number of splits at it, or their gain,
     * in the iterations that predict. Read from the lines of each tree in the model's text.
     */
    static double[] importances(EstimatorAttributes f) {
        BoosterFile file = file(f);
        boolean gain = f.text("importance_type", "split").equals("gain");
        String[] lines = new String(file.content(), StandardCharsets.UTF_8).split("\n", -1);
        int best = new EstimatorAttributes(f.object("_Booster")).integer("best_iteration", 0);
        double[] importances =
                new double[1 + Math.min(1 << 24, Math.max(0, (int) values(lines, "max_feature_idx=")[0]))];
        int each = (int) values(lines, "num_tree_per_iteration=")[0];
        double[] features = {};
        int tree = -1;
        for (String line : lines) {
            tree += line.startsWith("Tree=") ? 1 : 0;
            if (best > 0 && tree >= best * each) {
                break;
            }
            if (line.startsWith("split_feature=")) {
                features = values(line);
            } else if (line.startsWith("split_gain=")) {
                double[] gains = values(line);
                for (int n = 0; n < features.length && n < gains.length; n++) {
                    if (gains[n] > 0) {
                        importances[(int) features[n]] += gain ? gains[n] : 1;
                    }
                }
            }
        }
        return importances;
    }

    private static double[] values(String[] lines, String name) {
        for (String line : lines) {
            if (line.startsWith(name)) {
                return values(line);
            }
        }
        throw UnsupportedModel.corrupt("the text of a LightGBM model has no '" + name + "'");
    }

    /** The numbers after the equals sign of a line. */
    private static double[] values(String line) {
        String text = line.substring(line.indexOf('=') + 1).strip();
        try {
            return text.isEmpty()
                    ? new double[0]
                    : Arrays.stream(text.split(" ", -1))
                            .mapToDouble(Double::parseDouble)
                            .toArray();
        } catch (NumberFormatException e) {
            throw UnsupportedModel.corrupt("the text of a LightGBM model has no numbers in a line of a tree");
        }
    }
}
