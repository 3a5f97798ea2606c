// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.pickle.JsonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The snapshot that XGBoost writes into a pickle: an object with the fields {@code Model}, as in a model file, and
 * {@code Config}, in UBJ or, before version 1.6, JSON. Stateless.
 */
final class XgboostSnapshot {
    private static final int DEEPEST = 64;

    private XgboostSnapshot() {}

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
