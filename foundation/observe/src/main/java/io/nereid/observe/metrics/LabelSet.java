// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

import java.util.Map;

/**
 * The labels of a sample, in the order in which they are written. Immutable. Names are given as they are; values are
 * escaped.
 *
 * <pre>{@code
 * LabelSet labels = LabelSet.of("model", "bert").with("version", 3);
 * }</pre>
 */
public final class LabelSet implements Comparable<LabelSet> {
    /** The labels of a metric with a single sample. */
    public static final LabelSet NONE = new LabelSet("");

    private final String text;

    private LabelSet(String text) {
        this.text = text;
    }

    /** The labels as they stand between the braces: {@code model="bert",version="3"}. */
    String text() {
        return text;
    }

    /** One label. */
    public static LabelSet of(String name, String value) {
        return NONE.with(name, value);
    }

    /** Labels by name, in the map's order. */
    public static LabelSet of(Map<String, String> labels) {
        StringBuilder text = new StringBuilder();
        labels.forEach((name, value) -> append(text, name, value));
        return new LabelSet(text.toString());
    }

    /** These labels and one more at the end. */
    public LabelSet with(String name, String value) {
        StringBuilder more = new StringBuilder(text);
        append(more, name, value);
        return new LabelSet(more.toString());
    }

    /** These labels and one more at the end. */
    public LabelSet with(String name, long value) {
        return with(name, Long.toString(value));
    }

    /** Orders by the text. */
    @Override
    public int compareTo(LabelSet other) {
        return text.compareTo(other.text);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LabelSet labels && text.equals(labels.text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }

    @Override
    public String toString() {
        return text;
    }

    private static void append(StringBuilder text, String name, String value) {
        if (text.length() > 0) {
            text.append(',');
        }
        text.append(name).append("=\"");
        escape(text, value, true);
        text.append('"');
    }

    /** Appends a text with the escape sequences of the exposition formats. */
    static void escape(StringBuilder out, String text, boolean quotes) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '"' -> out.append(quotes ? "\\\"" : "\"");
                default -> out.append(c);
            }
        }
    }
}
