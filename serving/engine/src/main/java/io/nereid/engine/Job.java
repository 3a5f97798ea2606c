// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One request on its way. It owns the request's inputs and a handle on the servable until it ends, which it does exactly
 * once. {@link #cancel} comes from any thread; everything else from the one thread that has the job.
 */
final class Job implements InferenceJob, InferenceEngine.Call {
    private static final VarHandle ENDED;
    private static final VarHandle ON_CANCEL;
    /** Stands in {@link #onCancel} once the client has gone. */
    private static final Runnable CANCELLED = () -> {};

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            ENDED = lookup.findVarHandle(Job.class, "ended", boolean.class);
            ON_CANCEL = lookup.findVarHandle(Job.class, "onCancel", Runnable.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final InferenceRequest request;
    private final InferenceRequest owned;
    private final int batchSize;
    private final EngineServable servable;
    private final AutoCloseable handle;
    private final ResponseSink sink;
    private final Clock clock;

    private long queuedAt;
    private long startedAt;
    private long ranFrom;
    private long ranTo;

    @SuppressWarnings("unused") // through ENDED
    private boolean ended;

    private volatile @Nullable Runnable onCancel;

    /**
     * @param request with inputs in the model's order
     * @param owned the request as it came, whose inputs are dropped at the end
     */
    Job(
            InferenceRequest request,
            InferenceRequest owned,
            int batchSize,
            EngineServable servable,
            AutoCloseable handle,
            ResponseSink sink,
            Clock clock) {
        this.request = request;
        this.owned = owned;
        this.batchSize = batchSize;
        this.servable = servable;
        this.handle = handle;
        this.sink = sink;
        this.clock = clock;
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public int batchSize() {
        return batchSize;
    }

    @Override
    public long deadlineNanos() {
        return request.deadlineNanos();
    }

    @Override
    public boolean cancelled() {
        return onCancel == CANCELLED;
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        Runnable before;
        do {
            before = onCancel;
            if (before == CANCELLED) {
                if (action != null) {
                    action.run();
                }
                return;
            }
        } while (!ON_CANCEL.compareAndSet(this, before, action));
    }

    @Override
    public void cancel() {
        Runnable action = (Runnable) ON_CANCEL.getAndSet(this, CANCELLED);
        if (action != null && action != CANCELLED) {
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
    }

    @Override
    public void ran(long from, long to, int rows) {
        ranFrom = from;
        ranTo = to;
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        sink.next(
                new InferenceResponse(servable.metadata().id(), request.id(), outputs, parameters), false);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        if (!ENDED.compareAndSet(this, false, true)) {
            Tensor.closeAll(outputs);
            return;
        }
        InferenceResponse response;
        try {
            List<Tensor> answer = servable.classify(request.outputs(), outputs);
            response = new InferenceResponse(servable.metadata().id(), request.id(), answer, parameters);
        } catch (RuntimeException e) {
            Tensor.closeAll(outputs);
            end(ServingException.from(e));
            return;
        }
        long now = clock.nanos();
        servable.statistics()
                .succeeded(
                        now - request.arrivedNanos(),
                        startedAt - queuedAt,
                        ranFrom - startedAt,
                        ranTo - ranFrom,
                        now - ranTo,
                        batchSize);
        owned.release();
        servable.statistics().inFlight.decrement();
        closeHandle();
        sink.next(response, true);
    }

    @Override
    public void fail(ServingException e) {
        if (ENDED.compareAndSet(this, false, true)) {
            end(e);
        }
    }

    private void end(ServingException e) {
        servable.statistics().failed(e.code());
        servable.statistics().inFlight.decrement();
        owned.release();
        closeHandle();
        sink.fail(withId(e, request.id()));
    }

    /** As Triton's clients expect it: the request's id before the text, when there is one. */
    static ServingException withId(ServingException e, String id) {
        return id.isEmpty() || e.code() == Code.INTERNAL || e.getMessage().startsWith("[request id: ")
                ? e
                : ServingException.of(e.code(), "[request id: " + id + "] " + e.getMessage(), e.remedy());
    }

    private void closeHandle() {
        try {
            handle.close();
        } catch (Exception e) {
            throw ServingException.internal("handle of " + servable.metadata().id() + " did not close", e);
        }
    }
}
