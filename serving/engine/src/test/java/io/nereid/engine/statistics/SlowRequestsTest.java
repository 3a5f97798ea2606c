// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.FakeClock;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.RequestSamples.FailedRequest;
import io.nereid.observe.RequestSamples.SlowRequest;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import org.junit.jupiter.api.Test;

class SlowRequestsTest {
    private static final ServableId ID = new ServableId("m", 3);
    private static final long MS = 1_000_000;

    private final FakeClock clock = new FakeClock();

    private ModelStatistics statistics(String threshold) {
        return new ModelStatistics(
                ID, ModelConfig.unspecified("m"), MetricsOptions.DEFAULT.with("slow_request_ms", threshold), clock);
    }

    private void request(ModelStatistics statistics, String id, long nanos) {
        statistics.succeeded(clock.nanos(), id, nanos, nanos / 2, 1, nanos / 4, 2, 1);
    }

    private static RequestSamples samples(ModelStatistics statistics) {
        return statistics.slow.samples(ID);
    }

    @Test
    void aRequestAsSlowAsTheFixedTimeIsKeptWithItsTimes() {
        ModelStatistics statistics = statistics("5");
        request(statistics, "fast", 5 * MS - 1);
        clock.advance(7 * MS);
        request(statistics, "slow", 5 * MS);
        statistics.cached(clock.nanos(), "hit", 6 * MS, 1, 2);
        RequestSamples samples = samples(statistics);
        assertThat(samples.model()).isEqualTo("m");
        assertThat(samples.version()).isEqualTo(3);
        assertThat(samples.thresholdNanos()).isEqualTo(5 * MS);
        long end = FakeClock.START_MILLIS + 7;
        assertThat(samples.slow())
                .containsExactly(
                        new SlowRequest("hit", end, 6 * MS, 0, 0, 0, 0, 2, true),
                        new SlowRequest("slow", end, 5 * MS, 5 * MS / 2, 1, 5 * MS / 4, 2, 1, false));
        assertThat(samples.slowest()).isEqualTo(samples.slow());
    }

    @Test
    void theListsAreBoundedAndTheSlowestStay() {
        ModelStatistics statistics = statistics("1");
        request(statistics, "worst", 900 * MS);
        for (int i = 0; i < 1_000; i++) {
            request(statistics, "r" + i, (1 + i % 100) * MS);
            statistics.failed(
                    clock.nanos(), "e" + i, ServingException.of(ErrorCode.UNAVAILABLE, "x".repeat(5_000)), false, 10);
        }
        RequestSamples samples = samples(statistics);
        assertThat(samples.slow()).hasSize(SlowRequests.LATEST);
        assertThat(samples.slow().get(0).id()).isEqualTo("r999");
        assertThat(samples.slowest()).hasSize(SlowRequests.SLOWEST);
        assertThat(samples.slowest().get(0).id()).isEqualTo("worst");
        assertThat(samples.slowest()).isSortedAccordingTo((a, b) -> Long.compare(b.totalNanos(), a.totalNanos()));
        assertThat(samples.failed()).hasSize(SlowRequests.LATEST);
        FailedRequest last = samples.failed().get(0);
        assertThat(last.id()).isEqualTo("e999");
        assertThat(last.code()).isEqualTo("UNAVAILABLE");
        assertThat(last.message()).hasSize(SlowRequests.MESSAGE).endsWith("…");
    }

    @Test
    void withoutAFixedTimeTheBucketOfThe99thPercentileDecides() {
        ModelStatistics statistics = statistics("auto");
        for (int i = 0; i < 1_000; i++) {
            request(statistics, "", i < 995 ? 3 * MS : 40 * MS);
        }
        assertThat(samples(statistics).thresholdNanos())
                .as("before the end of the first window")
                .isEqualTo(Long.MAX_VALUE);
        clock.advance(SlowRequests.WINDOW_NANOS);
        request(statistics, "", 3 * MS);
        assertThat(samples(statistics).thresholdNanos())
                .as("3 ms is in the bucket up to 5 ms")
                .isEqualTo(5 * MS);
        request(statistics, "usual", 4 * MS);
        request(statistics, "unusual", 6 * MS);
        assertThat(samples(statistics).slow()).extracting(SlowRequest::id).containsExactly("unusual");
    }

    @Test
    void theTimeFollowsTheModelAndWaitsForEnoughRequests() {
        ModelStatistics statistics = statistics("auto");
        for (int i = 0; i < 200; i++) {
            request(statistics, "", 3 * MS);
        }
        clock.advance(SlowRequests.WINDOW_NANOS);
        request(statistics, "", 3 * MS);
        for (int i = 0; i < 50; i++) {
            request(statistics, "", 80 * MS);
        }
        clock.advance(SlowRequests.WINDOW_NANOS);
        request(statistics, "", 80 * MS);
        assertThat(samples(statistics).thresholdNanos()).as("too few requests").isEqualTo(5 * MS);
        for (int i = 0; i < 60; i++) {
            request(statistics, "", 80 * MS);
        }
        clock.advance(SlowRequests.WINDOW_NANOS);
        request(statistics, "", 80 * MS);
        assertThat(samples(statistics).thresholdNanos()).isEqualTo(100 * MS);
    }
}
