// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import io.nereid.app.perf.load.StabilityCheck.Observation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Measures loads, one after another: warm-up, windows until they are stable, and the end of all requests. Confined to one thread.
 *
 * <pre>{@code
 * LoadResult result = new LoadMeasurement(target, plan, LoadTimer.system(), () -> false).measure(new LoadLevel(false, 8));
 * double p99 = result.percentileMillis(99);
 * }</pre>
 */
public final class LoadMeasurement {
    private static final long POLL_NANOS = 2_000_000L;
    private static final long STEP_NANOS = 100_000_000L;
    /** How long the requests of a load may take after its end before the next load begins. */
    private static final long PATIENCE_NANOS = 10_000_000_000L;

    private final LoadTarget target;
    private final LoadPlan plan;
    private final LoadTimer timer;
    private final BooleanSupplier interrupted;

    /** @param interrupted whether to end with what has been measured so far */
    public LoadMeasurement(LoadTarget target, LoadPlan plan, LoadTimer timer, BooleanSupplier interrupted) {
        this.target = target;
        this.plan = plan;
        this.timer = timer;
        this.interrupted = interrupted;
    }

    /** A measured window, with what the server had counted before and after it. */
    private record Trial(
            MeasurementWindow window,
            double seconds,
            long succeeded,
            @Nullable ServerTimes before,
            @Nullable ServerTimes after) {
        double rate() {
            return succeeded / seconds;
        }
    }

    /** Measures a load; null when it was interrupted before there was anything to measure. */
    public @Nullable LoadResult measure(LoadLevel level) {
        LoadRecorder recorder = new LoadRecorder(timer);
        ModelLoad load = level.open()
                ? new OpenLoopLoad(target, recorder, timer, schedule(level), plan.maxInFlight())
                : new ClosedLoopLoad(target, recorder, timer, (int) level.value());
        List<Trial> trials = new ArrayList<>();
        List<Observation> observations = new ArrayList<>();
        Boolean stable = plan.untilStable() ? Boolean.FALSE : null;
        load.start();
        try {
            waitUntil(timer.nanos() + plan.warmupNanos());
            int most = plan.untilStable() ? plan.maxTrials() : 1;
            long length = plan.durationNanos() == null ? plan.intervalNanos() : plan.durationNanos();
            ServerTimes before = target.serverTimes();
            Object unused = recorder.roll();
            long start = timer.nanos();
            long count = recorder.succeeded();
            long ended = recorder.ended();
            while (trials.size() < most && !interrupted.getAsBoolean()) {
                if (plan.requests() != null) {
                    awaitRequests(recorder, ended + plan.requests());
                } else {
                    waitUntil(start + length);
                }
                ServerTimes after = target.serverTimes();
                long end = timer.nanos();
                long now = recorder.succeeded();
                MeasurementWindow window = recorder.roll();
                awaitResponses(window);
                Trial trial = new Trial(window, Math.max(1, end - start) / 1e9, now - count, before, after);
                trials.add(trial);
                observations.add(observation(trial));
                start = end;
                count = now;
                before = after;
                if (stable != null && plan.stability().isStable(observations)) {
                    stable = Boolean.TRUE;
                    break;
                }
            }
        } finally {
            load.stop();
            awaitEnd(load);
        }
        if (Boolean.FALSE.equals(stable) && interrupted.getAsBoolean()) {
            stable = null; // it was not asked to the end
        }
        return trials.isEmpty() ? null : result(level, trials, stable, recorder.takeFailures());
    }

    private ArrivalSchedule schedule(LoadLevel level) {
        return plan.poisson()
                ? ArrivalSchedule.poisson(level.value(), plan.seed())
                : ArrivalSchedule.constant(level.value());
    }

    private void waitUntil(long moment) {
        while (timer.nanos() - moment < 0 && !interrupted.getAsBoolean()) {
            timer.park(Math.min(moment - timer.nanos(), STEP_NANOS) + timer.nanos());
        }
    }

    private void awaitRequests(LoadRecorder recorder, long ended) {
        while (recorder.ended() < ended && !interrupted.getAsBoolean()) {
            timer.park(timer.nanos() + POLL_NANOS);
        }
    }

    /**
     * Waits for the responses to all requests of a window, while the load goes on: leaving out those that take longest would
     * make a slow server look fast. Each ends at its own time limit at the latest.
     */
    private void awaitResponses(MeasurementWindow window) {
        while (!window.finished() && !interrupted.getAsBoolean()) {
            timer.park(timer.nanos() + POLL_NANOS);
        }
    }

    private void awaitEnd(ModelLoad load) {
        long latest = timer.nanos() + PATIENCE_NANOS;
        while (!load.ended() && timer.nanos() - latest < 0 && !interrupted.getAsBoolean()) {
            timer.park(timer.nanos() + POLL_NANOS);
        }
    }

    private Observation observation(Trial trial) {
        Histogram latencies = trial.window().latencies();
        double latency = latencies.getTotalCount() == 0
                ? 0
                : plan.percentile() > 0 ? latencies.getValueAtPercentile(plan.percentile()) : latencies.getMean();
        return new Observation(trial.rate(), latency);
    }

    /** The last windows together: of a measurement that did not become stable, they are the ones furthest from the warm-up. */
    private LoadResult result(LoadLevel level, List<Trial> all, @Nullable Boolean stable, Map<String, Long> failures) {
        List<Trial> last = all.subList(Math.max(0, all.size() - plan.stability().windows()), all.size());
        Histogram latencies = new Histogram(MeasurementWindow.DIGITS);
        Histogram delays = new Histogram(MeasurementWindow.DIGITS);
        double seconds = 0;
        long succeeded = 0;
        long failed = 0;
        long unfinished = 0;
        for (Trial trial : last) {
            latencies.add(trial.window().latencies());
            delays.add(trial.window().delays());
            seconds += trial.seconds();
            succeeded += trial.succeeded();
            failed += trial.window().failed();
            unfinished += trial.window().unfinished();
        }
        ServerTimes before = last.get(0).before();
        ServerTimes after = last.get(last.size() - 1).after();
        return new LoadResult(
                level,
                seconds,
                succeeded / seconds,
                latencies,
                failed,
                unfinished,
                failures,
                stable,
                all.size(),
                level.open() ? delays : null,
                before == null || after == null ? null : after.since(before));
    }
}
