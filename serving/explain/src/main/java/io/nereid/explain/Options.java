// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** What a request, or the settings of a service, say of an explanation, by name. Immutable. */
final class Options {
    /** Everything that can be said. */
    static final List<String> NAMES = List.of(
            "method",
            "background",
            "background_size",
            "nsamples",
            "seed",
            "output",
            "target",
            "link",
            "kernel_width",
            "ridge",
            "targets",
            "metric",
            "repeats",
            "desired",
            "tolerance",
            "immutable",
            "ranges",
            "count",
            "timeout_ms");

    private final Map<String, Object> values;

    private Options(Map<String, Object> values) {
        this.values = values;
    }

    /** Nothing said. */
    static Options none() {
        return new Options(Map.of());
    }

    /**
     * Of names and values.
     *
     * @throws ServingException INVALID_ARGUMENT for a name that there is not
     */
    static Options of(Map<String, ?> given) {
        Map<String, Object> values = new LinkedHashMap<>();
        given.forEach((name, value) -> {
            require(name, NAMES, "parameter");
            if (value != JsonTree.NULL) {
                values.put(name, value);
            }
        });
        return new Options(values);
    }

    /** Values whose names are known to be good. */
    static Options limits(Map<String, Object> values) {
        return new Options(values);
    }

    /** @throws ServingException INVALID_ARGUMENT, with the nearest names, for a name that there is not */
    static void require(String name, Collection<String> known, String what) {
        if (!known.contains(name)) {
            List<String> near = NameSuggestions.nearest(name, known);
            throw ServingException.invalidArgument(
                    "unknown " + what + " '" + shortened(name) + "'",
                    near.isEmpty()
                            ? "there are " + String.join(", ", new TreeSet<>(known))
                            : "did you mean " + String.join(" or ", near) + "?");
        }
    }

    static String shortened(String text) {
        return text.length() > 60 ? text.substring(0, 60) + "…" : text;
    }

    /** These, and where they say nothing, others. */
    Options over(Options others) {
        Map<String, Object> all = new LinkedHashMap<>(others.values);
        all.putAll(values);
        return new Options(all);
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    @Nullable
    Object get(String name) {
        return values.get(name);
    }

    String text(String name, String otherwise) {
        Object value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value instanceof String text) {
            return text;
        }
        throw wrong(name, value, "a text");
    }

    /** One of some words. */
    String word(String name, String otherwise, List<String> words) {
        String text = text(name, otherwise);
        if (!words.contains(text)) {
            throw wrong(name, text, String.join(", ", words));
        }
        return text;
    }

    double number(String name, double otherwise, double least, double most) {
        Object value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        double number = Double.NaN;
        if (value instanceof Double d) {
            number = d;
        } else if (value instanceof String text) {
            try {
                number = Double.parseDouble(text.strip());
            } catch (NumberFormatException e) {
                // Refused below.
            }
        }
        if (!(number >= least && number <= most)) {
            throw wrong(name, value, "a number from " + shown(least) + " to " + shown(most));
        }
        return number;
    }

    long whole(String name, long otherwise, long least, long most) {
        double number = number(name, otherwise, least, most);
        if (number != Math.rint(number)) {
            throw wrong(name, number, "a whole number from " + least + " to " + most);
        }
        return (long) number;
    }

    /** Refuses values that no request could mean, whatever the method. */
    Options checked() {
        List<Object> values = List.of(
                whole("seed", 0, Long.MIN_VALUE / 2048, Long.MAX_VALUE / 2048),
                whole("nsamples", 0, 0, 1 << 20),
                whole("background_size", 1, 1, 10_000),
                whole("repeats", 1, 1, 1000),
                whole("count", 1, 1, 100),
                number("kernel_width", 1, Double.MIN_NORMAL, 1e9),
                number("ridge", 1, 0, 1e12),
                number("tolerance", 0, 0, Double.MAX_VALUE),
                word("link", "identity", List.of("identity", "logit")),
                word("metric", "r2", Metric.NAMES),
                word("method", "shap", ExplainSettings.METHODS));
        return values.isEmpty() ? none() : this;
    }

    private static String shown(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15
                ? String.valueOf((long) value)
                : String.valueOf(value);
    }

    static ServingException wrong(String name, Object value, String expected) {
        return ServingException.invalidArgument(
                "parameter '" + name + "' is " + describe(value) + " (expected: " + expected + ")");
    }

    static String describe(@Nullable Object value) {
        if (value instanceof String text) {
            return "'" + shortened(text) + "'";
        }
        if (value instanceof Double number) {
            return shown(number);
        }
        if (value instanceof Map) {
            return "an object";
        }
        if (value instanceof List || value instanceof double[]) {
            return "a list";
        }
        return value == JsonTree.NULL ? "null" : String.valueOf(value);
    }
}
