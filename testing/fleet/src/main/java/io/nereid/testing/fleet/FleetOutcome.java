// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.ArrayList;
import java.util.List;

/** What one strategy has done. Confined to one simulation; read afterwards. */
final class FleetOutcome {
    /**
     * Ten seconds.
     *
     * @param second their beginning
     * @param hitRate the share of requests that found their model loaded
     * @param p99 milliseconds, by the time of arrival
     * @param loads how many loads began
     * @param pods the pods that serve
     * @param copies loads in memory, all models together
     * @param loadBalance the busiest pod's work as a multiple of the mean
     * @param memoryBalance the fullest pod's bytes as a multiple of the mean
     */
    record Window(
            int second,
            double hitRate,
            double p99,
            int loads,
            int pods,
            int copies,
            double loadBalance,
            double memoryBalance) {}

    final String strategy;
    final List<Window> windows = new ArrayList<>();
    final LatencyHistogram latency = new LatencyHistogram();
    final LatencyHistogram hitLatency = new LatencyHistogram();
    long requests;
    long hits;
    long answered;
    long refused;
    long retried;
    long loads;

    /** The most bytes that a pod had, as a share of its limit. */
    double fullest;

    FleetOutcome(String strategy) {
        this.strategy = strategy;
    }

    double hitRate() {
        return (double) hits / requests;
    }

    double refusedShare() {
        return (double) refused / requests;
    }

    /** The loads in the {@code seconds} after an event, less those in as many seconds before it. */
    int moves(int at, int seconds) {
        int before = 0;
        int after = 0;
        for (Window window : windows) {
            if (window.second >= at - seconds && window.second < at) {
                before += window.loads;
            } else if (window.second >= at && window.second < at + seconds) {
                after += window.loads;
            }
        }
        return after - before;
    }

    /** The lowest hit rate of a window in the {@code seconds} after an event. */
    double lowestHitRate(int at, int seconds) {
        return windows.stream()
                .filter(window -> window.second >= at && window.second < at + seconds)
                .mapToDouble(Window::hitRate)
                .min()
                .orElse(1);
    }

    double meanLoadBalance(int from) {
        return windows.stream()
                .filter(window -> window.second >= from)
                .mapToDouble(Window::loadBalance)
                .average()
                .orElse(0);
    }

    double meanMemoryBalance(int from) {
        return windows.stream()
                .filter(window -> window.second >= from)
                .mapToDouble(Window::memoryBalance)
                .average()
                .orElse(0);
    }
}
