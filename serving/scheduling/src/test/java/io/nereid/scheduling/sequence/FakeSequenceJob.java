// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.TensorCounter;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A request of a sequence that records how it ended and releases its tensors. Thread-safe. */
public final class FakeSequenceJob implements InferenceJob {
    public final int number;
    public final AtomicInteger ends = new AtomicInteger();
    /** The responses: {@code OUT=3}. */
    final List<String> answers = new ArrayList<>();

    public volatile @Nullable ErrorCode code;
    volatile @Nullable ServingException error;
    Consumer<FakeSequenceJob> onEnd = request -> {};
    /** When the batcher removes its action on cancellation. */
    public Runnable onTaken = () -> {};

    public int rows = 1;
    long deadline = Long.MAX_VALUE;
    long timeout;

    public @Nullable SequenceFlags sequence;

    List<RequestedOutput> wanted = List.of();
    private final List<Tensor> inputs;
    private boolean cancelled;
    private @Nullable Runnable onCancel;

    public FakeSequenceJob(int number, @Nullable SequenceFlags sequence, List<Tensor> inputs) {
        this.number = number;
        this.sequence = sequence;
        this.inputs = inputs;
    }

    public FakeSequenceJob until(long nanos) {
        deadline = nanos;
        return this;
    }

    public FakeSequenceJob timeout(long nanos) {
        timeout = nanos;
        return this;
    }

    FakeSequenceJob wants(String... names) {
        List<RequestedOutput> outputs = new ArrayList<>();
        for (String name : names) {
            outputs.add(new RequestedOutput(name, 0));
        }
        wanted = outputs;
        return this;
    }

    @Override
    public InferenceRequest request() {
        return new InferenceRequest(
                ModelRef.latest("m"),
                "r" + number,
                inputs,
                wanted,
                Map.of(),
                deadline,
                0,
                new Options(0, timeout, sequence, null));
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
    public synchronized boolean cancelled() {
        return cancelled;
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        if (action == null) {
            onTaken.run();
        }
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
    public void queued(long nanos) {}

    @Override
    public void started(long nanos) {}

    @Override
    public void ran(long from, long to, int batchSize) {}

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        note(outputs);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        note(outputs);
        end(ErrorCode.OK);
    }

    @Override
    public void fail(ServingException e) {
        error = e;
        end(e.code());
    }

    private void note(List<Tensor> outputs) {
        synchronized (answers) {
            for (Tensor t : outputs) {
                answers.add(t.name() + "=" + TensorCounter.show(t));
                t.close();
            }
        }
    }

    private void end(ErrorCode how) {
        code = how;
        if (ends.incrementAndGet() == 1) {
            Tensor.closeAll(inputs);
        }
        onEnd.accept(this);
    }

    /** A job that no batcher has accepted. */
    public void drop() {
        Tensor.closeAll(inputs);
    }

    @Override
    public String toString() {
        return "r" + number + (code == null ? "" : " " + code);
    }
}
