// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.app.perf.load.LoadLevel;
import io.nereid.app.perf.load.LoadResult;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.TypeConversionException;

/** Loads and thresholds as they are written on a command line. */
class PerfOptionsTest {
    private static LoadRange range(String text) {
        return new LoadRange.Converter().convert(text);
    }

    private static PerfAssertion assertion(String text) {
        return new PerfAssertion.Converter().convert(text);
    }

    @Test
    void loadsAreListsRangesAndFactors() {
        assertThat(range("1,2,4").values()).containsExactly(1.0, 2.0, 4.0);
        assertThat(range("1:9:2").values()).containsExactly(1.0, 3.0, 5.0, 7.0, 9.0);
        assertThat(range("2:4").values()).containsExactly(2.0, 3.0, 4.0);
        assertThat(range("1:64:x2").values()).containsExactly(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0);
        assertThat(range("0.5,10:20:5").values()).containsExactly(0.5, 10.0, 15.0, 20.0);
        assertThat(range("0.1:0.5:0.1").values()).hasSize(5);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0", "-1", "a", "1,", "1:", "4:1", "1:4:0", "1:4:x1", "1:100000", "1e3", "1:2:3:4"})
    void otherLoadsAreErrorsThatShowTheValue(String text) {
        assertThatThrownBy(() -> range(text))
                .isInstanceOf(TypeConversionException.class)
                .hasMessageContaining("'" + text + "'")
                .hasMessageContaining("expected");
    }

    /** A thousand requests with the latencies 1 ms to 1000 ms, and ten failed ones, in ten seconds. */
    private static LoadResult result() {
        Histogram latencies = new Histogram(3);
        for (int i = 1; i <= 1000; i++) {
            latencies.recordValue(i * 1_000_000L);
        }
        return new LoadResult(
                new LoadLevel(false, 8), 10, 100, latencies, 10, 0, Map.of("HTTP 503", 10L), true, 3, null, null);
    }

    @Test
    void percentilesAreThoseOfTheHistogram() {
        LoadResult result = result();
        assertThat(result.percentileMillis(50)).isEqualTo(500, within(0.5));
        assertThat(result.percentileMillis(99)).isEqualTo(990, within(1.0));
        assertThat(result.percentileMillis(99.9)).isEqualTo(999, within(1.0));
        assertThat(result.meanMillis()).isEqualTo(500.5, within(0.5));
        assertThat(result.maxMillis()).isEqualTo(1000, within(1.0));
        assertThat(result.failedShare()).isEqualTo(10.0 / 1010, within(1e-9));
    }

    @ParameterizedTest
    @CsvSource({
        "p50<600ms, true",
        "p50<0.4s, false",
        "p99>=980ms, true",
        "P99.9<=1s, true",
        "p999 < 900000us, false",
        "mean<501ms, true",
        "max>100ns, true",
        "rate>=100, true",
        "rate>100/s, false",
        "inferences>=400, true",
        "failed==0, false",
        "failed==10, true",
        "failed!=10, false",
        "failed<1%, true",
        "failed<0.5%, false"
    })
    void thresholdsAreCompared(String text, boolean holds) {
        assertThat(assertion(text).holds(result(), 4)).as(text).isEqualTo(holds);
    }

    @Test
    void withoutAResponseNoThresholdOfLatencyHolds() {
        LoadResult none =
                new LoadResult(new LoadLevel(false, 1), 1, 0, new Histogram(3), 0, 0, Map.of(), null, 1, null, null);
        assertThat(assertion("p99<1s").holds(none, 1)).isFalse();
        assertThat(assertion("p99>=0s").holds(none, 1)).isFalse();
        assertThat(assertion("failed==0").holds(none, 1)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "p99",
                "p99<",
                "p99<20",
                "p99=20ms",
                "p99<20m",
                "p98<20ms",
                "rate>5ms",
                "failed<1ms",
                "<5ms",
                "p99<-1ms"
            })
    void otherThresholdsAreErrorsThatShowTheValue(String text) {
        assertThatThrownBy(() -> assertion(text))
                .isInstanceOf(TypeConversionException.class)
                .hasMessageContaining("'" + text + "'")
                .hasMessageContaining("expected");
    }
}
