// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.scheduling.admission.AdmissionPolicy;
import io.nereid.scheduling.batcher.BatchingSimulation.Model;
import io.nereid.scheduling.objective.LatencyController;
import io.nereid.scheduling.objective.ObjectiveAdmission;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The instances of one model with a latency objective behind a queue, in virtual time, event by event. Requests arrive whatever
 * happens, one row each. Times are in nanoseconds. Confined to one thread.
 */
final class ObjectiveSimulation {
    static final int MAX_BATCH = BatchingSimulation.MAX_BATCH;

    /**
     * What is served.
     *
     * @param contention the share by which each run beside a run makes it longer
     */
    record Setting(Model model, int instances, double contention) {
        /** Returns the most requests per nanosecond with batches of which two fit one after the other into nine tenths of an objective. */
        double capacity(LatencyObjective objective) {
            double most = 0;
            for (int n = 1; n <= instances; n++) {
                for (int batch = 1; batch <= MAX_BATCH; batch++) {
                    double time = 1e3 * (model.fixedMicros() + batch * model.rowMicros()) * (1 + contention * (n - 1));
                    if (2 * time <= 0.9 * objective.nanos()) {
                        most = Math.max(most, n * batch / time);
                    }
                }
            }
            return most;
        }
    }

    /**
     * What arrives.
     *
     * @param rate requests per nanosecond, by the time
     * @param most the largest rate
     * @param burst requests of each arrival
     */
    record Load(String name, DoubleUnaryOperator rate, double most, int burst) {
        static Load steady(String name, double rate, int burst) {
            return new Load(name, t -> rate, rate, burst);
        }
    }

    /** Requests that were answered after the warm-up, and how. Times in nanoseconds. */
    static final class Outcome {
        long runs;
        long answered;
        long refused;
        long lateRefused;
        long leastRetry = Long.MAX_VALUE;
        double nanos;
        long[] latencies = new long[0];

        double quantile(double q) {
            return latencies.length == 0 ? 0 : latencies[(int) Math.min(latencies.length - 1, q * latencies.length)];
        }

        double runsPerRequest() {
            return (double) runs / Math.max(1, answered);
        }

        double goodput() {
            return answered / nanos;
        }
    }

    private record Job(long arrival, long limit) {}

    private record Event(
            long at, long number, @Nullable List<Job> jobs, long began, LatencyController.@Nullable Run run)
            implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(number, other.number);
        }
    }

    private final Setting setting;
    private final Load load;
    private final Random random;
    final @Nullable LatencyController control;
    private final @Nullable ObjectiveAdmission admission;
    private final BatchAnticipation anticipation = new BatchAnticipation();
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final ArrayDeque<Job> queue = new ArrayDeque<>();
    /** What was logged. */
    final List<String> log = new ArrayList<>();

    private long number;
    private int running;
    private long timer = Long.MAX_VALUE;

    /** @param objective null for the rule without an objective */
    ObjectiveSimulation(Setting setting, Load load, @Nullable LatencyObjective objective, long seed) {
        this.setting = setting;
        this.load = load;
        this.random = new Random(seed);
        this.control = objective == null ? null : new LatencyController(objective, MAX_BATCH, setting.instances, true);
        this.admission = control == null ? null : new ObjectiveAdmission(control);
    }

    private void add(long at, @Nullable List<Job> jobs, long began, LatencyController.@Nullable Run run) {
        events.add(new Event(at, number++, jobs, began, run));
    }

    Outcome run(double warmup, double seconds) {
        long from = (long) (warmup * 1e9);
        long end = from + (long) (seconds * 1e9);
        Random arrivals = new Random(random.nextLong());
        Outcome outcome = new Outcome();
        outcome.nanos = end - from;
        List<Long> latencies = new ArrayList<>();
        long nextArrival = 0;
        long now = 0;
        while (now < end) {
            Event event = events.peek();
            if (event == null || nextArrival <= event.at) {
                now = nextArrival;
                // Thinning: a candidate at the largest rate counts with the share of the present one.
                nextArrival += (long) (-Math.log(1 - arrivals.nextDouble()) * load.burst / load.most);
                if (arrivals.nextDouble() * load.most < load.rate.applyAsDouble(now)) {
                    for (int i = 0; i < load.burst; i++) {
                        arrive(now, now >= from ? outcome : new Outcome());
                    }
                }
            } else {
                events.remove();
                now = event.at;
                if (event.jobs == null) {
                    timer = Long.MAX_VALUE;
                } else {
                    running--;
                    int size = event.jobs.size();
                    anticipation.ended(now, size, size, now - event.began, queue.size());
                    if (event.run != null) {
                        // The next close reads what has changed.
                        var unused = event.run.ended(now, true);
                    }
                    String line = control == null ? null : control.news(now, "model 'm'");
                    if (line != null) {
                        log.add(line);
                    }
                    if (now >= from) {
                        outcome.runs++;
                        for (Job job : event.jobs) {
                            outcome.answered++;
                            latencies.add(now - job.arrival);
                        }
                    }
                }
            }
            close(now, now >= from ? outcome : new Outcome());
        }
        outcome.latencies = latencies.stream().mapToLong(l -> l).toArray();
        Arrays.sort(outcome.latencies);
        return outcome;
    }

    private void arrive(long now, Outcome outcome) {
        long limit = Long.MAX_VALUE;
        if (admission != null) {
            if (!admission.admits(now, queue.size(), AdmissionPolicy.NEVER)) {
                outcome.refused++;
                outcome.leastRetry = Math.min(outcome.leastRetry, admission.retryNanos());
                return;
            }
            long wait = admission.waitLimit();
            limit = wait == AdmissionPolicy.NEVER ? Long.MAX_VALUE : now + wait;
        }
        queue.add(new Job(now, limit));
        anticipation.arrived(now, queue.size());
    }

    private void close(long now, Outcome outcome) {
        while (!queue.isEmpty() && queue.element().limit <= now && admission != null) {
            queue.remove();
            admission.refused(now);
            outcome.refused++;
            outcome.lateRefused++;
        }
        while (running < (control == null ? setting.instances : control.instances()) && !queue.isEmpty()) {
            int most = control == null ? MAX_BATCH : control.maxRows();
            long delay = control == null ? 0 : control.delayNanos();
            int free = (control == null ? setting.instances : control.instances()) - running;
            if (queue.size() < most) {
                boolean enough = delay > 0 && anticipation.complete(queue.size(), free);
                long until = delay > 0
                        ? (enough ? now : queue.element().arrival + delay)
                        : anticipation.waitsUntil(now, queue.size(), free);
                if (until > now) {
                    if (until < timer) {
                        timer = until;
                        add(until, null, 0, null);
                    }
                    return;
                }
            }
            List<Job> batch = new ArrayList<>();
            while (!queue.isEmpty() && batch.size() < most) {
                batch.add(queue.remove());
            }
            running++;
            anticipation.closed(now, batch.size(), queue.size());
            LatencyController.Run run = null;
            if (control != null && admission != null) {
                run = control.began(now, batch.stream().mapToLong(Job::arrival).toArray(), batch.size());
                admission.taken(now, batch.size(), now - batch.get(0).arrival, queue.size());
            }
            double time = setting.model.run(batch.size(), random) * (1 + setting.contention * (running - 1));
            add(now + (long) time, batch, now, run);
        }
    }
}
