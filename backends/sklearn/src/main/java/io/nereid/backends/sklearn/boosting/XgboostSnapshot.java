// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.pickle.JsonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The snapshot that XGBoost writes into a pickle: an object with the fields {@code Model}, as in a model file, and
 * {@code Config}, in UBJ or, before version 1.6, JSON. Versions before 1.3 write memory of their own, which is rejected.
 * Stateless.
 */
final class XgboostSnapshot {
    private static final int DEEPEST = 64;

    /** The beginning of a snapshot of versions 1.0 to 1.2. */
    private static final byte[] BINARY = "CONFIG-offset:".getBytes(StandardCharsets.US_ASCII);

    private XgboostSnapshot() {}

    /**
     * Checks that a snapshot is a document.
     *
     * @param origin the class that has it
     * @throws ServingException INVALID_ARGUMENT when it is in the binary format of an old version, with the commands that
     *     convert it
     */
    static void check(String origin, byte[] snapshot) {
        if (snapshot.length > 0 && snapshot[0] == '{') {
            return;
        }
        String load = "python3 -c \"import pickle; m = pickle.load(open('model.pkl', 'rb'));"
                + " getattr(m, 'get_booster', lambda: m)().save_model('%s')\"";
        String json = load.replace("%s", "model.json");
        if (Arrays.mismatch(snapshot, BINARY) >= BINARY.length) {
            throw ServingException.invalidArgument(
                    "the " + origin
                            + " in it has a snapshot in the binary format of XGBoost 1.0 to 1.2 (expected: one in JSON"
                            + " or UBJ, of version 1.3 or later)",
                    "convert it, which runs the pickle: python3 -m pip install 'xgboost<2' && " + json
                            + "; and serve model.json");
        }
        throw ServingException.invalidArgument(
                "the " + origin
                        + " in it has a snapshot in the binary format of XGBoost before 1.0 (expected: one in JSON or"
                        + " UBJ, of version 1.3 or later)",
                "convert it with the version that wrote it, which runs the pickle: python3 -m pip install 'xgboost<1' && "
                        + load.replace("%s", "model.bin")
                        + " && python3 -m pip install 'xgboost<2' && python3 -c \"import xgboost;"
                        + " xgboost.Booster(model_file='model.bin').save_model('model.json')\"; and serve model.json");
    }

    /** Whether it is JSON: a quotation mark, or the end of the object, follows the first brace. */
    static boolean isJson(byte[] snapshot) {
        return snapshot.length > 1 && snapshot[0] == '{' && (snapshot[1] == '"' || snapshot[1] == '}');
    }

    /**
     * The model alone, in the format of the snapshot, as the library's {@code save_model} writes it.
     *
     * @throws ServingException INVALID_ARGUMENT when the snapshot has none
     */
    static byte[] model(byte[] snapshot) {
        byte[] model = isJson(snapshot) ? jsonField(snapshot) : UbjValues.field(snapshot, "Model");
        if (model == null) {
            throw UnsupportedModel.corrupt("the snapshot of an XGBoost model has no model");
        }
        return model;
    }

    /** The text of the field {@code Model}: from its brace to the one that closes it. */
    private static byte @Nullable [] jsonField(byte[] snapshot) {
        String text = new String(snapshot, StandardCharsets.ISO_8859_1);
        int depth = 0;
        boolean quoted = false;
        int from = -1;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (quoted) {
                i += c == '\\' ? 1 : 0;
                quoted = c != '"';
                continue;
            }
            quoted = c == '"';
            if (c == '"' && depth == 1 && text.startsWith("\"Model\":{", i)) {
                from = i + "\"Model\":".length();
            }
            depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
            if (from >= 0 && i > from && depth == 1 && c == '}') {
                return Arrays.copyOfRange(snapshot, from, i + 1);
            }
        }
        return null;
    }

    /**
     * The importance of each feature by one of XGBoost's measures, as shares of their sum.
     *
     * @param measure {@code weight}, the number of splits; {@code gain} or {@code cover}, their mean over the splits;
     *     {@code total_gain} or {@code total_cover}
     * @throws ServingException INVALID_ARGUMENT for a model without trees, or an unknown measure
     */
    static double[] importances(byte[] snapshot, String measure) {
        Object document = isJson(snapshot) ? json(snapshot) : UbjValues.read(snapshot);
        Object learner = at(at(document, "Model"), "learner");
        Object booster = at(learner, "gradient_booster");
        Object trees = at(at(at(booster, "name").equals("dart") ? at(booster, "gbtree") : booster, "model"), "trees");
        double features = number(at(at(learner, "learner_model_param"), "num_feature"));
        String quantity = switch (measure) {
            case "weight", "gain", "total_gain" -> "loss_changes";
            case "cover", "total_cover" -> "sum_hessian";
            default ->
                throw UnsupportedModel.unsupported("an XGBoost model with importance_type='" + measure
                        + "' has no importances here (expected: weight, gain, cover, total_gain or total_cover)");
        };
        if (!(trees instanceof List<?> list) || !(features >= 0 && features <= 1 << 24)) {
            throw UnsupportedModel.unsupported("an XGBoost model without trees has no importances here");
        }
        double[] sums = new double[(int) features];
        int[] splits = new int[sums.length];
        for (Object tree : list) {
            double[] left = numbers(at(tree, "left_children"));
            double[] feature = numbers(at(tree, "split_indices"));
            double[] values = numbers(at(tree, quantity));
            for (int n = 0; n < left.length; n++) {
                if (left[n] != -1) {
                    sums[(int) feature[n]] += values[n];
                    splits[(int) feature[n]]++;
                }
            }
        }
        double total = 0;
        for (int i = 0; i < sums.length; i++) {
            sums[i] = measure.equals("weight")
                    ? splits[i]
                    : measure.startsWith("total") || splits[i] == 0 ? sums[i] : sums[i] / splits[i];
            sums[i] = (float) sums[i];
            total += sums[i];
        }
        for (int i = 0; total != 0 && i < sums.length; i++) {
            sums[i] /= total;
        }
        return sums;
    }

    /**
     * The texts of the columns that had text categories in training, which versions from 3.1 on store. Columns with other
     * letters than ASCII are left out: version 3.2 counts letters where it stores bytes, so that their texts are cut off.
     */
    static Map<Integer, List<String>> categories(byte[] snapshot) {
        if (!isJson(snapshot) && !contains(snapshot, "offsets")) {
            return Map.of();
        }
        Object document = isJson(snapshot) ? json(snapshot) : UbjValues.read(snapshot);
        Object booster = at(at(at(document, "Model"), "learner"), "gradient_booster");
        Object trees = at(booster, "name").equals("dart") ? at(booster, "gbtree") : booster;
        Object columns = at(at(at(trees, "model"), "cats"), "enc");
        Map<Integer, List<String>> categories = new HashMap<>();
        if (columns instanceof List<?> list) {
            for (int c = 0; c < list.size(); c++) {
                Object column = list.get(c);
                if (column instanceof Map<?, ?> map && map.containsKey("offsets")) {
                    List<String> texts = texts(numbers(at(column, "offsets")), numbers(at(column, "values")));
                    if (!texts.isEmpty()
                            && texts.stream().allMatch(t -> t.chars().allMatch(letter -> letter < 128))) {
                        categories.put(c, texts);
                    }
                }
            }
        }
        return categories;
    }

    private static boolean contains(byte[] snapshot, String text) {
        return new String(snapshot, StandardCharsets.ISO_8859_1).contains(text);
    }

    /** The texts of a column: their UTF-8 bytes one after another, and where each begins and ends. */
    private static List<String> texts(double[] offsets, double[] bytes) {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i + 1 < offsets.length; i++) {
            int from = (int) offsets[i];
            int to = (int) offsets[i + 1];
            if (from < 0 || to < from || to > bytes.length) {
                throw UnsupportedModel.corrupt("the snapshot of an XGBoost model has damaged categories");
            }
            byte[] utf8 = new byte[to - from];
            for (int b = 0; b < utf8.length; b++) {
                utf8[b] = (byte) (int) bytes[from + b];
            }
            texts.add(new String(utf8, StandardCharsets.UTF_8));
        }
        return texts;
    }

    private static Object at(Object value, String field) {
        Object found = value instanceof Map<?, ?> map ? map.get(field) : null;
        return found == null ? "" : found;
    }

    private static double number(Object value) {
        try {
            return value instanceof Number n ? n.doubleValue() : Double.parseDouble(String.valueOf(value));
        } catch (NumberFormatException e) {
            return Double.NaN;
        }
    }

    private static double[] numbers(Object value) {
        if (value instanceof double[] array) {
            return array;
        }
        if (value instanceof List<?> list) {
            return list.stream().mapToDouble(v -> number(v == null ? "" : v)).toArray();
        }
        throw UnsupportedModel.corrupt("the snapshot of an XGBoost model has a tree without nodes");
    }

    private static Object json(byte[] snapshot) {
        JsonReader reader = new JsonReader(DEEPEST);
        reader.reset(Arrays.copyOf(snapshot, snapshot.length + JsonReader.SLACK), 0, snapshot.length);
        return JsonValues.read(reader);
    }
}
