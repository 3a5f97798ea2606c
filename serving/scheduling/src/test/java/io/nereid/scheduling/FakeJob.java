// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A job that records how it ended. Thread-safe. */
public final class FakeJob implements InferenceJob {
    public final int number;
    public final int rows;
    public final int shape;
    public final long deadline;
    public final AtomicInteger ends = new AtomicInteger();
    public volatile @Nullable ErrorCode code;
    public volatile @Nullable ServingException error;
    public volatile long queuedAt = -1;
    public volatile long startedAt = -1;
    public final AtomicInteger answers = new AtomicInteger();
    /** The inputs; released at the end. */
    public List<Tensor> inputs = List.of();
    /** The outputs, if a test reads and closes them itself. */
    public @Nullable List<Tensor> outputs;

    public boolean keepsOutputs;
    public boolean refusable = true;
    public int runs;
    public Runnable onStart = () -> {};
    public Consumer<FakeJob> onAnswer = job -> {};
    public Consumer<FakeJob> onEnd = job -> {};
    private InferenceRequest.Options options = InferenceRequest.Options.NONE;
    private boolean cancelled;
    private @Nullable Runnable onCancel;

    public FakeJob(int number, int rows, int shape, long deadline) {
        this.number = number;
        this.rows = rows;
        this.shape = shape;
        this.deadline = deadline;
    }

    public static FakeJob of(int number) {
        return new FakeJob(number, 1, 0, Long.MAX_VALUE);
    }

    public static FakeJob rows(int number, int rows) {
        return new FakeJob(number, rows, 0, Long.MAX_VALUE);
    }

    public static FakeJob shaped(int number, int shape) {
        return new FakeJob(number, 1, shape, Long.MAX_VALUE);
    }

    public static FakeJob until(int number, long deadline) {
        return new FakeJob(number, 1, 0, deadline);
    }

    public FakeJob priority(long priority) {
        options = new InferenceRequest.Options(priority, options.timeoutNanos(), null, null);
        return this;
    }

    public FakeJob timeout(long nanos) {
        options = new InferenceRequest.Options(options.priority(), nanos, null, null);
        return this;
    }

    @Override
    public InferenceRequest request() {
        return new InferenceRequest(
                ModelRef.latest("m"), "r" + number, inputs, List.of(), Map.of(), deadline, 0, options);
    }

    @Override
    public int batchSize() {
        return rows;
    }

    @Override
    public long deadlineNanos() {
        return deadline;
    }

    @Override
    public boolean refusable() {
        return refusable;
    }

    @Override
    public synchronized boolean cancelled() {
        return cancelled;
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        boolean now;
        synchronized (this) {
            onCancel = action;
            now = cancelled;
        }
        if (now && action != null) {
            action.run();
        }
    }

    public synchronized boolean hasAction() {
        return onCancel != null;
    }

    public void cancel() {
        Runnable action;
        synchronized (this) {
            cancelled = true;
            action = onCancel;
        }
        if (action != null) {
            action.run();
        }
    }

    @Override
    public void queued(long nanos) {
        queuedAt = nanos;
    }

    @Override
    public void started(long nanos) {
        startedAt = nanos;
        onStart.run();
    }

    @Override
    public void ran(long from, long to, int batchSize) {
        runs++;
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        answers.incrementAndGet();
        onAnswer.accept(this);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        code = ErrorCode.OK;
        if (keepsOutputs) {
            this.outputs = outputs;
        } else {
            Tensor.closeAll(outputs);
        }
        release();
        ends.incrementAndGet();
        onEnd.accept(this);
    }

    @Override
    public void fail(ServingException e) {
        error = e;
        code = e.code();
        release();
        ends.incrementAndGet();
        onEnd.accept(this);
    }

    private void release() {
        if (ends.get() == 0) {
            Tensor.closeAll(inputs);
        }
    }

    @Override
    public String toString() {
        return "job " + number;
    }
}
