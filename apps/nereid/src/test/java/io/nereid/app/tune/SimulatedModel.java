// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.PriorityQueue;
import java.util.Random;

/**
 * A model behind a dynamic batcher, and clients in a closed loop, simulated event by event: the time of a run is {@code fixed + rows *
 * row}, shortened by threads as Amdahl's law has it, stretched when more threads run than there are cores, and scattered. The numbers of
 * the four models are fitted to runs of real ones on two cores by {@code testing/bench/tune.py fit}. Confined to one thread.
 */
final class SimulatedModel implements VariantTarget {
    /** Requests of one measurement. */
    private static final int REQUESTS = 1200;

    /**
     * The service time of a model.
     *
     * @param fixedMicros time of a run that does not depend on its rows, in microseconds
     * @param rowMicros time of each row
     * @param serial the share of a run that more threads do not shorten
     * @param returnMicros time from a response to the client's next request
     * @param scatter the standard deviation of the logarithm of a run's time
     */
    record ServiceTime(double fixedMicros, double rowMicros, double serial, double returnMicros, double scatter) {}

    private final ServiceTime time;
    private final int cores;
    private final double percentile;
    private final int requests;
    private final Random random;
    private int measurements;

    SimulatedModel(ServiceTime time, int cores, double percentile, int requests, long seed) {
        this.time = time;
        this.cores = cores;
        this.percentile = percentile;
        this.requests = requests;
        this.random = new Random(seed);
    }

    static SimulatedModel of(ServiceTime time, int cores, long seed) {
        return new SimulatedModel(time, cores, 99, REQUESTS, seed);
    }

    int measurements() {
        return measurements;
    }

    /** What happens at a time: a request comes, a run ends, or the delay of the queue's first request is over. */
    private record Event(double at, int kind, double[] arrivals) implements Comparable<Event> {
        static final int REQUEST = 0;
        static final int END = 1;
        static final int DELAY = 2;

        @Override
        public int compareTo(Event other) {
            return Double.compare(at, other.at);
        }
    }

    @Override
    public VariantResult measure(ConfigVariant variant, int concurrency) {
        measurements++;
        PriorityQueue<Event> events = new PriorityQueue<>();
        ArrayDeque<Double> queue = new ArrayDeque<>();
        for (int i = 0; i < concurrency; i++) {
            events.add(new Event(random.nextDouble() * time.returnMicros, Event.REQUEST, new double[0]));
        }
        int warmup = Math.min(requests / 4, 4 * concurrency);
        double[] latencies = new double[requests];
        int answered = 0;
        int free = variant.instances();
        int most = Math.max(1, variant.batchSize());
        double began = 0;
        double now = 0;
        while (answered < warmup + requests) {
            Event event = events.remove();
            now = event.at;
            if (event.kind == Event.REQUEST) {
                queue.add(now);
                if (variant.delayMicros() > 0) {
                    events.add(new Event(now + variant.delayMicros(), Event.DELAY, new double[0]));
                }
            } else if (event.kind == Event.END) {
                free++;
                for (double arrival : event.arrivals) {
                    if (answered == warmup) {
                        began = now;
                    }
                    if (answered >= warmup && answered < warmup + requests) {
                        latencies[answered - warmup] = now - arrival + time.returnMicros / 2;
                    }
                    answered++;
                    events.add(new Event(now + time.returnMicros, Event.REQUEST, new double[0]));
                }
            }
            while (free > 0
                    && !queue.isEmpty()
                    && (queue.size() >= most || now - queue.peek() >= variant.delayMicros() - 1e-6)) {
                double[] batch = new double[Math.min(most, queue.size())];
                for (int i = 0; i < batch.length; i++) {
                    batch[i] = queue.remove();
                }
                free--;
                events.add(new Event(now + run(variant, batch.length, variant.instances() - free), Event.END, batch));
            }
        }
        Arrays.sort(latencies);
        double latency = latencies[(int) Math.ceil(percentile / 100 * requests) - 1] / 1000;
        return new VariantResult(variant, concurrency, requests / Math.max(1, now - began) * 1e6, latency, 0);
    }

    private double run(ConfigVariant variant, int rows, int running) {
        double alone = time.fixedMicros + rows * time.rowMicros;
        int threads = Math.min(variant.threads(), cores);
        double shortened = alone * (time.serial + (1 - time.serial) / threads);
        double stretched = shortened * Math.max(1, (double) running * threads / cores);
        return stretched * Math.exp(time.scatter * random.nextGaussian());
    }
}
