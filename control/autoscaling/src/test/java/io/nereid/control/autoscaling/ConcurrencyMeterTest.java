// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.base.Threads;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

final class ConcurrencyMeterTest {
    private static final long MILLI = 1_000_000L;

    /** Events are {@code in}, {@code out} or {@code report} at milliseconds; the reports that are expected of them. */
    private record Case(String name, String events, double... concurrencyAndRequests) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static Stream<Case> cases() {
        return Stream.of(
                new Case("no requests", "report@1000", 0, 0),
                new Case("one request all the time", "in@0 out@1000 report@1000", 1, 1),
                new Case("one request half the time", "in@0 out@3000 report@6000", 0.5, 1),
                new Case("a very short request", "in@0 out@1 report@1000", 0.001, 1),
                new Case("three in a row", "in@0 out@300 in@300 out@600 in@600 out@1000 report@1000", 1, 3),
                new Case("two that overlap", "in@0 in@100 out@600 out@1000 report@1000", 1.5, 2),
                new Case("one across reports", "in@0 report@1000 out@1500 report@2000", 1, 1, 0.5, 0),
                new Case("one that lasts", "in@0 report@1000 report@2000 report@3000", 1, 1, 1, 0, 1, 0));
    }

    @ParameterizedTest
    @MethodSource("cases")
    void concurrencyIsWeightedByTime(Case c) {
        for (long origin : new long[] {0, -7_000_000_000_000L, 123_456_789_012_345L, Long.MAX_VALUE - 1_000_000}) {
            ConcurrencyMeter meter = new ConcurrencyMeter(origin, 4);
            int at = 0;
            long reported = 0;
            for (String event : c.events.split(" ")) {
                String[] parts = event.split("@");
                long ms = Long.parseLong(parts[1]);
                long now = origin + ms * MILLI;
                switch (parts[0]) {
                    case "in" -> meter.begin(now);
                    case "out" -> meter.end(now);
                    default -> {
                        ConcurrencyMeter.Report report = meter.report(now);
                        assertThat(report.concurrency()).isCloseTo(c.concurrencyAndRequests[at++], within(1e-5));
                        double requests = c.concurrencyAndRequests[at++];
                        assertThat(report.requests()).isEqualTo((long) requests);
                        assertThat(report.requestsPerSecond())
                                .isCloseTo(requests * 1000 / (ms - reported), within(1e-9));
                        reported = ms;
                    }
                }
            }
            assertThat(at).isEqualTo(c.concurrencyAndRequests.length);
        }
    }

    @Test
    void aReportOfNoTimeLeavesTheRequestsToTheNext() {
        ConcurrencyMeter meter = new ConcurrencyMeter(0, 1);
        meter.begin(0);
        assertThat(meter.report(0)).isEqualTo(new ConcurrencyMeter.Report(1, 0, 0, 1));
        assertThat(meter.report(1000 * MILLI).requests()).isEqualTo(1);
    }

    @Test
    void aClockThatWasReadEarlierDoesNoHarm() {
        ConcurrencyMeter meter = new ConcurrencyMeter(0, 1);
        meter.begin(500 * MILLI);
        meter.begin(499 * MILLI);
        assertThat(meter.inFlight()).isEqualTo(2);
        assertThat(meter.report(1000 * MILLI).concurrency()).isCloseTo(1, within(1e-5));
    }

    @Test
    void weeksWithoutRequestsCountAsIdle() {
        ConcurrencyMeter meter = new ConcurrencyMeter(0, 2);
        long now = 40L * 24 * 3600 * 1000 * MILLI;
        assertThat(meter.report(now).concurrency()).isZero();
        meter.begin(now);
        assertThat(meter.report(now + 1000 * MILLI).concurrency()).isCloseTo(1, within(1e-5));
    }

    @Test
    void manyThreadsLoseNothingAndMayEndWhatOthersBegan() throws InterruptedException {
        ConcurrencyMeter meter = new ConcurrencyMeter(0, 4);
        int threads = 8;
        int each = 20_000;
        CountDownLatch done = new CountDownLatch(threads);
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            boolean begins = t % 2 == 0;
            Thread thread = Threads.named("meter").newThread(() -> {
                for (int i = 0; i < each; i++) {
                    if (begins) {
                        meter.begin(i * 50_000L);
                    } else {
                        meter.end(i * 50_000L + MILLI);
                    }
                }
                done.countDown();
            });
            all.add(thread);
        }
        all.forEach(Thread::start);
        done.await();
        ConcurrencyMeter.Report report = meter.report(2_000 * MILLI);
        assertThat(report.requests()).isEqualTo(4L * each);
        assertThat(report.inFlight()).isZero();
        assertThat(meter.requests()).isEqualTo(4L * each);
    }
}
