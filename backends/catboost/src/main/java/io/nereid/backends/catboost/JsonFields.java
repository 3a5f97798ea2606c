// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Typed access to values of {@link io.nereid.json.JsonValues}, with messages that name the field. Stateless. */
final class JsonFields {
    private JsonFields() {}

    static Map<?, ?> map(@Nullable Object value) {
        if (value instanceof Map<?, ?> map) {
            return map;
        }
        throw ServingException.invalidArgument("found " + value + " (expected: an object)");
    }

    static List<?> list(@Nullable Object value) {
        return value == null ? List.of() : value instanceof List<?> list ? list : List.of(value);
    }

    static double number(@Nullable Object value, String what) {
        if (value instanceof Number number) {
            return number.doubleValue();
        }
        throw ServingException.invalidArgument("'" + what + "' is " + value + " (expected: a number)");
    }

    static int whole(@Nullable Object value, String what) {
        double number = number(value, what);
        if (number != Math.rint(number) || Math.abs(number) > 0xffff_ffffL) {
            throw ServingException.invalidArgument("'" + what + "' is " + number + " (expected: an integer)");
        }
        return (int) (long) number;
    }

    static float[] floats(@Nullable Object value) {
        List<?> list = list(value);
        float[] floats = new float[list.size()];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) number(list.get(i), "borders");
        }
        return floats;
    }
}
