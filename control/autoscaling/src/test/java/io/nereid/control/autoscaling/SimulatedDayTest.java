// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static io.nereid.control.autoscaling.TestSettings.SECOND;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A day of traffic in accelerated time: a day's curve, bursts, a quiet night with single requests, against replicas
 * that take seconds to start. Beside the autoscaler runs the reference algorithm, written from its definition over the
 * whole history; both must decide alike at every tick.
 */
final class SimulatedDayTest {
    private static final System.Logger LOG = System.getLogger(SimulatedDayTest.class.getName());
    private static final int DAY = 24 * 3600;
    private static final int SLOTS = 4;
    private static final long START_UP = 3 * SECOND;
    private static final double SERVICE = 0.2;

    /** The reference: every second's value is kept, averages are sums over lists, state is a handful of variables. */
    private static final class Reference {
        private static final int WINDOW = 60;
        private static final int PANIC_WINDOW = 6;
        private final double target;
        private final List<Double> seconds = new ArrayList<>();
        private double panicTime = -1;
        private int most;

        Reference(double target) {
            this.target = target;
        }

        void second(double value) {
            seconds.add(value);
        }

        void poke() {
            seconds.set(seconds.size() - 1, seconds.get(seconds.size() - 1) + 1);
        }

        private double average(int window) {
            int from = Math.max(0, seconds.size() - window);
            double sum = 0;
            for (double value : seconds.subList(from, seconds.size())) {
                sum += value;
            }
            return Math.round(sum / (seconds.size() - from) * 1e6) / 1e6;
        }

        int desired(double time, int ready) {
            int r = Math.max(1, ready);
            int stable = (int) Math.max(Math.ceil(average(WINDOW) / target), r / 2);
            double panicAsk = Math.ceil(average(PANIC_WINDOW) / target);
            int panic = (int) Math.max(panicAsk, r / 2);
            if (panicAsk / r >= 2) {
                panicTime = time;
            } else if (panicTime >= 0 && time > panicTime + WINDOW) {
                panicTime = -1;
                most = 0;
            }
            if (panicTime < 0) {
                return stable;
            }
            most = Math.max(most, Math.max(stable, panic));
            return most;
        }
    }

    private static final class Day {
        final Random random;
        final double[] rate = new double[DAY];
        final PriorityQueue<Long> ends = new PriorityQueue<>();
        final PriorityQueue<Long> starting = new PriorityQueue<>();
        final Deque<Long> waiting = new ArrayDeque<>();
        final ConcurrencyMeter meter = new ConcurrencyMeter(0, 1);
        final Autoscaler autoscaler;
        final Reference reference;
        final List<Integer> scales = new ArrayList<>();
        int replicas;
        int busy;
        long arrived;
        long served;
        long cold;
        long worstColdWait;
        long worstWait;
        int pokes;
        int reachedZero;
        int most;

        Day(long seed) {
            random = new Random(seed);
            for (int s = 0; s < DAY; s++) {
                double hour = s / 3600.0;
                double curve = Math.max(0, Math.sin((hour - 6) / 16 * Math.PI));
                // From 22 to 6 o'clock there is a single request every twenty minutes or so.
                rate[s] = hour < 6 || hour >= 22 ? 1.0 / 1200 : 0.05 + 30 * curve * curve;
            }
            for (int burst = 0; burst < 12; burst++) {
                int from = 7 * 3600 + random.nextInt(14 * 3600);
                int length = 20 + random.nextInt(160);
                for (int s = from; s < from + length; s++) {
                    rate[s] = rate[s] * 3 + 10;
                }
            }
            TestSettings settings = TestSettings.defaults();
            settings.total = SLOTS;
            settings.target = SLOTS * 0.7;
            settings.max = 50;
            settings.containerConcurrency = SLOTS;
            autoscaler = new Autoscaler(settings.build(), 0, 0, 0);
            reference = new Reference(settings.target);
        }

        void run() {
            // After midnight comes one quiet hour, so that the last requests end.
            for (int s = 0; s < DAY + 3600; s++) {
                long from = s * SECOND;
                tick(s, from);
                List<Long> arrivals = new ArrayList<>();
                for (int i = poisson(s < DAY ? rate[s] : 0); i > 0; i--) {
                    arrivals.add(from + (long) (random.nextDouble() * SECOND));
                }
                arrivals.sort(null);
                for (long arrival : arrivals) {
                    advance(arrival);
                    arrive(s, arrival);
                }
                advance(from + SECOND - 1);
            }
        }

        private void tick(int s, long now) {
            advance(now);
            ConcurrencyMeter.Report report = meter.report(now);
            autoscaler.record(now, report.concurrency(), report.requestsPerSecond());
            reference.second(report.concurrency());
            if (s % 2 == 0) {
                decided(s, now, autoscaler.tick(now, replicas));
            }
        }

        private void decided(int s, long now, Autoscaler.Decision decision) {
            assertThat(decision.uncapped()).as("at second %d", s).isEqualTo(reference.desired(s, replicas));
            int desired = decision.desired();
            int have = replicas + starting.size();
            if (scales.isEmpty() || scales.get(scales.size() - 1) != desired) {
                scales.add(desired);
                reachedZero += desired == 0 ? 1 : 0;
            }
            for (; have < desired; have++) {
                starting.add(now + START_UP);
            }
            for (; have > desired && !starting.isEmpty(); have--) {
                starting.poll();
            }
            // Replicas that are being removed finish their requests: busy may exceed the slots for a while.
            replicas -= have - desired;
            most = Math.max(most, replicas);
        }

        private void arrive(int s, long now) {
            arrived++;
            meter.begin(now);
            waiting.add(now);
            if (replicas == 0) {
                cold++;
            }
            if (autoscaler.asleep()) {
                pokes++;
                reference.poke();
                decided(s, now, autoscaler.poke(Math.floorDiv(now, SECOND) * SECOND, replicas));
            }
            serve(now);
        }

        /** Runs all events until {@code until}, in order. */
        private void advance(long until) {
            while (true) {
                long end = ends.isEmpty() ? Long.MAX_VALUE : ends.peek();
                long start = starting.isEmpty() ? Long.MAX_VALUE : starting.peek();
                long next = Math.min(end, start);
                if (next > until) {
                    return;
                }
                if (end <= start) {
                    ends.poll();
                    busy--;
                    served++;
                    meter.end(next);
                } else {
                    starting.poll();
                    replicas++;
                    most = Math.max(most, replicas);
                }
                serve(next);
            }
        }

        private void serve(long now) {
            while (!waiting.isEmpty() && busy < replicas * SLOTS) {
                long wait = now - waiting.poll();
                worstWait = Math.max(worstWait, wait);
                if (replicas == 1 && wait >= START_UP - 1) {
                    worstColdWait = Math.max(worstColdWait, wait);
                }
                busy++;
                ends.add(now + (long) (-Math.log(1 - random.nextDouble()) * SERVICE * SECOND));
            }
        }

        private int poisson(double mean) {
            double limit = Math.exp(-mean);
            int count = 0;
            for (double product = random.nextDouble(); product > limit; product *= random.nextDouble()) {
                count++;
            }
            return count;
        }

        /** How often the direction of scaling turned. */
        int turns() {
            int turns = 0;
            for (int i = 2; i < scales.size(); i++) {
                int before = scales.get(i - 1) - scales.get(i - 2);
                int after = scales.get(i) - scales.get(i - 1);
                turns += Integer.signum(before) == Integer.signum(after) ? 0 : 1;
            }
            return turns;
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 20_261_121, 987_654_321})
    void aDayOfTrafficLosesNoRequestAndDecidesAsTheReferenceDoes(long seed) {
        Day day = new Day(seed);
        day.run();
        LOG.log(
                System.Logger.Level.INFO,
                "seed " + seed + ": " + day.arrived + " requests, " + day.cold + " came at zero, " + day.pokes
                        + " pokes, " + day.reachedZero + " times at zero, at most " + day.most + " replicas, "
                        + day.scales.size() + " changes, " + day.turns() + " turns, longest wait "
                        + day.worstWait / 1_000_000 + " ms");
        assertThat(day.served).isEqualTo(day.arrived).isGreaterThan(500_000);
        assertThat(day.waiting).isEmpty();
        assertThat(day.cold).isPositive();
        assertThat(day.reachedZero).isGreaterThan(5);
        assertThat(day.autoscaler.desired()).isZero();
        // Held requests start as soon as the replica does; the rest of the allowance is for bursts before replicas
        // come.
        assertThat(day.worstColdWait).isLessThan(START_UP + SECOND);
        assertThat(day.worstWait).isLessThan(30 * SECOND);
        assertThat(day.most).isBetween(5, 50);
        // The reference makes the same turns, as every decision above is its own: near a threshold the average of a
        // minute wanders across it. Less than one in two minutes is what this day has of them.
        assertThat(day.turns()).isLessThan(DAY / 120);
        assertThat(day.scales).hasSizeLessThan(DAY / 100);
    }
}
