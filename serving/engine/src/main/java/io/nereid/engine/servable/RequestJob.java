// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.cache.CacheableJob;
import io.nereid.engine.cache.ResponseCacheWriter;
import io.nereid.engine.request.DeviceOutputs;
import io.nereid.engine.request.ResponseTimeListener;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.engine.statistics.ResponseStatistics;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A client's request in the engine. Owns the request's inputs and a handle on the servable until it ends, which
 * happens exactly once: {@link #ENDED} decides between completion and failure. {@link #cancel} may come from any
 * thread. All other methods are called by the thread that currently processes the job; for responses that may be any
 * thread of the model, one at a time.
 */
public final class RequestJob implements CacheableJob, InferenceCall, ResponseTimeListener {
    private static final VarHandle ENDED;
    private static final VarHandle ON_CANCEL;
    /** The value of {@link #onCancel} once the client has cancelled. */
    private static final Runnable CANCELLED = () -> {};

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            ENDED = lookup.findVarHandle(RequestJob.class, "ended", boolean.class);
            ON_CANCEL = lookup.findVarHandle(RequestJob.class, "onCancel", Runnable.class);
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

    /** Before the start the time since which the job waits, afterwards how long it waited. */
    private long waited;

    private long startedAt;
    private long ranTo;
    private long inputNanos;
    private long inferNanos;
    private boolean started;
    /** Whether {@link #onResponseTimes} was called; {@link #ranTo} is then the duration of the output stage. */
    private boolean timesReported;

    private @Nullable Answers answers;
    private @Nullable ResponseCacheWriter cacheWriter;
    private volatile boolean ended;

    private volatile @Nullable Runnable onCancel;

    /**
     * Creates the job.
     *
     * @param request the request with inputs in the model's order
     * @param owned the request as the client sent it, whose inputs are closed at the end
     */
    public RequestJob(
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

    /** A step of an ensemble is a part of a request that was accepted. */
    @Override
    public boolean refusable() {
        return !(sink instanceof ResponseTimeListener);
    }

    @Override
    public boolean keepsOnDevice(String output, int device) {
        RequestTrace trace = request.options().trace();
        return sink instanceof DeviceOutputs keeps
                && cacheWriter == null
                && (trace == null || !trace.includesTensors())
                && !classified(output)
                && keeps.keepsOnDevice(output, device);
    }

    private boolean classified(String output) {
        for (RequestedOutput wanted : request.outputs()) {
            if (wanted.classes() > 0 && wanted.name().equals(output)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        // Races with cancel(), which exchanges the action for CANCELLED: either this compare-and-set comes first and
        // cancel() runs the action, or CANCELLED is seen here and the action runs here. It is never lost.
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
        waited = nanos;
        RequestTrace trace = request.options().trace();
        if (trace != null) {
            trace.event(Event.QUEUE_START, nanos);
            tensors(trace, "TENSOR_QUEUE_INPUT", request.inputs());
        }
    }

    @Override
    public long queuedNanos() {
        return started ? startedAt - waited : waited;
    }

    @Override
    public void started(long nanos) {
        if (!started) {
            waited = nanos - waited;
            started = true;
        }
        startedAt = nanos;
        RequestTrace trace = request.options().trace();
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
        RequestTrace trace = request.options().trace();
        if (trace != null) {
            trace.event(Event.COMPUTE_INPUT_END, from);
            trace.event(Event.COMPUTE_OUTPUT_START, to);
            servable.statistics().tracedRun(trace.traceId(), rows);
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
        Answers given = answers;
        if (given == null) {
            given = new Answers(startedAt);
            answers = given;
        }
        long since = given.last;
        int index = given.count++;
        sink.next(response, false);
        given.last = clock.nanos();
        servable.statistics().responses.responded(index, now - since, given.last - now);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        complete(outputs, parameters, -1);
    }

    @Override
    public void cacheWriter(ResponseCacheWriter writer) {
        cacheWriter = writer;
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
        ResponseCacheWriter keeps = cacheWriter;
        if (keeps != null && lookupNanos < 0) {
            keeps.write(outputs, parameters);
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
            statistics.cached(now, request.id(), now - request.arrivedNanos(), lookupNanos, batchSize);
        } else {
            succeeded(statistics, now);
        }
        if (servable.config().decoupled()) {
            completed(outputs, now);
        }
        answering(response, now);
        owned.release();
        closeHandle();
        RequestTrace trace = request.options().trace();
        if (trace != null) {
            if (started) {
                trace.event(Event.COMPUTE_END, now);
            }
            trace.event(Event.REQUEST_END, now);
            if (lookupNanos >= 0) {
                statistics.tracedHit(trace.traceId(), now - request.arrivedNanos());
            } else {
                statistics.traced(trace.traceId(), now - request.arrivedNanos(), waited, inferNanos);
            }
        }
        sink.next(response, true);
    }

    private void succeeded(ModelStatistics statistics, long now) {
        long outputNanos = timesReported ? ranTo : started ? now - ranTo : 0;
        statistics.succeeded(
                now,
                request.id(),
                now - request.arrivedNanos(),
                waited,
                inputNanos,
                inferNanos,
                outputNanos,
                batchSize);
        if (sink instanceof ResponseTimeListener times) {
            times.onResponseTimes(inputNanos, inferNanos, outputNanos);
        }
    }

    /** The servable is an ensemble, whose steps took this long together. */
    @Override
    public void onResponseTimes(long input, long infer, long output) {
        inputNanos = input;
        inferNanos = infer;
        ranTo = output;
        timesReported = true;
    }

    private InferenceResponse response(List<Tensor> outputs, Map<String, Object> parameters) {
        List<Tensor> answer = servable.classify(request.outputs(), outputs);
        return new InferenceResponse(servable.metadata().id(), request.id(), answer, parameters);
    }

    private void completed(List<Tensor> outputs, long now) {
        Answers given = answers == null ? new Answers(startedAt) : answers;
        ResponseStatistics figures = servable.statistics().responses;
        if (outputs.isEmpty()) {
            figures.ended(given.count, now - given.last);
        } else if (timesReported) {
            figures.responded(given.count, inferNanos, ranTo);
        } else {
            figures.responded(given.count, Math.max(0, ranTo - given.last), now - ranTo);
        }
    }

    private void answering(InferenceResponse response, long now) {
        boolean first = answers == null;
        if (first) {
            servable.statistics().firstResponse(now - request.arrivedNanos());
        }
        RequestTrace trace = request.options().trace();
        if (trace != null) {
            if (first) {
                servable.statistics().tracedFirstAnswer(trace.traceId(), now - request.arrivedNanos());
            }
            tensors(trace, "TENSOR_BACKEND_OUTPUT", response.outputs());
            trace.event(Event.INFER_RESPONSE_COMPLETE, now);
        }
    }

    private static void tensors(RequestTrace trace, String activity, List<Tensor> tensors) {
        if (trace.includesTensors()) {
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
        statistics.failed(now, request.id(), e, started, now - request.arrivedNanos());
        if (servable.config().decoupled() && started) {
            Answers given = answers == null ? new Answers(startedAt) : answers;
            statistics.responses.failed(given.count, e.code() == ErrorCode.CANCELLED, now - given.last);
        }
        owned.release();
        closeHandle();
        RequestTrace trace = request.options().trace();
        if (trace != null) {
            trace.event(Event.REQUEST_END, now);
        }
        sink.fail(withId(e, request.id()));
    }

    /**
     * Adds the request's id before the message, as Triton's clients expect it. A step of an ensemble may have added it
     * already.
     */
    static ServingException withId(ServingException e, String id) {
        return id.isEmpty() || e.code() == ErrorCode.INTERNAL || e.getMessage().contains("[request id: ")
                ? e
                : e.isModelError()
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

    /**
     * The number of responses so far, and when the last one was sent. Confined to the thread that processes the job.
     */
    private static final class Answers {
        int count;
        long last;

        Answers(long since) {
            this.last = since;
        }
    }
}
