// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.spi.InferenceEngine;
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
 * once. {@link #cancel} comes from any thread; everything else from the one thread that has
 * the job, which for answers may be any thread of the model's, one at a time.
 */
final class Job implements CachedJob, InferenceEngine.Call, StepTimes {
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
    private final @Nullable RequestTrace trace;

    private long queuedAt;
    private long startedAt;
    private long queueNanos;
    private long ranTo;
    private long inputNanos;
    private long inferNanos;
    private long outputNanos;
    private boolean started;
    private boolean told;
    private int responses;
    private long respondedAt;
    private @Nullable AnswerKeeper keeper;
    private volatile boolean ended;

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
        this.trace = request.options().trace();
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
        if (trace != null) {
            trace.event(Event.QUEUE_START, nanos);
            tensors(trace, "TENSOR_QUEUE_INPUT", request.inputs());
        }
    }

    @Override
    public void started(long nanos) {
        if (!started) {
            queueNanos = nanos - queuedAt;
            started = true;
        }
        startedAt = nanos;
        if (trace != null) {
            trace.event(Event.COMPUTE_START, nanos);
            tensors(trace, "TENSOR_BACKEND_INPUT", request.inputs());
        }
    }

    @Override
    public void ran(long from, long to, int rows) {
        inputNanos += from - startedAt;
        inferNanos += to - from;
        ranTo = to;
        if (trace != null) {
            trace.event(Event.COMPUTE_INPUT_END, from);
            trace.event(Event.COMPUTE_OUTPUT_START, to);
        }
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        if (ended) {
            Tensor.closeAll(outputs);
            return;
        }
        InferenceResponse response;
        try {
            response = response(outputs, parameters);
        } catch (RuntimeException e) {
            Tensor.closeAll(outputs);
            fail(ServingException.from(e));
            return;
        }
        long now = clock.nanos();
        answering(response, now);
        long since = responses == 0 ? startedAt : respondedAt;
        int index = responses++;
        sink.next(response, false);
        respondedAt = clock.nanos();
        servable.statistics().responses.answered(index, now - since, respondedAt - now);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        complete(outputs, parameters, -1);
    }

    @Override
    public void keeper(AnswerKeeper newKeeper) {
        keeper = newKeeper;
    }

    @Override
    public void cached(List<Tensor> outputs, Map<String, Object> parameters, long lookupNanos) {
        complete(outputs, parameters, lookupNanos);
    }

    private void complete(List<Tensor> outputs, Map<String, Object> parameters, long lookupNanos) {
        if (!ENDED.compareAndSet(this, false, true)) {
            Tensor.closeAll(outputs);
            return;
        }
        AnswerKeeper keeps = keeper;
        if (keeps != null && lookupNanos < 0) {
            keeps.keep(outputs, parameters);
        }
        InferenceResponse response;
        try {
            response = response(outputs, parameters);
        } catch (RuntimeException e) {
            Tensor.closeAll(outputs);
            end(ServingException.from(e));
            return;
        }
        long now = clock.nanos();
        ModelStatistics statistics = servable.statistics();
        if (lookupNanos >= 0) {
            statistics.cached(now, now - request.arrivedNanos(), lookupNanos);
        } else {
            succeeded(statistics, now);
        }
        if (servable.config().decoupled()) {
            completed(outputs, now);
        }
        answering(response, now);
        owned.release();
        statistics.inFlight.decrement();
        closeHandle();
        if (trace != null) {
            if (started) {
                trace.event(Event.COMPUTE_END, now);
            }
            trace.event(Event.REQUEST_END, now);
        }
        sink.next(response, true);
    }

    private void succeeded(ModelStatistics statistics, long now) {
        if (!told && started) {
            outputNanos = now - ranTo;
        }
        statistics.succeeded(
                now,
                now - request.arrivedNanos(),
                queueNanos,
                inputNanos,
                inferNanos,
                outputNanos,
                batchSize);
        if (sink instanceof StepTimes times) {
            times.took(inputNanos, inferNanos, outputNanos);
        }
    }

    /** The servable is made of others, which took so long together. */
    @Override
    public void took(long input, long infer, long output) {
        inputNanos = input;
        inferNanos = infer;
        outputNanos = output;
        told = true;
    }

    private InferenceResponse response(List<Tensor> outputs, Map<String, Object> parameters) {
        List<Tensor> answer = servable.classify(request.outputs(), outputs);
        return new InferenceResponse(servable.metadata().id(), request.id(), answer, parameters);
    }

    private void completed(List<Tensor> outputs, long now) {
        long since = responses == 0 ? startedAt : respondedAt;
        if (outputs.isEmpty()) {
            servable.statistics().responses.ended(responses, now - since);
        } else {
            servable.statistics().responses.answered(responses, Math.max(0, ranTo - since), now - ranTo);
        }
    }

    private void answering(InferenceResponse response, long now) {
        if (responses == 0) {
            servable.statistics().firstAnswer(now - request.arrivedNanos());
        }
        if (trace != null) {
            tensors(trace, "TENSOR_BACKEND_OUTPUT", response.outputs());
            trace.event(Event.INFER_RESPONSE_COMPLETE, now);
        }
    }

    private static void tensors(RequestTrace trace, String activity, List<Tensor> tensors) {
        if (trace.wantsTensors()) {
            trace.tensors(activity, tensors);
        }
    }

    @Override
    public void fail(ServingException e) {
        if (ENDED.compareAndSet(this, false, true)) {
            end(e);
        }
    }

    private void end(ServingException e) {
        long now = clock.nanos();
        ModelStatistics statistics = servable.statistics();
        statistics.failed(now, e.code(), started, now - request.arrivedNanos());
        if (servable.config().decoupled() && started) {
            long since = responses == 0 ? startedAt : respondedAt;
            statistics.responses.failed(responses, e.code() == Code.CANCELLED, now - since);
        }
        statistics.inFlight.decrement();
        owned.release();
        closeHandle();
        if (trace != null) {
            trace.event(Event.REQUEST_END, now);
        }
        sink.fail(withId(e, request.id()));
    }

    /** As Triton's clients expect it: the request's id before the text, when there is one; a step's text has it already. */
    static ServingException withId(ServingException e, String id) {
        return id.isEmpty() || e.code() == Code.INTERNAL || e.getMessage().contains("[request id: ")
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
