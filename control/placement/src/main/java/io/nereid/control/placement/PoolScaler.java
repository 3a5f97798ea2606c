// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ServingException;
import io.nereid.control.autoscaling.TimeWindow;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The number of pods of a pool: enough memory for the {@link WorkingSet} of a hit rate, and enough workers for the load.
 * Windows as in Knative's autoscaler: the load is averaged over a stable window; when the panic window asks for twice the
 * ready pods, it decides, and pods only come. Pods go when fewer were enough for a whole delay. Confined to one thread;
 * times are nanoseconds of {@code Clock.nanos()}.
 *
 * <pre>{@code
 * scaler.record(now, busyWorkers);                       // every second
 * int pods = scaler.decide(now, ready, WorkingSet.of(placement.demand(), 0.99).bytes()).pods();
 * }</pre>
 */
public final class PoolScaler {
    /**
     * Settings of a pool's scaling. Immutable.
     *
     * @param min the fewest pods
     * @param max the most pods; 0 for no limit
     * @param workers of one pod
     * @param memoryBytes of one pod
     * @param utilisation the desired share of busy workers
     * @param fill the share of the memory that the working set may take: the rest is for loads and for copies
     * @param stable the window of the load
     * @param panic the window that notices bursts
     * @param scaleDownDelay how long fewer pods must be enough
     */
    public record Settings(
            int min,
            int max,
            int workers,
            long memoryBytes,
            double utilisation,
            double fill,
            Duration stable,
            Duration panic,
            Duration scaleDownDelay) {
        /**
         * Creates settings.
         *
         * @throws ServingException INVALID_ARGUMENT when a value is out of its range
         */
        public Settings {
            if (min < 1 || (max != 0 && max < min)) {
                throw ServingException.invalidArgument(
                        "a pool of " + min + " to " + max
                                + " pods (expected at least 1, and a maximum of 0 or at least " + "the minimum)",
                        "0 as maximum means no limit");
            }
            if (!(utilisation > 0 && utilisation <= 1) || !(fill > 0 && fill <= 1) || workers < 1 || memoryBytes < 1) {
                throw ServingException.invalidArgument(
                        "utilisation " + utilisation + ", fill " + fill + ", " + workers + " workers, " + memoryBytes
                                + " bytes (expected shares of more than 0 and at most 1, and positive numbers)",
                        "use for example 0.6 and 0.85");
            }
        }
    }

    /**
     * A decision. Immutable.
     *
     * @param pods the desired pods
     * @param byMemory what the working set asks for
     * @param byLoad what the load asks for
     * @param panicking whether a burst decides
     */
    public record Decision(int pods, int byMemory, int byLoad, boolean panicking) {}

    private record Peak(long at, int pods) {}

    private static final int PANIC_FACTOR = 2;

    private final Settings settings;
    private final TimeWindow stable;
    private final TimeWindow panic;
    private final Deque<Peak> peaks = new ArrayDeque<>();
    private boolean panicking;
    private long panicUntil;
    private int panicPods;

    /** Creates the scaler of a pool. */
    public PoolScaler(Settings settings) {
        this.settings = settings;
        this.stable = new TimeWindow((int) settings.stable.toSeconds(), TimeWindow.Aggregation.LINEAR);
        this.panic = new TimeWindow((int) settings.panic.toSeconds(), TimeWindow.Aggregation.LINEAR);
    }

    /** Records the mean of the busy workers, over all pods, in the last second; once a second. */
    public void record(long now, double busyWorkers) {
        stable.record(now, busyWorkers);
        panic.record(now, busyWorkers);
    }

    /**
     * Decides.
     *
     * @param ready the ready pods
     * @param workingSetBytes the bytes of the working set
     */
    public Decision decide(long now, int ready, double workingSetBytes) {
        int byMemory = (int) Math.ceil(workingSetBytes / (settings.fill * settings.memoryBytes));
        double each = settings.utilisation * settings.workers;
        int byLoad = (int) Math.ceil(stable.average(now) / each);
        int burst = (int) Math.ceil(panic.average(now) / each);
        if (burst >= PANIC_FACTOR * Math.max(1, ready)) {
            panicking = true;
            panicUntil = now + settings.stable.toNanos();
        } else if (panicking && now - panicUntil >= 0) {
            panicking = false;
            panicPods = 0;
        }
        if (panicking) {
            panicPods = Math.max(panicPods, Math.max(burst, ready));
            byLoad = Math.max(byLoad, panicPods);
        }
        int wanted = Math.max(settings.min, Math.max(byMemory, byLoad));
        if (settings.max > 0) {
            wanted = Math.min(wanted, settings.max);
        }
        peaks.removeIf(peak -> now - peak.at >= settings.scaleDownDelay.toNanos());
        while (!peaks.isEmpty() && peaks.getLast().pods <= wanted) {
            peaks.removeLast();
        }
        peaks.addLast(new Peak(now, wanted));
        int held = peaks.getFirst().pods;
        return new Decision(held, byMemory, byLoad, panicking);
    }
}
