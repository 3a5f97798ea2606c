// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Memory;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import io.nereid.observe.RequestSamples.SlowRequest;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Statistics of one version since it was loaded. Times are in nanoseconds. Thread-safe, lock-free: every counter is
 * updated by itself, so a report may mix values of slightly different moments.
 */
public final class ModelStatistics {
    /** The reasons of failed requests, under Triton's names. */
    public enum Failure {
        REJECTED,
        CANCELED,
        BACKEND,
        OTHER;

        /** The reason for an error code, depending on whether the model had received the request. */
        static Failure of(ErrorCode code, boolean started) {
            return switch (code) {
                case CANCELLED -> CANCELED;
                case INTERNAL, UNKNOWN, DATA_LOSS -> BACKEND;
                case UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED -> started ? BACKEND : REJECTED;
                default -> started ? BACKEND : OTHER;
            };
        }
    }

    /** A count and a total duration. Thread-safe, lock-free. */
    public static final class Timed {
        private final LongAdder count = new LongAdder();
        private final LongAdder nanos = new LongAdder();

        void add(long time) {
            count.increment();
            nanos.add(time);
        }

        public long count() {
            return count.sum();
        }

        public long nanos() {
            return nanos.sum();
        }

        Total total() {
            return new Total(count.sum(), nanos.sum());
        }
    }

    /**
     * Minimum time between two updates of the last-request timestamp, which is reported in milliseconds. Fewer writes
     * to the shared field mean less cache-line contention.
     */
    private static final long FRESH_NANOS = 500_000;

    final ServableId id;
    public final LongAdder[] failures = new LongAdder[Failure.values().length];
    final LongAdder failureNanos = new LongAdder();
    public final LongAdder inferences = new LongAdder();
    public final LongAdder accepted = new LongAdder();
    public final LongAdder computeInput = new LongAdder();
    public final LongAdder computeOutput = new LongAdder();
    public final Timed cacheHits = new Timed();
    public final Timed cacheMisses = new Timed();
    public final LongAdder[] cuts = new LongAdder[BatchCloseReason.values().length];
    public final Histogram request = new Histogram(Histogram.DURATIONS);
    public final Histogram queue = new Histogram(Histogram.DURATIONS);
    public final Histogram compute = new Histogram(Histogram.DURATIONS);
    public final BatchStatistics batches;
    public final ResponseStatistics responses = new ResponseStatistics();
    public final @Nullable Histogram firstResponse;
    public final @Nullable LatencySummaries summaries;
    /** Samples of slow and failed requests. */
    public final SlowRequests slow;

    private final long startNanos;
    private final long startMillis;
    /** Neither volatile nor locked: any recent value suffices. */
    private long last;

    private boolean used;

    /** Statistics without the optional metrics. */
    public ModelStatistics(ServableId id) {
        this(id, ModelConfig.unspecified(id.model()), MetricsOptions.DEFAULT, Clock.system());
    }

    public ModelStatistics(ServableId id, ModelConfig config, MetricsOptions options, Clock clock) {
        this.id = id;
        this.batches = new BatchStatistics(Math.max(1, config.maxBatchSize()));
        this.firstResponse = options.histogramLatencies()
                ? new Histogram(MetricsOptions.firstResponseBounds(config.histogramBuckets()))
                : null;
        this.summaries = options.summaryLatencies() ? new LatencySummaries(clock) : null;
        this.startNanos = clock.nanos();
        this.startMillis = clock.millis();
        this.slow = new SlowRequests(request, options.slowRequestNanos(), startNanos);
        for (int i = 0; i < failures.length; i++) {
            failures[i] = new LongAdder();
        }
        for (int i = 0; i < cuts.length; i++) {
            cuts[i] = new LongAdder();
        }
    }

    /** Counts a request that the model has answered. */
    public void succeeded(
            long now,
            String requestId,
            long requestNanos,
            long queueNanos,
            long inputNanos,
            long runNanos,
            long outputNanos,
            int rows) {
        touch(now);
        inferences.add(rows);
        request.record(requestNanos);
        queue.record(queueNanos);
        compute.record(runNanos);
        computeInput.add(inputNanos);
        computeOutput.add(outputNanos);
        if (summaries != null) {
            summaries.record(requestNanos, queueNanos, inputNanos, runNanos, outputNanos);
        }
        if (slow.noteworthy(now, requestNanos)) {
            slow.add(
                    now,
                    new SlowRequest(
                            requestId,
                            millis(now),
                            requestNanos,
                            queueNanos,
                            inputNanos,
                            runNanos,
                            outputNanos,
                            rows,
                            false));
        }
    }

    /** Counts a request that the response cache has answered. */
    public void cached(long now, String requestId, long requestNanos, long lookupNanos, int rows) {
        touch(now);
        request.record(requestNanos);
        cacheHits.add(lookupNanos);
        if (summaries != null) {
            summaries.request.record(requestNanos);
            summaries.cacheHit.record(lookupNanos);
        }
        if (slow.noteworthy(now, requestNanos)) {
            slow.add(now, new SlowRequest(requestId, millis(now), requestNanos, 0, 0, 0, 0, rows, true));
        }
    }

    /** Counts a cache miss, with the duration of lookup and insertion. */
    public void cacheMissed(long nanos) {
        cacheMisses.add(nanos);
        if (summaries != null) {
            summaries.cacheMiss.record(nanos);
        }
    }

    /** Records the time to the first response of a request. */
    public void firstResponse(long requestNanos) {
        if (firstResponse != null) {
            firstResponse.record(requestNanos);
        }
    }

    /** Keeps a traced request, which has been counted, as an example of its durations. */
    public void traced(String traceId, long requestNanos, long queueNanos, long runNanos) {
        request.exemplars.record(requestNanos, traceId);
        queue.exemplars.record(queueNanos, traceId);
        compute.exemplars.record(runNanos, traceId);
    }

    /** Keeps a traced request that the response cache has answered as an example of its duration. */
    public void tracedHit(String traceId, long requestNanos) {
        request.exemplars.record(requestNanos, traceId);
    }

    /** Keeps a traced request as an example of the time to the first response. */
    public void tracedFirstAnswer(String traceId, long requestNanos) {
        if (firstResponse != null) {
            firstResponse.exemplars.record(requestNanos, traceId);
        }
    }

    /** Keeps a traced request as an example of a run on {@code rows} rows. */
    public void tracedRun(String traceId, int rows) {
        batches.exemplars.record(rows, traceId);
    }

    /** Counts a request that has failed, and keeps its error. */
    public void failed(long now, String requestId, ServingException e, boolean started, long requestNanos) {
        touch(now);
        failures[Failure.of(e.code(), started).ordinal()].increment();
        failureNanos.add(requestNanos);
        slow.add(millis(now), requestNanos, requestId, e);
    }

    private long millis(long now) {
        return startMillis + Math.floorDiv(now - startNanos, 1_000_000L);
    }

    /** Counts a run of the model on {@code rows} rows. */
    public void executed(int rows, long inputNanos, long runNanos, long outputNanos) {
        batches.add(rows, inputNanos, runNanos, outputNanos);
    }

    /** Counts a run of the model whose times are counted elsewhere. */
    void executed(int rows) {
        batches.add(rows, 0, 0, 0);
    }

    public void batchClosed(BatchCloseReason reason) {
        cuts[reason.ordinal()].increment();
    }

    private void touch(long now) {
        if (now - last > FRESH_NANOS || !used) {
            last = now;
            used = true;
        }
    }

    /** Requests accepted and not yet completed. */
    public long inFlight() {
        long ended = success() + failure();
        return accepted.sum() - ended;
    }

    public long success() {
        return request.count();
    }

    long failure() {
        long sum = 0;
        for (LongAdder failure : failures) {
            sum += failure.sum();
        }
        return sum;
    }

    /** Returns a snapshot for clients. */
    public ModelStatisticsSnapshot report(boolean decoupled, long memoryBytes) {
        long computed = compute.count();
        return new ModelStatisticsSnapshot(
                id.model(),
                id.version(),
                used ? millis(last) : 0,
                inferences.sum(),
                batches.executions(),
                new Total(success(), request.sum()),
                new Total(failure(), failureNanos.sum()),
                new Total(queue.count(), queue.sum()),
                new Total(computed, computeInput.sum()),
                new Total(computed, compute.sum()),
                new Total(computed, computeOutput.sum()),
                cacheHits.total(),
                cacheMisses.total(),
                batches.report(),
                decoupled ? responses.report() : Map.of(),
                memoryBytes > 0 ? List.of(new Memory("CPU", 0, memoryBytes)) : List.of());
    }
}
