// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.app.perf.load.StabilityCheck.Observation;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** Schedules, the check of stability, and loads on a time that the test owns. */
class LoadTest {
    private static final long MILLI = 1_000_000L;

    /** A time that passes only by waiting, and by {@link #pass}. */
    private static final class OwnTime implements LoadTimer {
        private long now = 5;

        @Override
        public long nanos() {
            return now;
        }

        @Override
        public void park(long untilNanos) {
            now = Math.max(now, untilNanos);
        }

        void pass(long nanos) {
            now += nanos;
        }
    }

    /** A model whose responses come within the call, after a time that the test decides. */
    private abstract static class OwnTarget implements LoadTarget {
        @Override
        public boolean runsOnCaller() {
            return false;
        }

        @Override
        public ServerTimes serverTimes() {
            return null;
        }

        @Override
        public void close() {
            // nothing to free
        }
    }

    @Test
    void constantArrivalsDoNotDrift() {
        ArrivalSchedule schedule = ArrivalSchedule.constant(3);
        List<Long> due = new ArrayList<>();
        for (int i = 0; i <= 3000; i++) {
            due.add(schedule.next());
        }
        assertThat(due.subList(0, 4)).containsExactly(0L, 333_333_333L, 666_666_666L, 1_000_000_000L);
        assertThat(due.get(3000)).isEqualTo(1_000_000_000_000L);
    }

    @Test
    void poissonArrivalsHaveTheRateAndTheSpreadOfIndependentClients() {
        ArrivalSchedule schedule = ArrivalSchedule.poisson(1000, 7);
        int count = 100_000;
        long before = 0;
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < count; i++) {
            long due = schedule.next();
            double gap = (due - before) / 1e6;
            before = due;
            sum += gap;
            squares += gap * gap;
        }
        double mean = sum / count;
        assertThat(mean).isEqualTo(1.0, within(0.02));
        // of an exponential distribution the standard deviation is the mean
        assertThat(Math.sqrt(squares / count - mean * mean)).isEqualTo(1.0, within(0.02));
        assertThat(ArrivalSchedule.poisson(1000, 7).next())
                .isEqualTo(ArrivalSchedule.poisson(1000, 7).next());
    }

    @Test
    void threeWindowsWithinTenPercentAreStable() {
        StabilityCheck check = StabilityCheck.DEFAULT;
        Observation steady = new Observation(100, 5);
        assertThat(check.isStable(List.of(steady, steady))).isFalse();
        assertThat(check.isStable(List.of(steady, steady, steady))).isTrue();
        assertThat(check.isStable(List.of(new Observation(95, 5.2), steady, new Observation(104, 4.9))))
                .isTrue();
        assertThat(check.isStable(List.of(new Observation(70, 5), steady, steady)))
                .isFalse();
        assertThat(check.isStable(List.of(new Observation(100, 9), steady, steady)))
                .isFalse();
        // only the last three count
        assertThat(check.isStable(List.of(new Observation(10, 90), steady, steady, steady)))
                .isTrue();
        assertThat(check.isStable(List.of(new Observation(0, 0), new Observation(0, 0), new Observation(0, 0))))
                .isFalse();
    }

    /**
     * A server that answers in 1 ms and stalls once for a second, at 100 requests per second: the requests that were due in the
     * stall waited for it, and a client that only measures from sending would see one slow request of a thousand.
     */
    @Test
    void aStallCountsForEveryRequestThatWasDueInIt() {
        OwnTime time = new OwnTime();
        LoadRecorder recorder = new LoadRecorder(time);
        OpenLoopLoad[] load = new OpenLoopLoad[1];
        AtomicInteger sent = new AtomicInteger();
        Histogram fromSending = new Histogram(3);
        OwnTarget target = new OwnTarget() {
            @Override
            public void send(int index, Completion completion) {
                long took = index == 500 ? 1000 * MILLI : MILLI;
                time.pass(took);
                fromSending.recordValue(took);
                completion.done(null);
                if (sent.incrementAndGet() == 1000) {
                    load[0].stop();
                }
            }
        };
        load[0] = new OpenLoopLoad(target, recorder, time, ArrivalSchedule.constant(100), 10);
        load[0].run();

        MeasurementWindow window = recorder.roll();
        Histogram latencies = window.latencies();
        assertThat(load[0].ended()).isTrue();
        assertThat(latencies.getTotalCount()).isEqualTo(1000);
        // due every 10 ms, served every 1 ms after the stall: it takes 110 requests until none waits any more
        assertThat(latencies.getCountBetweenValues(2 * MILLI, Long.MAX_VALUE / 4))
                .isBetween(105L, 112L);
        assertThat(latencies.getValueAtPercentile(99)).isGreaterThan(850 * MILLI);
        assertThat(latencies.getValueAtPercentile(95)).isGreaterThan(400 * MILLI);
        assertThat(fromSending.getValueAtPercentile(99)).isLessThan(2 * MILLI);
        assertThat(window.delays().getMaxValue()).isGreaterThan(900 * MILLI);
    }

    @Test
    void requestsBeyondTheMostInFlightWaitAndTheirWaitCounts() {
        OwnTime time = new OwnTime();
        LoadRecorder recorder = new LoadRecorder(time);
        List<LoadTarget.Completion> open = new ArrayList<>();
        OpenLoopLoad[] load = new OpenLoopLoad[1];
        LoadTimer ending = new LoadTimer() {
            @Override
            public long nanos() {
                return time.nanos();
            }

            @Override
            public void park(long untilNanos) {
                time.park(untilNanos);
                if (open.size() == 2 && time.nanos() > 500 * MILLI) {
                    open.remove(0).done(null); // the first response after half a second
                }
            }
        };
        OwnTarget target = new OwnTarget() {
            @Override
            public void send(int index, Completion completion) {
                open.add(completion);
                if (index == 2) {
                    load[0].stop();
                }
            }
        };
        load[0] = new OpenLoopLoad(target, recorder, ending, ArrivalSchedule.constant(100), 2);
        load[0].run();
        MeasurementWindow window = recorder.roll();
        assertThat(window.unfinished()).isEqualTo(2);
        assertThat(load[0].ended()).isFalse();
        assertThat(window.delays().getMaxValue()).isBetween(470 * MILLI, 490 * MILLI);
        open.forEach(each -> each.done("late"));
        assertThat(window.failed()).isEqualTo(2);
        assertThat(recorder.takeFailures()).containsEntry("late", 2L);
        assertThat(load[0].ended()).isTrue();
    }

    @Test
    void responsesWithinTheCallDoNotOverflowTheStack() {
        OwnTime time = new OwnTime();
        LoadRecorder recorder = new LoadRecorder(time);
        ClosedLoopLoad[] load = new ClosedLoopLoad[1];
        OwnTarget target = new OwnTarget() {
            @Override
            public void send(int index, Completion completion) {
                time.pass(MILLI);
                if (index == 200_000) {
                    load[0].stop();
                }
                completion.done(index % 2 == 0 ? null : "odd");
            }
        };
        load[0] = new ClosedLoopLoad(target, recorder, time, 1);
        load[0].start();
        assertThat(load[0].ended()).isTrue();
        MeasurementWindow window = recorder.roll();
        assertThat(window.latencies().getTotalCount()).isEqualTo(100_001);
        assertThat(window.failed()).isEqualTo(100_000);
        assertThat(window.finished()).isTrue();
        assertThat(recorder.succeeded()).isEqualTo(100_001);
    }

    /** Windows whose rates rise from one to the next until the model is warm. */
    @Test
    void theLastThreeOfManyWindowsDecide() {
        List<Observation> all = new ArrayList<>();
        int windows = 0;
        for (double rate : new double[] {50, 80, 100, 101, 99, 100}) {
            all.add(new Observation(rate, 500 / rate));
            windows++;
            if (StabilityCheck.DEFAULT.isStable(all)) {
                break;
            }
        }
        assertThat(windows).isEqualTo(5);
    }
}
