// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.pmml4s.data.DataVal;
import org.pmml4s.metadata.Field;
import org.pmml4s.metadata.MiningField;
import org.pmml4s.model.Model;

/**
 * An active field of a model: its type and the values that it accepts. Immutable.
 *
 * @param name the name
 * @param type the tensor data type
 * @param field the field of the document
 * @param texts the accepted categories, or null when it accepts any text
 * @param bounded whether invalid numbers are rejected
 */
record InputField(
        String name, DataType type, Field field, @Nullable Set<String> texts, boolean bounded) {
    private static final int MOST_SHOWN = 10;

    /** The active fields in the order of the mining schema. */
    static List<InputField> of(Model model) {
        List<InputField> fields = new ArrayList<>();
        for (Field field : model.inputFields()) {
            DataType type = type(field.dataType());
            boolean rejects = rejectsInvalid(model, field.name());
            Set<String> texts = null;
            boolean numbers = false;
            if (rejects && type == DataType.BYTES && field.dataType().isString()) {
                texts = new HashSet<>();
                for (DataVal value : field.validValues()) {
                    texts.add(String.valueOf(value));
                }
                texts = texts.isEmpty() ? null : Set.copyOf(texts);
            } else if (rejects && type != DataType.BYTES && type != DataType.BOOL) {
                numbers = field.validValues().length > 0 || field.intervals().length > 0;
            }
            fields.add(new InputField(field.name(), type, field, texts, numbers));
        }
        return List.copyOf(fields);
    }

    /**
     * Whether an invalid value is an error: PMML's {@code invalidValueTreatment} {@code returnInvalid}, the default.
     */
    private static boolean rejectsInvalid(Model model, String name) {
        if (!model.miningSchema().contains(name)) {
            return true;
        }
        MiningField mining = model.miningSchema().apply(name);
        return String.valueOf(mining.invalidValueTreatment()).equals("returnInvalid");
    }

    /** The tensor data type of a PMML type; dates and times are text. */
    static DataType type(org.pmml4s.common.DataType type) {
        return switch (type.toString()) {
            case "integer" -> DataType.INT64;
            case "float" -> DataType.FP32;
            case "double", "real" -> DataType.FP64;
            case "boolean" -> DataType.BOOL;
            default -> DataType.BYTES;
        };
    }

    /**
     * Converts a number to the field's type.
     *
     * @return null for NaN, a missing value
     * @throws ServingException INVALID_ARGUMENT for a number that the field does not accept
     */
    @Nullable Object number(double value, int row) {
        if (Double.isNaN(value)) {
            return null;
        }
        if (type == DataType.BOOL) {
            if (value != 0 && value != 1) {
                throw wrong(row, String.valueOf(value), "0 or 1");
            }
            return value != 0;
        }
        if (type == DataType.INT64) {
            if (value != Math.rint(value) || Math.abs(value) > 0x1p63) {
                throw wrong(row, String.valueOf(value), "a whole number");
            }
            return whole((long) value, row);
        }
        if (bounded && !field.isMissingValue(DataVal.from(value)) && !field.isValidValue(DataVal.from(value))) {
            throw wrong(row, String.valueOf(value), valid());
        }
        return value;
    }

    /** As {@link #number}, for an integer. */
    Object whole(long value, int row) {
        if (type != DataType.INT64) {
            Object number = number(value, row);
            return number == null ? value : number;
        }
        DataVal v = DataVal.from(value);
        if (bounded && !field.isMissingValue(v) && !field.isValidValue(v)) {
            throw wrong(row, String.valueOf(value), valid());
        }
        return value;
    }

    /**
     * Converts a text to the field's type.
     *
     * @return null for the empty text, a missing value
     * @throws ServingException INVALID_ARGUMENT for a text that the field does not accept
     */
    @Nullable Object text(String value, int row) {
        if (value.isEmpty()) {
            return null;
        }
        if (type != DataType.BYTES) {
            if (type == DataType.BOOL && (value.equals("true") || value.equals("false"))) {
                return value.equals("true");
            }
            try {
                return type == DataType.INT64 && !value.contains(".")
                        ? whole(Long.parseLong(value.strip()), row)
                        : number(Double.parseDouble(value.strip()), row);
            } catch (NumberFormatException e) {
                throw wrong(row, "'" + shown(value) + "'", type == DataType.BOOL ? "true or false" : "a number");
            }
        }
        if (texts != null && !texts.contains(value) && !field.isMissingValue(DataVal.from(value))) {
            throw wrong(row, "'" + shown(value) + "'", valid());
        }
        if (texts == null && !field.dataType().isString()) {
            return date(value, row);
        }
        return value;
    }

    private Object date(String value, int row) {
        try {
            return field.dataType().toVal(value);
        } catch (RuntimeException e) {
            throw wrong(row, "'" + shown(value) + "'", "a " + field.dataType());
        }
    }

    private String valid() {
        if (field.validValues().length > 0) {
            List<String> some = new ArrayList<>();
            for (DataVal value : field.validValues()) {
                if (some.size() == MOST_SHOWN) {
                    some.add("…");
                    break;
                }
                some.add(String.valueOf(value));
            }
            return "one of " + String.join(", ", some);
        }
        return "within the intervals that the model defines";
    }

    private ServingException wrong(int row, String value, String expected) {
        return ServingException.invalidArgument(
                "field '" + name + "' is " + value + " in row " + row + " (expected: " + expected + ")",
                "omit an unknown value, or send " + (type == DataType.BYTES ? "an empty text" : "NaN"));
    }

    private static String shown(String value) {
        return value.length() > 40 ? value.substring(0, 40) + "…" : value;
    }
}
