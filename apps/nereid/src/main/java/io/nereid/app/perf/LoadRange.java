// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * The loads of a sweep: {@code 1,2,4}, or {@code 1:16:2} from, to and step as perf_analyzer has it, or {@code 1:64:x2} with a factor.
 * Immutable.
 *
 * @param values the loads, each above zero, in the given order
 */
record LoadRange(List<Double> values) {
    /** The most loads of a sweep. */
    static final int MOST = 1000;

    private static final String NUMBER = "(\\d{1,9}(?:\\.\\d{1,9})?)";
    private static final Pattern SINGLE = Pattern.compile(NUMBER);
    private static final Pattern RANGE = Pattern.compile(NUMBER + ":" + NUMBER + "(?::(x?)" + NUMBER + ")?");

    LoadRange {
        values = List.copyOf(values);
    }

    /** Whether all loads are whole numbers. */
    boolean isWhole() {
        return values.stream().allMatch(value -> value == Math.rint(value));
    }

    /** Reads the value of an option. Stateless. */
    static final class Converter implements ITypeConverter<LoadRange> {
        @Override
        public LoadRange convert(String text) {
            List<Double> values = new ArrayList<>();
            for (String part : text.split(",", -1)) {
                Matcher single = SINGLE.matcher(part.strip());
                Matcher range = RANGE.matcher(part.strip());
                if (single.matches()) {
                    values.add(Double.parseDouble(part.strip()));
                } else if (range.matches()) {
                    expand(text, range, values);
                } else {
                    throw wrong(text, "it is not a number or range");
                }
            }
            if (values.stream().anyMatch(value -> value <= 0)) {
                throw wrong(text, "a load is zero");
            }
            return new LoadRange(values);
        }

        private static void expand(String text, Matcher range, List<Double> values) {
            double from = Double.parseDouble(range.group(1));
            double to = Double.parseDouble(range.group(2));
            boolean factor = "x".equals(range.group(3));
            double step = range.group(4) == null ? 1 : Double.parseDouble(range.group(4));
            if (to < from || step <= (factor ? 1 : 0)) {
                throw wrong(text, to < from ? "the range ends before it begins" : "it would not end");
            }
            double value = from;
            for (int i = 0; value <= to; i++) {
                if (values.size() == MOST) {
                    throw wrong(text, "it has more than " + MOST + " loads");
                }
                values.add(value);
                value = factor ? value * step : from + (i + 1) * step;
            }
        }

        private static TypeConversionException wrong(String text, String why) {
            return new TypeConversionException(
                    "'" + text + "': " + why
                            + " (expected: numbers above 0 such as 1,2,4, a range FROM:TO:STEP such as 1:16:2, or FROM:TO:xFACTOR)");
        }
    }
}
