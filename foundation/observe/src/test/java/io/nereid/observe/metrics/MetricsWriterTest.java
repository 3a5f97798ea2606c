// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class MetricsWriterTest {
    private static final LabelSet M = LabelSet.of("model", "m");

    private static String text(Consumer<MetricsWriter> families) {
        return MetricsWriter.page(MetricsFormat.TEXT, families);
    }

    private static String openMetrics(Consumer<MetricsWriter> families) {
        String page = MetricsWriter.page(MetricsFormat.OPENMETRICS, families);
        assertThat(page).endsWith("# EOF\n");
        return page.substring(0, page.length() - "# EOF\n".length());
    }

    @Test
    void aFamilyHasADescriptionATypeAndSamples() {
        Consumer<MetricsWriter> families = page -> {
            page.family("queue_bytes", MetricType.GAUGE, "Bytes");
            page.sample(M, 17);
            page.sample(M.with("version", 3), 2.5);
            page.family("bare", MetricType.GAUGE, "");
            page.sample(LabelSet.NONE, 0);
        };
        assertThat(text(families)).isEqualTo("""
            # HELP queue_bytes Bytes
            # TYPE queue_bytes gauge
            queue_bytes{model="m"} 17
            queue_bytes{model="m",version="3"} 2.5
            # TYPE bare gauge
            bare 0
            """);
        assertThat(openMetrics(families)).as("the unit is announced").isEqualTo("""
            # HELP queue_bytes Bytes
            # TYPE queue_bytes gauge
            # UNIT queue_bytes bytes
            queue_bytes{model="m"} 17
            queue_bytes{model="m",version="3"} 2.5
            # TYPE bare gauge
            bare 0
            """);
    }

    @Test
    void countersKeepTheirNamesAndOnlyThoseWithTotalHaveTheType() {
        Consumer<MetricsWriter> families = page -> {
            page.family("nv_inference_count", MetricType.COUNTER, "Rows");
            page.sample(M, 4);
            page.family("requests_total", MetricType.COUNTER, "Requests");
            page.sample(M, 5);
            page.family("_total", MetricType.COUNTER, "");
            page.sample(M, 6);
        };
        assertThat(text(families)).isEqualTo("""
            # HELP nv_inference_count Rows
            # TYPE nv_inference_count counter
            nv_inference_count{model="m"} 4
            # HELP requests_total Requests
            # TYPE requests_total counter
            requests_total{model="m"} 5
            # TYPE _total counter
            _total{model="m"} 6
            """);
        assertThat(openMetrics(families)).isEqualTo("""
            # HELP nv_inference_count Rows
            # TYPE nv_inference_count unknown
            nv_inference_count{model="m"} 4
            # HELP requests Requests
            # TYPE requests counter
            requests_total{model="m"} 5
            # TYPE _total unknown
            _total{model="m"} 6
            """);
    }

    @Test
    void descriptionsAndValuesAreEscaped() {
        Map<String, String> labels = new LinkedHashMap<>();
        labels.put("b", "a \"b\" \\ \n c");
        labels.put("a", "é");
        Consumer<MetricsWriter> families = page -> {
            page.family("x", MetricType.GAUGE, "A \"quoted\" \\ text\nof two lines");
            page.sample(LabelSet.of(labels), 1);
        };
        String sample = "x{b=\"a \\\"b\\\" \\\\ \\n c\",a=\"é\"} 1\n";
        assertThat(text(families))
                .isEqualTo("# HELP x A \"quoted\" \\\\ text\\nof two lines\n# TYPE x gauge\n" + sample);
        assertThat(openMetrics(families))
                .as("OpenMetrics escapes quotation marks too")
                .isEqualTo("# HELP x A \\\"quoted\\\" \\\\ text\\nof two lines\n# TYPE x gauge\n" + sample);
    }

    @Test
    void bucketsAreCumulativeAndBoundsOfOpenMetricsHaveAPoint() {
        double[] bounds = {0.00005, 0.25, 1, 30, 2_000_000};
        long[] counts = {1, 0, 2, 0, 0, 4};
        Consumer<MetricsWriter> families = page -> {
            page.family("time_seconds", MetricType.HISTOGRAM, "");
            page.histogram(M, bounds, counts, 12.5, i -> i == 2 ? new Exemplar("0af7", 0.75) : null);
        };
        assertThat(text(families)).isEqualTo("""
            # TYPE time_seconds histogram
            time_seconds_bucket{model="m",le="5.0E-5"} 1
            time_seconds_bucket{model="m",le="0.25"} 1
            time_seconds_bucket{model="m",le="1"} 3
            time_seconds_bucket{model="m",le="30"} 3
            time_seconds_bucket{model="m",le="2000000"} 3
            time_seconds_bucket{model="m",le="+Inf"} 7
            time_seconds_sum{model="m"} 12.5
            time_seconds_count{model="m"} 7
            """);
        assertThat(openMetrics(families)).isEqualTo("""
            # TYPE time_seconds histogram
            # UNIT time_seconds seconds
            time_seconds_bucket{model="m",le="5e-05"} 1
            time_seconds_bucket{model="m",le="0.25"} 1
            time_seconds_bucket{model="m",le="1.0"} 3 # {trace_id="0af7"} 0.75
            time_seconds_bucket{model="m",le="30.0"} 3
            time_seconds_bucket{model="m",le="2e+06"} 3
            time_seconds_bucket{model="m",le="+Inf"} 7
            time_seconds_sum{model="m"} 12.5
            time_seconds_count{model="m"} 7
            """);
    }

    @Test
    void exemplarsAreOnCountersOfOpenMetricsOnly() {
        Exemplar exemplar = new Exemplar("t\"1", 1);
        Consumer<MetricsWriter> families = page -> {
            page.family("a_total", MetricType.COUNTER, "");
            page.sample(M, 2, exemplar);
            page.family("b", MetricType.COUNTER, "");
            page.sample(M, 3, exemplar);
            page.family("c", MetricType.GAUGE, "");
            page.sample(M, 4, exemplar);
            page.family("d_total", MetricType.COUNTER, "");
            page.sample(M, 5, new Exemplar("t".repeat(200), 1));
        };
        assertThat(text(families)).doesNotContain("trace_id");
        assertThat(openMetrics(families).lines())
                .as("a trace id that is longer than an exemplar may be is left out")
                .contains(
                        "a_total{model=\"m\"} 2 # {trace_id=\"t\\\"1\"} 1",
                        "b{model=\"m\"} 3",
                        "c{model=\"m\"} 4",
                        "d_total{model=\"m\"} 5");
    }

    @Test
    void quantilesMayBeUnknown() {
        Consumer<MetricsWriter> families = page -> {
            page.family("s", MetricType.SUMMARY, "");
            page.summary(M, new double[] {0.5, 1}, new double[] {Double.NaN, 7}, 9, 2);
        };
        assertThat(text(families)).isEqualTo("""
            # TYPE s summary
            s{model="m",quantile="0.5"} NaN
            s{model="m",quantile="1"} 7
            s_sum{model="m"} 9
            s_count{model="m"} 2
            """);
        assertThat(openMetrics(families)).contains("s{model=\"m\",quantile=\"1.0\"} 7\n");
    }

    @Test
    void whatOpenMetricsForbidsIsLeftOutThere() {
        Consumer<MetricsWriter> families = page -> {
            page.family("h", MetricType.HISTOGRAM, "");
            page.histogram(M, new double[] {-1, 1}, new long[] {1, 1, 1}, 3);
            page.histogram(M.with("x", "y"), new double[] {1}, new long[] {1, 1}, Double.NaN);
            page.family("h_count", MetricType.GAUGE, "");
            page.sample(M, 1);
            page.family("asked", MetricType.GAUGE, "");
            page.sample(M, 2);
            page.family("asked_total", MetricType.COUNTER, "");
            page.sample(M, 3);
            page.family("asked", MetricType.GAUGE, "");
            page.sample(M, 4.5);
            page.family("falls_total", MetricType.COUNTER, "");
            page.sample(M, -1);
            page.sample(M, Double.NaN);
            page.sample(M, 5);
        };
        assertThat(openMetrics(families)).isEqualTo("""
            # TYPE h histogram
            h_bucket{model="m",le="-1.0"} 1
            h_bucket{model="m",le="1.0"} 2
            h_bucket{model="m",le="+Inf"} 3
            h_bucket{model="m",x="y",le="1.0"} 1
            h_bucket{model="m",x="y",le="+Inf"} 2
            # TYPE asked gauge
            asked{model="m"} 2
            # TYPE asked_total unknown
            asked_total{model="m"} 3
            # TYPE falls counter
            falls_total{model="m"} 5
            """);
        assertThat(text(families).lines())
                .as("the text format leaves out nothing")
                .contains(
                        "h_sum{model=\"m\"} 3",
                        "h_sum{model=\"m\",x=\"y\"} NaN",
                        "h_count{model=\"m\"} 1",
                        "asked{model=\"m\"} 4.5",
                        "falls_total{model=\"m\"} -1",
                        "falls_total{model=\"m\"} NaN");
    }

    @Test
    void numbersHaveTheDigitsOfTheirStyle() {
        assertThat(NumberStyle.EXACT.text(3)).isEqualTo("3");
        assertThat(NumberStyle.EXACT.text(188.9568)).isEqualTo("188.9568");
        assertThat(NumberStyle.EXACT.text(1e15)).isEqualTo("1.0E15");
        assertThat(NumberStyle.EXACT.value(Double.NEGATIVE_INFINITY)).isEqualTo("-Inf");
        assertThat(NumberStyle.SIX_DIGITS.text(188.9568)).isEqualTo("188.957");
        assertThat(NumberStyle.SIX_DIGITS.text(1474762514)).isEqualTo("1.47476e+09");
        assertThat(NumberStyle.SIX_DIGITS.text(58.32)).isEqualTo("58.32");
        assertThat(NumberStyle.SIX_DIGITS.canonical(188.9568)).isEqualTo("188.957");
        assertThat(NumberStyle.SIX_DIGITS.canonical(1474762514)).isEqualTo("1.47476e+09");
    }

    @Test
    void boundsOfOpenMetricsAreWrittenAsTheFormatPrescribes() {
        Map<Double, String> expected = new LinkedHashMap<>();
        expected.put(0.0, "0.0");
        expected.put(-2.5, "-2.5");
        expected.put(0.001, "0.001");
        expected.put(0.999, "0.999");
        expected.put(9.999, "9.999");
        expected.put(10.0, "10.0");
        expected.put(1e-10, "1e-10");
        expected.put(1e-5, "1e-05");
        expected.put(1.5e-7, "1.5e-07");
        expected.put(1e-4, "0.0001");
        expected.put(100_000.0, "100000.0");
        expected.put(123_456.5, "123456.5");
        expected.put(1e6, "1e+06");
        expected.put(-1_234_567.0, "-1.234567e+06");
        expected.put(1e100, "1e+100");
        expected.put(Double.POSITIVE_INFINITY, "+Inf");
        expected.forEach(
                (value, text) -> assertThat(NumberStyle.EXACT.canonical(value)).isEqualTo(text));
    }

    @Test
    void labelsAreEqualByTheirText() {
        assertThat(LabelSet.of("a", "1").with("b", 2))
                .isEqualTo(LabelSet.of("a", "1").with("b", "2"))
                .hasSameHashCodeAs(LabelSet.of("a", "1").with("b", "2"))
                .isNotEqualTo(LabelSet.of("a", "1"))
                .isGreaterThan(LabelSet.of("a", "1"))
                .hasToString("a=\"1\",b=\"2\"");
    }
}
