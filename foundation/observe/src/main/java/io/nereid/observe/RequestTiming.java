// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The times of one request whose client asked for them: a trace that adds up the events which every trace gets, and passes
 * them on to the trace of the request, if it has one. The times of an ensemble are the sums of those of its steps. Only a
 * request that asks for it has a timing. Thread-safe.
 *
 * <pre>{@code
 * RequestTiming timing = RequestTiming.of(trace, exchange.arrivedNanos());
 * engine.infer(requestWith(timing), sink);
 * // once the response is encoded
 * reply.withHeader("server-timing", timing.serverTiming(clock.nanos()));
 * }</pre>
 */
public final class RequestTiming implements RequestTrace {
    /** The header by which a client asks for the times, with the value {@code true}. */
    public static final String HEADER = "nereid-timing";

    /** The request parameter by which a client of Open Inference asks for the times: a boolean. */
    public static final String PARAMETER = "nereid_timing";

    private static final double NANOS_PER_MILLI = 1e6;

    private final @Nullable RequestTrace trace;
    private final RequestTiming whole;
    private final long arrivedNanos;

    // guarded by this: the last events of this request or step
    private long queuedAt;
    private long startedAt;
    private long ranFrom;
    private long ranTo;

    // guarded by whole: what is added up, in nanoseconds
    private long decodedAt;
    private long endedAt;
    private long queueNanos;
    private long batchWaitNanos;
    private long inputNanos;
    private long computeNanos;
    private long outputNanos;
    private int batchRows;
    private int batchRequests;
    private int threadChanges;
    private boolean computed;
    private @Nullable Thread thread;

    private RequestTiming(@Nullable RequestTrace trace, @Nullable RequestTiming whole, long arrivedNanos) {
        this.trace = trace;
        this.whole = whole == null ? this : whole;
        this.arrivedNanos = arrivedNanos;
    }

    /**
     * The timing of a request.
     *
     * @param trace the request's trace, which gets all events as well; null for none. A timing is returned as it is
     * @param arrivedNanos when the request's head arrived
     */
    public static RequestTiming of(@Nullable RequestTrace trace, long arrivedNanos) {
        return trace instanceof RequestTiming timing ? timing : new RequestTiming(trace, null, arrivedNanos);
    }

    /**
     * Whether a value of the header asks for the times.
     *
     * @throws ServingException INVALID_ARGUMENT for a value other than {@code true} and {@code false}
     */
    public static boolean asks(String value) {
        if (value.equals("true") || value.equals("false")) {
            return value.equals("true");
        }
        throw ServingException.invalidArgument("header '" + HEADER + "' is '"
                + (value.length() > 100 ? value.substring(0, 100) + "…" : value) + "' (expected: true or false)");
    }

    @Override
    public void event(Event event, long nanos) {
        RequestTrace other = trace;
        if (other != null) {
            other.event(event, nanos);
        }
        synchronized (this) {
            add(event, nanos);
        }
    }

    private void add(Event event, long nanos) {
        synchronized (whole) {
            Thread now = Thread.currentThread();
            if (whole.thread != null && whole.thread != now) {
                whole.threadChanges++;
            }
            whole.thread = now;
            switch (event) {
                case REQUEST_START -> whole.decodedAt = whole.decodedAt == 0 ? nanos : whole.decodedAt;
                case QUEUE_START -> queuedAt = nanos;
                case COMPUTE_START -> {
                    whole.queueNanos += queuedAt == 0 ? 0 : nanos - queuedAt;
                    queuedAt = 0;
                    startedAt = nanos;
                    whole.computed = true;
                }
                case COMPUTE_INPUT_END -> {
                    whole.inputNanos += nanos - startedAt;
                    ranFrom = nanos;
                }
                case COMPUTE_OUTPUT_START -> {
                    whole.computeNanos += nanos - ranFrom;
                    ranTo = nanos;
                }
                case COMPUTE_END -> whole.outputNanos += ranTo == 0 ? 0 : nanos - ranTo;
                case REQUEST_END -> {
                    if (whole == this) {
                        endedAt = nanos;
                    }
                }
                default -> {}
            }
        }
    }

    /**
     * Records the run that the request was a part of; the largest of several.
     *
     * @param rows the rows of the run, without padding
     * @param requests the requests of the run
     * @param waitNanos how long the request was in the queue before the last request of the run
     */
    public void batch(int rows, int requests, long waitNanos) {
        synchronized (whole) {
            whole.batchRows = Math.max(whole.batchRows, rows);
            whole.batchRequests = Math.max(whole.batchRequests, requests);
            whole.batchWaitNanos += waitNanos;
        }
    }

    private record Part(String name, long nanos) {}

    /** The parts in the order in which they pass, until {@code now}, which is when the response is encoded. */
    private List<Part> parts(long now) {
        long decoded = decodedAt == 0 ? arrivedNanos : decodedAt;
        return List.of(
                new Part("total", now - arrivedNanos),
                new Part("decode", decoded - arrivedNanos),
                new Part("queue", queueNanos),
                new Part("batch_wait", batchWaitNanos),
                new Part("input", inputNanos),
                new Part("compute", computeNanos),
                new Part("output", outputNanos),
                new Part("encode", endedAt == 0 ? 0 : now - endedAt));
    }

    /**
     * The times as response parameters of Open Inference: microseconds as Long, under names such as
     * {@code nereid_queue_us}, and {@code nereid_batch_size}, {@code nereid_batch_requests}, {@code nereid_thread_changes}
     * and {@code nereid_cache_hit}.
     *
     * @param now the time at which the response is encoded, in nanoseconds of the server's clock
     */
    public Map<String, Object> parameters(long now) {
        synchronized (whole) {
            Map<String, Object> parameters = new LinkedHashMap<>();
            for (Part part : parts(now)) {
                parameters.put("nereid_" + part.name() + "_us", part.nanos() / 1_000);
            }
            parameters.put("nereid_batch_size", (long) batchRows);
            parameters.put("nereid_batch_requests", (long) batchRequests);
            parameters.put("nereid_thread_changes", (long) threadChanges);
            parameters.put("nereid_cache_hit", !computed);
            return parameters;
        }
    }

    /**
     * The times as the value of the W3C's header {@code Server-Timing}: milliseconds.
     *
     * @param now the time at which the response is encoded, in nanoseconds of the server's clock
     */
    public String serverTiming(long now) {
        synchronized (whole) {
            StringBuilder text = new StringBuilder(200);
            for (Part part : parts(now)) {
                text.append(part.name())
                        .append(String.format(Locale.ROOT, ";dur=%.3f, ", part.nanos() / NANOS_PER_MILLI));
            }
            text.append("batch;desc=\"").append(batchRows).append(" rows of ").append(batchRequests);
            text.append(" requests\", threads;desc=\"").append(threadChanges).append(" changes\"");
            return text.append(computed ? "" : ", cache;desc=\"hit\"").toString();
        }
    }

    @Override
    public void attribute(String name, String value) {
        RequestTrace other = trace;
        if (other != null) {
            other.attribute(name, value);
        }
    }

    @Override
    public boolean includesTensors() {
        RequestTrace other = trace;
        return other != null && other.includesTensors();
    }

    @Override
    public void tensors(String activity, List<Tensor> tensors) {
        RequestTrace other = trace;
        if (other != null) {
            other.tensors(activity, tensors);
        }
    }

    @Override
    public void model(String name, long version, String requestId) {
        RequestTrace other = trace;
        if (other != null) {
            other.model(name, version, requestId);
        }
    }

    @Override
    public RequestTrace child(String model) {
        RequestTrace other = trace;
        return new RequestTiming(other == null ? null : other.child(model), whole, arrivedNanos);
    }

    /** The id of the trace; empty without one, as a timing is not written anywhere. */
    @Override
    public String traceId() {
        RequestTrace other = trace;
        return other == null ? "" : other.traceId();
    }

    @Override
    public @Nullable String traceparent() {
        RequestTrace other = trace;
        return other == null ? null : other.traceparent();
    }

    @Override
    public void end() {
        RequestTrace other = trace;
        if (other != null) {
            other.end();
        }
    }
}
