// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** The parameters of an explanation by name, from a request or from the settings of a service. Immutable. */
public final class ExplainOptions {
    /** The names of all parameters. */
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

    private ExplainOptions(Map<String, Object> values) {
        this.values = values;
    }

    /** No parameters. */
    static ExplainOptions none() {
        return new ExplainOptions(Map.of());
    }

    /**
     * Wraps parameters; ignores nulls.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown name
     */
    public static ExplainOptions of(Map<String, ? extends @Nullable Object> given) {
        Map<String, Object> values = new LinkedHashMap<>();
        given.forEach((name, value) -> {
            require(name, NAMES, "parameter");
            if (value != null) {
                values.put(name, value);
            }
        });
        return new ExplainOptions(values);
    }

    /** Wraps values without a check of their names. */
    static ExplainOptions limits(Map<String, Object> values) {
        return new ExplainOptions(values);
    }

    /**
     * Checks that a name is known.
     *
     * @throws ServingException INVALID_ARGUMENT with the most similar names
     */
    public static void require(String name, Collection<String> known, String what) {
        if (!known.contains(name)) {
            List<String> near = NameSuggestions.nearest(name, known);
            throw ServingException.invalidArgument(
                    "unknown " + what + " '" + shortened(name) + "'",
                    near.isEmpty()
                            ? "there are " + String.join(", ", new TreeSet<>(known))
                            : "did you mean " + String.join(" or ", near) + "?");
        }
    }

    public static String shortened(String text) {
        return text.length() > 60 ? text.substring(0, 60) + "…" : text;
    }

    /** These parameters, with others as defaults. */
    public ExplainOptions over(ExplainOptions others) {
        Map<String, Object> all = new LinkedHashMap<>(others.values);
        all.putAll(values);
        return new ExplainOptions(all);
    }

    public boolean has(String name) {
        return values.containsKey(name);
    }

    public @Nullable Object get(String name) {
        return values.get(name);
    }

    public String text(String name, String otherwise) {
        Object value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value instanceof String text) {
            return text;
        }
        throw wrong(name, value, "a text");
    }

    /** A parameter that is one of some words. */
    public String word(String name, String otherwise, List<String> words) {
        String text = text(name, otherwise);
        if (!words.contains(text)) {
            throw wrong(name, text, String.join(", ", words));
        }
        return text;
    }

    public double number(String name, double otherwise, double least, double most) {
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
                // Rejected below.
            }
        }
        if (!(number >= least && number <= most)) {
            throw wrong(name, value, "a number from " + shown(least) + " to " + shown(most));
        }
        return number;
    }

    public long whole(String name, long otherwise, long least, long most) {
        double number = number(name, otherwise, least, most);
        if (number != Math.rint(number)) {
            throw wrong(name, number, "a whole number from " + least + " to " + most);
        }
        return (long) number;
    }

    /**
     * Rejects values that are invalid for every method.
     *
     * @throws ServingException INVALID_ARGUMENT
     */
    public ExplainOptions checked() {
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
                word("metric", "r2", ScoringMetric.NAMES),
                word("method", "shap", ExplainSettings.METHODS));
        return values.isEmpty() ? none() : this;
    }

    private static String shown(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15
                ? String.valueOf((long) value)
                : String.valueOf(value);
    }

    public static ServingException wrong(String name, @Nullable Object value, String expected) {
        return ServingException.invalidArgument(
                "parameter '" + name + "' is " + describe(value) + " (expected: " + expected + ")");
    }

    public static String describe(@Nullable Object value) {
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
        return String.valueOf(value);
    }
}
