// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Writes one page of metrics, in Prometheus' text format or in OpenMetrics. Every family begins with {@link #family} and
 * is followed by its samples; samples with the same labels follow each other. Confined to one thread; one writer for
 * each page.
 *
 * <pre>{@code
 * String text = MetricsWriter.page(MetricsFormat.accepted(accept), page -> {
 *     page.family("requests_total", MetricType.COUNTER, "Requests since the start");
 *     page.sample(LabelSet.of("model", "bert"), 17);
 * });
 * }</pre>
 *
 * <p>Both formats have the same names of samples. OpenMetrics requires that a counter's sample ends in {@code _total},
 * so a counter with another name, such as Triton's, has the type {@code unknown} there. OpenMetrics also forbids things
 * that the text format accepts, and that a model's own metrics may contain; they are left out of OpenMetrics: a family
 * whose names an earlier family uses, a counter below 0 or NaN, and sum and count of a histogram with negative values.
 *
 * <p>Written by hand, because the Prometheus client libraries append {@code _total} to every counter and dashboards for
 * Triton expect its names.
 */
public final class MetricsWriter {
    /** The units in names that OpenMetrics announces in a line of their own. */
    private static final List<String> UNITS = List.of("seconds", "bytes", "ratio");

    private static final String TOTAL = "_total";

    private final StringBuilder page = new StringBuilder(4096);
    private final boolean openMetrics;
    private final NumberStyle numbers;
    /** The names of families and samples so far; OpenMetrics forbids to use one twice. */
    private final Set<String> names = new HashSet<>();

    /** The name of the family's samples, without the suffixes of histograms and summaries. */
    private String name = "";

    private boolean counter;
    private boolean omitted;

    public MetricsWriter(MetricsFormat format) {
        this(format, NumberStyle.EXACT);
    }

    public MetricsWriter(MetricsFormat format, NumberStyle numbers) {
        this.openMetrics = format == MetricsFormat.OPENMETRICS;
        this.numbers = numbers;
    }

    /** Returns a page of what {@code families} writes. */
    public static String page(MetricsFormat format, Consumer<MetricsWriter> families) {
        MetricsWriter page = new MetricsWriter(format);
        families.accept(page);
        return page.finish();
    }

    /**
     * Begins a family.
     *
     * @param familyName the name of its samples: letters, digits, {@code _} and {@code :}
     * @param help a description; empty for none
     */
    public void family(String familyName, MetricType type, String help) {
        name = familyName;
        if (!openMetrics) {
            head(name, type.name().toLowerCase(Locale.ROOT), help);
            return;
        }
        counter = type == MetricType.COUNTER && name.length() > TOTAL.length() && name.endsWith(TOTAL);
        omitted = false;
        if (counter) {
            String stem = name.substring(0, name.length() - TOTAL.length());
            if (claim(stem, "", TOTAL, "_created")) {
                head(stem, "counter", help);
                return;
            }
            counter = false;
        }
        switch (type) {
            case COUNTER -> omitted = !claim(name, "");
            case GAUGE -> omitted = !claim(name, "");
            case HISTOGRAM -> omitted = !claim(name, "", "_bucket", "_sum", "_count", "_created");
            case SUMMARY -> omitted = !claim(name, "", "_sum", "_count", "_created");
        }
        if (!omitted) {
            head(name, type == MetricType.COUNTER ? "unknown" : type.name().toLowerCase(Locale.ROOT), help);
        }
    }

    /** Takes the names of a family, if all of them are free. */
    private boolean claim(String stem, String... suffixes) {
        for (String suffix : suffixes) {
            if (names.contains(stem + suffix)) {
                return false;
            }
        }
        for (String suffix : suffixes) {
            names.add(stem + suffix);
        }
        return true;
    }

    private void head(String family, String type, String help) {
        if (!help.isEmpty()) {
            page.append("# HELP ").append(family).append(' ');
            LabelSet.escape(page, help, openMetrics);
            page.append('\n');
        }
        page.append("# TYPE ").append(family).append(' ').append(type).append('\n');
        if (openMetrics) {
            for (String unit : UNITS) {
                if (family.endsWith('_' + unit)) {
                    page.append("# UNIT ")
                            .append(family)
                            .append(' ')
                            .append(unit)
                            .append('\n');
                }
            }
        }
    }

    /** Writes a sample of a counter or a gauge. */
    public void sample(LabelSet labels, long value) {
        sample(labels, value, null);
    }

    /** Writes a sample of a counter or a gauge, with an exemplar if the format has one for it. */
    public void sample(LabelSet labels, long value, @Nullable Exemplar exemplar) {
        if (omitted || (counter && value < 0)) {
            return;
        }
        line("", labels, Long.toString(value), counter ? exemplar : null);
    }

    /** Writes a sample of a counter or a gauge. */
    public void sample(LabelSet labels, double value) {
        if (omitted || (counter && !(value >= 0))) {
            return;
        }
        line("", labels, number(value), null);
    }

    /**
     * Writes the samples of a histogram.
     *
     * @param bounds the upper bounds of the buckets, ascending, without infinity
     * @param counts the values of each bucket alone; the last element counts those above all bounds
     */
    public void histogram(LabelSet labels, double[] bounds, long[] counts, double sum) {
        histogram(labels, bounds, counts, sum, bucket -> null);
    }

    /**
     * Writes the samples of a histogram.
     *
     * @param bounds the upper bounds of the buckets, ascending, without infinity
     * @param counts the values of each bucket alone; the last element counts those above all bounds
     * @param exemplars returns the exemplar of a bucket, or null; called in OpenMetrics only
     */
    public void histogram(
            LabelSet labels, double[] bounds, long[] counts, double sum, IntFunction<@Nullable Exemplar> exemplars) {
        if (omitted) {
            return;
        }
        long below = 0;
        for (int i = 0; i <= bounds.length; i++) {
            below += counts[i];
            String bound = i == bounds.length ? "+Inf" : bound(bounds[i]);
            line("_bucket", labels.with("le", bound), Long.toString(below), openMetrics ? exemplars.apply(i) : null);
        }
        if (openMetrics && ((bounds.length > 0 && bounds[0] < 0) || !(sum >= 0))) {
            return;
        }
        line("_sum", labels, number(sum), null);
        line("_count", labels, Long.toString(below), null);
    }

    /**
     * Writes the samples of a summary.
     *
     * @param quantiles between 0 and 1
     * @param values the value of each quantile; NaN without observations
     */
    public void summary(LabelSet labels, double[] quantiles, double[] values, double sum, long count) {
        if (omitted) {
            return;
        }
        for (int i = 0; i < quantiles.length; i++) {
            line("", labels.with("quantile", bound(quantiles[i])), number(values[i]), null);
        }
        line("_sum", labels, number(sum), null);
        line("_count", labels, Long.toString(count), null);
    }

    private String bound(double value) {
        return openMetrics ? numbers.canonical(value) : numbers.text(value);
    }

    private String number(double value) {
        return openMetrics ? numbers.value(value) : numbers.text(value);
    }

    private void line(String suffix, LabelSet labels, String value, @Nullable Exemplar exemplar) {
        page.append(name).append(suffix);
        if (!labels.text().isEmpty()) {
            page.append('{').append(labels.text()).append('}');
        }
        page.append(' ').append(value);
        if (exemplar != null && exemplar.traceId().length() <= Exemplar.MAX_TRACE_ID) {
            page.append(" # {")
                    .append(LabelSet.of("trace_id", exemplar.traceId()).text())
                    .append("} ")
                    .append(number(exemplar.value()));
        }
        page.append('\n');
    }

    /** Ends the page and returns it. */
    public String finish() {
        if (openMetrics) {
            page.append("# EOF\n");
        }
        return page.toString();
    }
}
