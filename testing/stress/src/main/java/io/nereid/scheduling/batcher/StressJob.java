// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** A job that counts how often it ended, and whether by a run. Thread-safe. */
final class StressJob implements InferenceJob {
    private static final InferenceRequest REQUEST = new InferenceRequest(
            ModelRef.latest("m"), "", List.of(), List.of(), Map.of(), Long.MAX_VALUE, 0, InferenceRequest.Options.NONE);

    /** Counts completed jobs of a test, to show their order. */
    private final AtomicInteger order;

    final AtomicInteger ends = new AtomicInteger();

    /** The position among the completed jobs, from 1; 0 if it failed. */
    volatile int place;

    private boolean cancelled;
    private Runnable action;

    StressJob(AtomicInteger order) {
        this.order = order;
    }

    void cancel() {
        Runnable now;
        synchronized (this) {
            cancelled = true;
            now = action;
        }
        if (now != null) {
            now.run();
        }
    }

    @Override
    public synchronized boolean cancelled() {
        return cancelled;
    }

    @Override
    public void onCancel(Runnable next) {
        boolean now;
        synchronized (this) {
            action = next;
            now = cancelled;
        }
        if (now && next != null) {
            next.run();
        }
    }

    @Override
    public InferenceRequest request() {
        return REQUEST;
    }

    @Override
    public int batchSize() {
        return 1;
    }

    @Override
    public long deadlineNanos() {
        return Long.MAX_VALUE;
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {}

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        place = order.incrementAndGet();
        ends.incrementAndGet();
    }

    @Override
    public void fail(ServingException e) {
        ends.incrementAndGet();
    }
}
