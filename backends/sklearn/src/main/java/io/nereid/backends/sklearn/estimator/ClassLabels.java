// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The labels of a classifier's classes, in the order of {@code classes_}: numbers or texts. Immutable. */
public final class ClassLabels {
    private final double[] numbers;
    private final @Nullable String @Nullable [] texts;
    private final DataType type;

    private ClassLabels(double[] numbers, @Nullable String @Nullable [] texts, DataType type) {
        this.numbers = numbers;
        this.texts = texts;
        this.type = type;
    }

    public static ClassLabels of(NdArray classes) {
        if (classes.rank() != 1 || classes.count() == 0) {
            throw UnsupportedModel.unsupported("its classes are not a 1-d array of labels");
        }
        Object[] values = classes.values();
        double[] numbers = new double[values.length];
        boolean text = classes.isText();
        String[] texts = text ? new String[values.length] : null;
        DataType type = DataType.INT64;
        for (int i = 0; i < values.length; i++) {
            if (texts != null) {
                texts[i] = values[i] instanceof String s ? s : String.valueOf(values[i]);
                numbers[i] = Double.NaN;
            } else {
                numbers[i] = PythonValues.number(values[i]);
                type = values[i] instanceof Double
                        ? DataType.FP64
                        : values[i] instanceof Boolean ? DataType.BOOL : type;
            }
        }
        return new ClassLabels(numbers, texts, text ? DataType.BYTES : type);
    }

    /**
     * Labels of which the texts and the type are known.
     *
     * @param type INT64, FP64, BOOL (as {@code true} and {@code false}) or BYTES
     * @throws NumberFormatException for a text that is not a number although the type is
     */
    public static ClassLabels of(List<String> labels, DataType type) {
        double[] numbers = new double[labels.size()];
        boolean text = type == DataType.BYTES;
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = text
                    ? Double.NaN
                    : type == DataType.BOOL
                            ? (Boolean.parseBoolean(labels.get(i)) ? 1 : 0)
                            : Double.parseDouble(labels.get(i));
        }
        return new ClassLabels(numbers, text ? labels.toArray(String[]::new) : null, type);
    }

    /** The labels 0, 1, …, {@code count - 1}. */
    public static ClassLabels upTo(int count) {
        double[] numbers = new double[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = i;
        }
        return new ClassLabels(numbers, null, DataType.INT64);
    }

    public int count() {
        return numbers.length;
    }

    DataType type() {
        return type;
    }

    /** The index of a label, a number or a text; 0 when it is none of them. */
    public int indexOf(double number, @Nullable String text) {
        return Math.max(0, find(number, text));
    }

    /** The index of a label, a number or a text; -1 when it is none of them. */
    public int find(double number, @Nullable String text) {
        for (int i = 0; i < numbers.length; i++) {
            if (texts == null ? numbers[i] == number : texts[i] != null && texts[i].equals(text)) {
                return i;
            }
        }
        return -1;
    }

    double number(int i) {
        return numbers[i];
    }

    /** The labels of class indexes, as one column. */
    public DataTable pick(int[] classes) {
        double[] picked = new double[classes.length];
        @Nullable String @Nullable [] pickedTexts = texts == null ? null : new String[classes.length];
        for (int i = 0; i < classes.length; i++) {
            picked[i] = numbers[classes[i]];
            if (texts != null && pickedTexts != null) {
                pickedTexts[i] = texts[classes[i]];
            }
        }
        return new DataTable(classes.length, 1, picked, pickedTexts);
    }

    /** The index of each row's greatest column, the first of equals, as {@code argmax}. */
    public static int[] greatest(DataTable scores) {
        int[] best = new int[scores.rows()];
        for (int r = 0; r < best.length; r++) {
            int at = 0;
            for (int c = 1; c < scores.columns(); c++) {
                if (scores.at(r, c) > scores.at(r, at)) {
                    at = c;
                }
            }
            best[r] = at;
        }
        return best;
    }
}
