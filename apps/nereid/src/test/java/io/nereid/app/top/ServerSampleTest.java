// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.app.top.ServerSample.Counters;
import io.nereid.app.top.ServerSample.Listed;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Rates, quantiles and orders of the dashboard from two moments. */
class ServerSampleTest {
    private static final String KEY = PrometheusSamples.key("m", "1");

    private static PrometheusSamples page(String text) {
        return PrometheusSamples.read(text, "nereid_request_duration_seconds");
    }

    @Test
    void aPageOfMetricsIsRead() {
        PrometheusSamples samples = page("""
                # HELP x y
                nv_inference_pending_request_count{model="m",version="1"} 3
                nv_inference_request_failure{model="m",reason="A",version="1"} 1
                nv_inference_request_failure{model="m",reason="B \\"}\\"",version="1"} 2 1700000000
                nereid_request_duration_seconds_bucket{model="m",version="1",le="0.01"} 5
                nereid_request_duration_seconds_bucket{model="m",version="1",le="+Inf"} 6
                nv_cpu_utilization 0.5
                not a sample
                """);
        assertThat(samples.sum(KEY, "nv_inference_pending_request_count")).isEqualTo(3);
        assertThat(samples.sum(KEY, "nv_inference_request_failure")).isEqualTo(3);
        assertThat(samples.sum(KEY, "absent")).isNaN();
        assertThat(samples.buckets(KEY)).containsEntry(0.01, 5.0).containsEntry(Double.POSITIVE_INFINITY, 6.0);
        assertThat(samples.buckets("other")).isEmpty();
    }

    @Test
    void quantilesAreThoseOfWhatHappenedInBetween() {
        TreeMap<Double, Double> before = new TreeMap<>(Map.of(0.1, 50.0, 0.2, 50.0, Double.POSITIVE_INFINITY, 50.0));
        TreeMap<Double, Double> after = new TreeMap<>(Map.of(0.1, 50.0, 0.2, 150.0, Double.POSITIVE_INFINITY, 150.0));
        assertThat(PrometheusSamples.quantile(0.5, before, after)).isEqualTo(0.15, within(1e-9));
        assertThat(PrometheusSamples.quantile(0.99, before, after)).isEqualTo(0.199, within(1e-9));
        assertThat(PrometheusSamples.quantile(0.5, after, after)).isNaN();
        assertThat(PrometheusSamples.quantile(0.5, new TreeMap<>(), new TreeMap<>()))
                .isNaN();
        TreeMap<Double, Double> slow = new TreeMap<>(Map.of(0.1, 0.0, Double.POSITIVE_INFINITY, 10.0));
        assertThat(PrometheusSamples.quantile(0.5, new TreeMap<>(), slow)).isEqualTo(0.1, within(1e-9));
    }

    private static ServerSample sample(long seconds, Counters counters) {
        return new ServerSample(
                seconds * 1_000_000_000L,
                Map.of(KEY, counters),
                List.of(new Listed("m", "1", "READY"), new Listed("n", "", "not loaded")),
                page(""));
    }

    @Test
    void ratesAreOfTheTimeInBetween() {
        List<ModelRow> rows =
                sample(12, new Counters(150, 8, 400, 100)).since(sample(10, new Counters(50, 4, 200, 50)));
        assertThat(rows).hasSize(2);
        ModelRow row = rows.get(0);
        assertThat(row.rate()).isEqualTo(50);
        assertThat(row.failures()).isEqualTo(2);
        assertThat(row.batch()).isEqualTo(4);
        assertThat(row.p99Millis()).isNaN();
        assertThat(row.queued()).isNaN();
        assertThat(rows.get(1).rate()).isZero();
        assertThat(rows.get(1).batch()).isNaN();
    }

    @Test
    void aVersionThatWasLoadedAgainBeginsAtZero() {
        List<ModelRow> rows = sample(12, new Counters(10, 0, 10, 10)).since(sample(10, new Counters(500, 9, 900, 700)));
        assertThat(rows.get(0).rate()).isEqualTo(5);
        assertThat(rows.get(0).failures()).isZero();
    }

    @Test
    void rowsAreSortedWithTheUnknownLast() {
        ModelRow slow = row("a", 1, 90);
        ModelRow fast = row("b", 9, 10);
        ModelRow idle = row("c", 0, Double.NaN);
        assertThat(List.of(idle, fast, slow).stream().sorted(ModelRow.Order.P99.comparator()))
                .containsExactly(slow, fast, idle);
        assertThat(List.of(slow, idle, fast).stream().sorted(ModelRow.Order.RATE.comparator()))
                .containsExactly(fast, slow, idle);
        assertThat(List.of(idle, fast, slow).stream().sorted(ModelRow.Order.NAME.comparator()))
                .containsExactly(slow, fast, idle);
    }

    private static ModelRow row(String model, double rate, double p99) {
        return new ModelRow(model, "1", "READY", rate, 0, p99 / 2, p99, 0, 1, 0, 0, 0);
    }

    @Test
    void aScreenShowsWhatFits() {
        List<String> lines = List.of("head", "a", "b", "c", "d", "", "keys of this screen");
        assertThat(RawTerminal.fitting(lines, 2, 7, 80)).isEqualTo(lines);
        assertThat(RawTerminal.fitting(lines, 2, 5, 8)).containsExactly("head", "a", "  … 3 mo", "", "keys of ");
        assertThat(RawTerminal.fitting(lines, 2, 1, 80)).containsExactly("  … 5 more", "", "keys of this screen");
    }
}
