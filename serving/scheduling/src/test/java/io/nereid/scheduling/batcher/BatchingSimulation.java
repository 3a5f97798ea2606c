// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;

/**
 * The instances of one model behind a queue, in virtual time, event by event. A run takes {@code fixed + rows * row}, scattered; its
 * responses leave one after the other, and the instance is free after the last one, so that the first clients send again before the
 * batcher knows that the run has ended. Times are in nanoseconds. Confined to one thread.
 */
final class BatchingSimulation {
    static final int MAX_BATCH = 32;

    /** A model; the numbers in microseconds are fitted to runs of real ones, as in the tests of the tuner. */
    record Model(String name, double fixedMicros, double rowMicros, double scatter) {
        long run(int rows, Random random) {
            double micros = fixedMicros + rows * rowMicros;
            return (long) (1e3 * micros * (scatter == 0 ? 1 : Math.exp(scatter * random.nextGaussian())));
        }

        /** Returns the most requests per nanosecond of a number of instances. */
        double capacity(int instances) {
            return instances * MAX_BATCH / (1e3 * (fixedMicros + MAX_BATCH * rowMicros));
        }
    }

    /** When a batch closes that is not full. */
    record Rule(long delay, boolean anticipates) {}

    /**
     * What sends requests.
     *
     * @param clients that send the next request when they have a response
     * @param think the mean of their time between the two, beyond {@code back}, exponentially distributed
     * @param back the time from a response to the arrival of the next request without any thought
     * @param rate requests per nanosecond that arrive whatever happens, Poisson
     * @param burst requests of each of these arrivals, 3 microseconds apart
     */
    record Workload(String name, int clients, double think, long back, double rate, int burst) {
        static Workload closed(int clients, double thinkMicros) {
            return new Workload(
                    clients + " clients, " + Math.round(thinkMicros) + " us", clients, 1e3 * thinkMicros, 80_000, 0, 1);
        }

        static Workload open(String name, double rate, int burst) {
            return new Workload(name, 0, 0, 0, rate / burst, burst);
        }

        Workload and(double more) {
            return new Workload(name + " and others", clients, think, back, more, 1);
        }
    }

    /** Requests per second, and times of requests in microseconds. */
    record Outcome(double rate, double mean, double p50, double p99) {}

    private record Job(long arrival, boolean again) {}

    private record Event(long at, int kind, long number, List<Job> jobs, long began) implements Comparable<Event> {
        static final int ARRIVAL = 0;
        static final int RELEASE = 1;
        static final int TIMER = 2;
        static final int BURST = 3;

        @Override
        public int compareTo(Event other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(number, other.number);
        }
    }

    private final Model model;
    private final int instances;
    private final long answer;
    private final Rule rule;
    private final Workload load;
    private final Random random;
    private final BatchAnticipation anticipation = new BatchAnticipation();
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final ArrayDeque<Job> queue = new ArrayDeque<>();
    private long number;
    private int free;
    private long timer = Long.MAX_VALUE;
    private final List<Long> arrivals = new ArrayList<>();

    /**
     * Creates a simulation.
     *
     * @param answer the time to send a response, before the next one of the batch
     */
    BatchingSimulation(Model model, int instances, long answer, Rule rule, Workload load, long seed) {
        this.model = model;
        this.instances = instances;
        this.answer = answer;
        this.rule = rule;
        this.load = load;
        this.random = new Random(seed);
    }

    /** Returns when the first requests arrived, in order. */
    long[] arrivals(int count) {
        return arrivals.stream().limit(count).mapToLong(at -> at).toArray();
    }

    private void add(long at, int kind, List<Job> jobs, long began) {
        events.add(new Event(at, kind, number++, jobs, began));
    }

    private long exponential(double mean) {
        return (long) (-mean * Math.log(1 - random.nextDouble()));
    }

    /** Returns the outcome of a number of requests, after as many as {@code warmup} that do not count. */
    Outcome run(int warmup, int requests) {
        free = instances;
        for (int i = 0; i < load.clients; i++) {
            add(load.back + exponential(load.think), Event.ARRIVAL, List.of(new Job(0, true)), 0);
        }
        // The arrivals must be the same for all rules.
        Random others = new Random(random.nextLong());
        if (load.rate > 0) {
            add((long) (-Math.log(1 - others.nextDouble()) / load.rate), Event.BURST, List.of(), 0);
        }
        double[] times = new double[requests];
        int answered = 0;
        long began = 0;
        long now = 0;
        while (answered < warmup + requests) {
            Event event = events.remove();
            now = event.at;
            switch (event.kind) {
                case Event.BURST -> {
                    for (int i = 0; i < load.burst; i++) {
                        add(now + 3_000L * i, Event.ARRIVAL, List.of(new Job(0, false)), 0);
                    }
                    add(now + (long) (-Math.log(1 - others.nextDouble()) / load.rate), Event.BURST, List.of(), 0);
                }
                case Event.ARRIVAL -> {
                    arrivals.add(now);
                    queue.add(new Job(now, event.jobs.get(0).again));
                    anticipation.arrived(now, queue.size());
                }
                case Event.RELEASE -> {
                    free++;
                    int size = event.jobs.size();
                    anticipation.ended(now, size, size, now - event.began, queue.size());
                    for (int i = 0; i < size; i++) {
                        Job job = event.jobs.get(i);
                        long at = now - answer * (size - i);
                        if (answered == warmup) {
                            began = now;
                        }
                        if (answered >= warmup && answered < warmup + requests) {
                            times[answered - warmup] = (at - job.arrival) / 1e3;
                        }
                        answered++;
                    }
                }
                default -> timer = Long.MAX_VALUE;
            }
            close(now);
        }
        Arrays.sort(times);
        double seconds = Math.max(1, now - began) / 1e9;
        return new Outcome(
                (requests - 1) / seconds,
                Arrays.stream(times).average().orElse(0),
                times[requests / 2],
                times[requests * 99 / 100]);
    }

    private void close(long now) {
        while (free > 0 && !queue.isEmpty()) {
            Job first = queue.element();
            if (queue.size() < MAX_BATCH) {
                long until = now;
                if (rule.delay > 0) {
                    boolean enough = rule.anticipates && anticipation.complete(queue.size(), free);
                    until = enough ? now : first.arrival + rule.delay;
                } else if (rule.anticipates) {
                    until = anticipation.waitsUntil(now, queue.size(), free);
                }
                if (until > now) {
                    if (until < timer) {
                        timer = until;
                        add(until, Event.TIMER, List.of(), 0);
                    }
                    return;
                }
            }
            List<Job> batch = new ArrayList<>();
            while (!queue.isEmpty() && batch.size() < MAX_BATCH) {
                batch.add(queue.remove());
            }
            free--;
            anticipation.closed(now, batch.size(), queue.size());
            long end = now + model.run(batch.size(), random);
            for (int i = 0; i < batch.size(); i++) {
                if (batch.get(i).again) {
                    long at = end + answer * i + load.back + exponential(load.think);
                    add(at, Event.ARRIVAL, List.of(new Job(0, true)), 0);
                }
            }
            add(end + answer * batch.size(), Event.RELEASE, batch, now);
        }
    }
}
