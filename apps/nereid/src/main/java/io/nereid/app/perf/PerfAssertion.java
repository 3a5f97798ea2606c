// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import io.nereid.app.perf.load.LoadResult;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * A threshold that every load of a measurement must keep, such as {@code p99<20ms}, {@code rate>=500} or {@code failed==0}.
 * Immutable.
 *
 * @param text as it was given
 * @param metric what is compared
 * @param operator how it is compared
 * @param value the threshold: milliseconds, requests per second, a count, or a share from 0 to 1
 * @param share whether the value is a share
 */
record PerfAssertion(String text, Metric metric, Operator operator, double value, boolean share) {
    private static final Pattern FORM =
            Pattern.compile("\\s*([A-Za-z0-9_.]+)\\s*(<=|>=|==|!=|<|>)\\s*([0-9]+(?:\\.[0-9]+)?)\\s*(\\S*)\\s*");
    private static final String EXPECTED =
            " (expected: METRIC OPERATOR VALUE, such as p99<20ms, rate>=500 or failed==0; metrics: p50, p90, p95, p99,"
                    + " p999, mean, min, max, rate, inferences, failed; operators: <, <=, >, >=, ==, !=)";

    /** What can be compared. */
    enum Metric {
        P50,
        P90,
        P95,
        P99,
        P999,
        MEAN,
        MIN,
        MAX,
        RATE,
        INFERENCES,
        FAILED;

        boolean isLatency() {
            return compareTo(RATE) < 0;
        }
    }

    /** How values are compared. */
    enum Operator {
        LESS("<"),
        LESS_OR_EQUAL("<="),
        GREATER(">"),
        GREATER_OR_EQUAL(">="),
        EQUAL("=="),
        NOT_EQUAL("!=");

        private final String symbol;

        Operator(String symbol) {
            this.symbol = symbol;
        }

        boolean holds(double left, double right) {
            return switch (this) {
                case LESS -> left < right;
                case LESS_OR_EQUAL -> left <= right;
                case GREATER -> left > right;
                case GREATER_OR_EQUAL -> left >= right;
                case EQUAL -> left == right;
                case NOT_EQUAL -> left != right;
            };
        }
    }

    /**
     * What a load has of the metric, in the unit of the threshold; NaN where there is none, which keeps no threshold.
     *
     * @param batchSize rows of a request
     */
    double actual(LoadResult result, int batchSize) {
        return switch (metric) {
            case P50 -> result.percentileMillis(50);
            case P90 -> result.percentileMillis(90);
            case P95 -> result.percentileMillis(95);
            case P99 -> result.percentileMillis(99);
            case P999 -> result.percentileMillis(99.9);
            case MEAN -> result.meanMillis();
            case MIN -> result.minMillis();
            case MAX -> result.maxMillis();
            case RATE -> result.rate();
            case INFERENCES -> result.rate() * batchSize;
            case FAILED -> share ? result.failedShare() : result.failed() + result.unfinished();
        };
    }

    /** Whether a load keeps the threshold. */
    boolean holds(LoadResult result, int batchSize) {
        double actual = actual(result, batchSize);
        return !Double.isNaN(actual) && operator.holds(actual, value);
    }

    /** The unit of the threshold in words, with a space before it; empty for counts. */
    String unit() {
        return metric.isLatency() ? " ms" : metric == Metric.FAILED ? "" : " per second";
    }

    /** Reads the value of an option. Stateless. */
    static final class Converter implements ITypeConverter<PerfAssertion> {
        @Override
        public PerfAssertion convert(String text) {
            Matcher form = FORM.matcher(text);
            if (!form.matches()) {
                throw new TypeConversionException("'" + text + "' is not an assertion" + EXPECTED);
            }
            Metric metric = metric(text, form.group(1));
            double number = Double.parseDouble(form.group(3));
            String unit = form.group(4).toLowerCase(Locale.ROOT);
            Operator operator = Operator.EQUAL;
            for (Operator each : Operator.values()) {
                operator = each.symbol.equals(form.group(2)) ? each : operator;
            }
            if (metric.isLatency()) {
                double millis = switch (unit) {
                    case "ns" -> number / 1e6;
                    case "us" -> number / 1e3;
                    case "ms" -> number;
                    case "s" -> number * 1e3;
                    default ->
                        throw new TypeConversionException("'" + text + "': a latency needs a unit (expected: a number"
                                + " and ns, us, ms or s, such as 20ms)");
                };
                return new PerfAssertion(text, metric, operator, millis, false);
            }
            boolean share = metric == Metric.FAILED && unit.equals("%");
            if (!unit.isEmpty() && !share && !(metric != Metric.FAILED && unit.equals("/s"))) {
                throw new TypeConversionException("'" + text + "': '" + form.group(4) + "' is not a unit of "
                        + form.group(1) + " (expected: "
                        + (metric == Metric.FAILED ? "a number or %" : "a number, per second")
                        + ")");
            }
            return new PerfAssertion(text, metric, operator, share ? number / 100 : number, share);
        }

        private static Metric metric(String text, String name) {
            String plain = name.equalsIgnoreCase("p99.9") ? "p999" : name;
            for (Metric each : Metric.values()) {
                if (each.name().equalsIgnoreCase(plain)) {
                    return each;
                }
            }
            throw new TypeConversionException("'" + text + "': '" + name + "' is not a metric" + EXPECTED);
        }
    }
}
