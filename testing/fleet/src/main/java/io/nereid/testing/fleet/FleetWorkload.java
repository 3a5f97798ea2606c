// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.Random;

/**
 * Which model the next request is for. Zipf's law over ranks; a third of the models each has its peak at another time of the
 * day; every 20 seconds two of a hundred models change their rank with another one; every two minutes a rare model gets a
 * twentieth of all requests for a minute. Confined to one simulation; the same scenario gives the same requests.
 */
final class FleetWorkload {
    private static final int REGIONS = 3;
    private static final double SWING = 0.8;
    private static final long SECOND = 1_000_000_000L;
    private static final int BURST_PERIOD = 120;
    private static final int BURST_SECONDS = 60;
    private static final double BURST_SHARE = 0.05;
    private static final int SWAP_PERIOD = 20;

    private final FleetScenario scenario;
    private final Random random;
    private final double[] cumulative;
    private final int[] modelOfRank;
    private final long[] bytes;
    private final long[] cost;
    private long swappedAt;
    private long burstAt = -1;
    private int burstModel;

    FleetWorkload(FleetScenario scenario) {
        this.scenario = scenario;
        Random sizes = new Random(scenario.seed());
        int n = scenario.models();
        cumulative = new double[n];
        modelOfRank = new int[n];
        bytes = new long[n];
        cost = new long[n];
        double sum = 0;
        for (int i = 0; i < n; i++) {
            sum += Math.pow(i + 1, -scenario.skew());
            cumulative[i] = sum;
            modelOfRank[i] = i;
            bytes[i] =
                    (long) Math.min(scenario.podBytes() / 8.0, scenario.medianBytes() * Math.exp(sizes.nextGaussian()));
            // Log-normal with sigma 0.6, whose mean is exp(0.18) times the median.
            cost[i] = (long) (scenario.costMillis() * 1e6 * Math.exp(0.6 * sizes.nextGaussian() - 0.18));
        }
        for (int i = 0; i < n; i++) {
            swap(i, sizes.nextInt(n));
        }
        random = new Random(scenario.seed() + 1);
    }

    long bytes(int model) {
        return bytes[model];
    }

    /** How long one request occupies a worker: the model's mean cost, give or take a half. */
    long cost(int model) {
        return (long) (cost[model] * (0.5 + random.nextDouble()));
    }

    /** The nanoseconds until the next request. */
    long gap() {
        return (long) (-Math.log(1 - random.nextDouble()) / scenario.rate() * SECOND);
    }

    int next(long now) {
        long second = now / SECOND;
        while (second - swappedAt >= SWAP_PERIOD) {
            swappedAt += SWAP_PERIOD;
            for (int i = 0; i < scenario.models() / 100; i++) {
                swap(random.nextInt(scenario.models()), random.nextInt(scenario.models()));
            }
        }
        if (second % BURST_PERIOD < BURST_SECONDS && second >= BURST_PERIOD) {
            if (burstAt != second / BURST_PERIOD) {
                burstAt = second / BURST_PERIOD;
                burstModel = modelOfRank[scenario.models() / 2 + random.nextInt(scenario.models() / 2)];
            }
            if (random.nextDouble() < BURST_SHARE) {
                return burstModel;
            }
        }
        while (true) {
            int model = modelOfRank[rank(random.nextDouble() * cumulative[cumulative.length - 1])];
            double phase =
                    2 * Math.PI * ((double) now / SECOND / scenario.seconds() + (double) (model % REGIONS) / REGIONS);
            if (random.nextDouble() * (1 + SWING) < 1 + SWING * Math.sin(phase)) {
                return model;
            }
        }
    }

    private int rank(double at) {
        int low = 0;
        int high = cumulative.length - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (cumulative[middle] < at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    private void swap(int a, int b) {
        int model = modelOfRank[a];
        modelOfRank[a] = modelOfRank[b];
        modelOfRank[b] = model;
    }
}
