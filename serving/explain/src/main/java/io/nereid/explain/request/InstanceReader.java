// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads rows of numbers in all forms that clients send: lists, objects by feature, objects of columns, or V2 tensors.
 * Stateless.
 */
public final class InstanceReader {
    private InstanceReader() {}

    /** The width of the first row; -1 when it is not known without the names of the features. */
    public static int width(@Nullable Object given) {
        if (given instanceof double[] row) {
            return row.length == 0 ? -1 : 1;
        }
        if (given instanceof List<?> list && !list.isEmpty()) {
            Object first = list.get(0);
            if (first instanceof double[] row) {
                return row.length;
            }
            if (first instanceof Map<?, ?> tensor
                    && tensor.get("shape") instanceof double[] shape
                    && shape.length == 2) {
                return (int) shape[1];
            }
        }
        return -1;
    }

    /**
     * Reads rows.
     *
     * @param what the field's name for messages, such as {@code instances}
     * @throws ServingException INVALID_ARGUMENT for values that are not rows, or rows of another width
     */
    public static double[][] read(@Nullable Object given, FeatureColumns columns, String what) {
        if (given instanceof double[] values && columns.count() == 1) {
            double[][] rows = new double[values.length][];
            for (int i = 0; i < rows.length; i++) {
                rows[i] = new double[] {values[i]};
            }
            return rows;
        }
        if (given instanceof double[] none && none.length == 0) {
            return new double[0][];
        }
        if (!(given instanceof List<?> list)) {
            throw given instanceof double[]
                    ? ServingException.invalidArgument(
                            "'" + what + "' is a list of numbers (expected: a list of rows)",
                            "send each row in brackets of its own: [[1, 2, …], …]")
                    : ServingException.invalidArgument("Expected \"" + what + "\" to be a list");
        }
        if (!list.isEmpty() && list.get(0) instanceof Map<?, ?> first && first.containsKey("datatype")) {
            return tensors(list, columns, what);
        }
        List<double[]> rows = new ArrayList<>();
        for (int i = 0; i < list.size(); i++) {
            Object row = list.get(i);
            if (row instanceof double[] values) {
                if (values.length != columns.count()) {
                    throw ServingException.invalidArgument("row " + i + " of '" + what + "' has " + values.length
                            + " values (expected: " + columns.count() + ": " + shown(columns.names()) + ")");
                }
                rows.add(values);
            } else if (row instanceof Map<?, ?> map) {
                named(map, columns, what, i, rows);
            } else {
                throw ServingException.invalidArgument(
                        "row " + i + " of '" + what + "' is " + ExplainOptions.describe(row)
                                + (row instanceof List ? " of more than numbers" : "")
                                + " (expected: a list of numbers, or an object by feature)",
                        "explanations are for rows of numbers");
            }
        }
        return rows.toArray(new double[0][]);
    }

    private static String shown(List<String> names) {
        return names.size() > 12 ? String.join(", ", names.subList(0, 12)) + ", …" : String.join(", ", names);
    }

    private static void named(Map<?, ?> map, FeatureColumns columns, String what, int index, List<double[]> rows) {
        int count = -1;
        for (Object key : map.keySet()) {
            ExplainOptions.require(
                    String.valueOf(key), columns.names(), "feature in row " + index + " of '" + what + "':");
            if (map.get(key) instanceof double[] values) {
                count = values.length;
            }
        }
        boolean lists = count >= 0;
        double[][] made = new double[lists ? count : 1][columns.count()];
        for (int c = 0; c < columns.count(); c++) {
            String name = columns.names().get(c);
            Object value = map.get(name);
            if (!map.containsKey(name)) {
                throw ServingException.invalidArgument(
                        "row " + index + " of '" + what + "' lacks feature '" + name + "'",
                        "give every feature, null for what is missing");
            }
            if (lists != value instanceof double[] || (value instanceof double[] v && v.length != count)) {
                throw ServingException.invalidArgument(
                        "row " + index + " of '" + what + "' has lists of different lengths, or some only",
                        "give one value for each feature, or as many for each");
            }
            for (int r = 0; r < made.length; r++) {
                made[r][c] = value instanceof double[] values ? values[r] : number(value, name, what, index);
            }
        }
        rows.addAll(List.of(made));
    }

    private static double number(@Nullable Object value, String name, String what, int index) {
        if (value instanceof Double number) {
            return number;
        }
        if (value instanceof Boolean truth) {
            return truth ? 1 : 0;
        }
        if (value == null) {
            return Double.NaN;
        }
        throw ServingException.invalidArgument("feature '" + name + "' in row " + index + " of '" + what + "' is "
                + ExplainOptions.describe(value) + " (expected: a number)");
    }

    /** Reads V2 inputs: one of shape [n, features], or one for each feature. */
    private static double[][] tensors(List<?> list, FeatureColumns columns, String what) {
        double[][] rows = new double[0][];
        boolean one = list.size() == 1 && columns.matrix();
        boolean[] seen = new boolean[columns.count()];
        for (Object item : list) {
            if (!(item instanceof Map<?, ?> tensor)
                    || !(tensor.get("name") instanceof String name)
                    || !(tensor.get("shape") instanceof double[] shape)
                    || !tensor.containsKey("data")) {
                throw ServingException.invalidArgument(
                        "an input of '" + what + "' lacks name, shape or data",
                        "send inputs as {\"name\": …, \"shape\": […], \"datatype\": …, \"data\": […]}");
            }
            double[] values = flat(tensor.get("data"), name);
            int place = one && columns.count() > 1 ? -1 : one ? 0 : columns.place(name, what);
            int width = place < 0 ? columns.count() : 1;
            long elements = 1;
            for (double dim : shape) {
                elements *= (long) dim;
            }
            int count = values.length / width;
            if (elements != values.length
                    || values.length % width != 0
                    || (place < 0 && shape[shape.length - 1] != width)) {
                throw ServingException.invalidArgument("input '" + name + "' has " + values.length
                        + " values and a shape of " + elements + " (expected: [n, " + width + "] of as many)");
            }
            if (rows.length == 0) {
                rows = new double[count][columns.count()];
            }
            if (rows.length != count || (place >= 0 && seen[place])) {
                throw ServingException.invalidArgument("input '" + name + "' has " + count
                        + " rows, or is given twice (expected: " + rows.length + ")");
            }
            for (int r = 0; r < count; r++) {
                for (int c = 0; c < width; c++) {
                    rows[r][Math.max(place, 0) + c] = values[r * width + c];
                }
            }
            if (place >= 0) {
                seen[place] = true;
            }
        }
        for (int c = 0; c < seen.length; c++) {
            if (!one && !seen[c]) {
                throw ServingException.invalidArgument(
                        "input '" + columns.names().get(c) + "' is missing");
            }
        }
        return rows;
    }

    private static double[] flat(@Nullable Object data, String name) {
        if (data instanceof double[] values) {
            return values;
        }
        if (data instanceof List<?> list) {
            List<double[]> parts = new ArrayList<>();
            int size = 0;
            for (Object inner : list) {
                double[] part = flat(inner, name);
                parts.add(part);
                size += part.length;
            }
            double[] all = new double[size];
            int at = 0;
            for (double[] part : parts) {
                System.arraycopy(part, 0, all, at, part.length);
                at += part.length;
            }
            return all;
        }
        throw ServingException.invalidArgument("input '" + name + "' has data that are not numbers");
    }
}
