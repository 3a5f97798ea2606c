// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.time.Duration;

/**
 * The smoothed rate and cost of one model. Two exponential averages of the rate: a fast one that adds copies soon after a
 * burst begins, a slow one that keeps them over short pauses. Confined to the owner of the {@link PoolPlacement}.
 */
final class ModelDemand {
    /** The time constant of the long mean, in those of the slow one. */
    private static final int LONG = 12;

    private final double fastSeconds;
    private final double slowSeconds;
    private double fast;
    private double slow;
    private double longest;
    private double covered;
    private double cost;
    private long requests;
    private long busyNanos;

    ModelDemand(Duration fast, Duration slow) {
        this.fastSeconds = fast.toNanos() / 1e9;
        this.slowSeconds = slow.toNanos() / 1e9;
    }

    /** Takes the counts of the time since the last update; totals since the model was added. */
    void update(long totalRequests, long totalBusyNanos, double seconds) {
        long arrived = totalRequests - requests;
        long busy = totalBusyNanos - busyNanos;
        requests = totalRequests;
        busyNanos = totalBusyNanos;
        double rate = arrived / seconds;
        fast += (1 - Math.exp(-seconds / fastSeconds)) * (rate - fast);
        slow += (1 - Math.exp(-seconds / slowSeconds)) * (rate - slow);
        double part = 1 - Math.exp(-seconds / (LONG * slowSeconds));
        longest += part * (rate - longest);
        covered += part * (1 - covered);
        if (arrived > 0 && busy > 0) {
            double each = busy / 1e9 / arrived;
            // Later updates weigh less with few requests: one unusual request is not the cost of the model.
            cost = cost == 0 ? each : cost + Math.min(0.3, 0.02 * arrived) * (each - cost);
        }
    }

    double fastRate() {
        return fast;
    }

    double slowRate() {
        return slow;
    }

    /** The mean over a long time, for the working set: rare models must have been seen in it. */
    double longRate() {
        return covered == 0 ? 0 : longest / covered;
    }

    /** Busy workers by the fast rate. */
    double fastLoad() {
        return fast * cost;
    }

    /** Busy workers by the slow rate. */
    double slowLoad() {
        return slow * cost;
    }
}
