// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.engine.request.ResponseTimeListener;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A job that records its responses. Responses arrive one at a time; any thread may cancel it. */
public final class RecordingJob implements InferenceJob, ResponseTimeListener {
    /** One response: the first int of each output by name. */
    public record Got(
            Map<String, Integer> values, Map<String, String> shapes, Map<String, Object> parameters, boolean last) {}

    private final InferenceRequest request;
    private final AtomicBoolean answering = new AtomicBoolean();
    private @Nullable Runnable onCancel;
    public final List<Got> answers = new ArrayList<>();
    public volatile @Nullable ServingException failure;
    public volatile boolean ended;
    public long @Nullable [] took;

    public RecordingJob(InferenceRequest request) {
        this.request = request;
    }

    public void cancel() {
        Runnable action = onCancel;
        if (action != null) {
            action.run();
        }
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public int batchSize() {
        return 1;
    }

    @Override
    public long deadlineNanos() {
        return request.deadlineNanos();
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        onCancel = action;
    }

    @Override
    public void onResponseTimes(long inputNanos, long inferNanos, long outputNanos) {
        took = new long[] {inputNanos, inferNanos, outputNanos};
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        answer(outputs, parameters, false);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        answer(outputs, parameters, true);
        request.release();
    }

    @Override
    public void fail(ServingException e) {
        enter();
        failure = e;
        ended = true;
        request.release();
        answering.set(false);
    }

    private void answer(List<Tensor> outputs, Map<String, Object> parameters, boolean last) {
        enter();
        Map<String, Integer> values = new TreeMap<>();
        Map<String, String> shapes = new TreeMap<>();
        for (Tensor t : outputs) {
            values.put(
                    t.name(),
                    t.byteLength() < 4 ? t.buffer().get(0) : t.buffer().getInt(0));
            shapes.put(t.name(), t.shape().toString());
        }
        Tensor.closeAll(outputs);
        answers.add(new Got(values, shapes, parameters, last));
        ended = last;
        answering.set(false);
    }

    private void enter() {
        if (!answering.compareAndSet(false, true)) {
            throw new AssertionError("two answers at once");
        }
        if (ended) {
            throw new AssertionError("an answer after the end");
        }
    }
}
