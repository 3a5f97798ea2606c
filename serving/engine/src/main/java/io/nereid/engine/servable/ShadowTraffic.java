// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.lifecycle.ServableManager;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.metrics.Exemplar;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Counts the requests that name a version label, and sends copies of some of them to a shadow version, whose responses
 * are discarded. A copy shares the memory of the original's inputs. It never delays the original: it is submitted
 * afterwards, on a thread of its own, and it is dropped when too many copies are in flight or the shadow version's
 * queue is full. Thread-safe.
 */
public final class ShadowTraffic implements AutoCloseable {
    /** The most copies in flight; each one keeps its inputs in memory. */
    public static final int LIMIT = 256;

    /**
     * The labels of a counter.
     *
     * @param shadow whether the counted requests are copies
     */
    public record Key(String model, String label, long version, boolean shadow) implements Comparable<Key> {
        @Override
        public int compareTo(Key other) {
            int c = model.compareTo(other.model);
            c = c == 0 ? label.compareTo(other.label) : c;
            c = c == 0 ? Long.compare(version, other.version) : c;
            return c == 0 ? Boolean.compare(shadow, other.shadow) : c;
        }
    }

    /** Counts requests, and keeps a traced one as an example. Thread-safe. */
    public static final class Counter {
        private final LongAdder count = new LongAdder();
        private volatile @Nullable Exemplar exemplar;

        private void increment(@Nullable RequestTrace trace) {
            count.increment();
            if (trace != null && !trace.traceId().isEmpty()) {
                exemplar = new Exemplar(trace.traceId(), 1);
            }
        }

        public long sum() {
            return count.sum();
        }

        public @Nullable Exemplar exemplar() {
            return exemplar;
        }
    }

    private final ServableManager manager;
    private final RequestSubmitter submitter;
    private final ExecutorService executor = Threads.single("shadow");
    private final AtomicInteger inFlight = new AtomicInteger();
    private final Map<Key, Counter> requests = new ConcurrentHashMap<>();
    private final Map<Key, Counter> dropped = new ConcurrentHashMap<>();

    public ShadowTraffic(ServableManager manager, RequestSubmitter submitter) {
        this.manager = manager;
        this.submitter = submitter;
    }

    /** Submits a request that names a label, and perhaps a copy of it. Owns the handle and the request. */
    public InferenceCall submit(ServableHandle handle, InferenceRequest request, ResponseSink sink) {
        EngineServable servable = (EngineServable) handle.servable();
        count(requests, request.model(), servable, false, request.options().trace());
        // Not for sequences: only some requests of one would be copied, which the shadow version could not process.
        ServableHandle second = request.options().sequence() == null ? manager.shadow(request.model()) : null;
        if (second == null) {
            return submitter.submit(servable, handle, request, sink);
        }
        EngineServable shadow = (EngineServable) second.servable();
        // retain the inputs before the original is submitted, because its end may free them
        InferenceRequest copy = inFlight.incrementAndGet() > LIMIT ? null : copy(request);
        InferenceCall call = submitter.submit(servable, handle, request, sink);
        if (copy == null) {
            drop(request.model(), shadow, second);
        } else {
            try {
                executor.execute(() -> start(shadow, second, copy));
            } catch (RejectedExecutionException stopping) {
                copy.release();
                drop(request.model(), shadow, second);
            }
        }
        return call;
    }

    private static InferenceRequest copy(InferenceRequest request) {
        List<Tensor> inputs = new ArrayList<>(request.inputs().size());
        for (Tensor t : request.inputs()) {
            inputs.add(t.retainAs(t.name(), t.shape()));
        }
        Options o = request.options();
        return new InferenceRequest(
                request.model(),
                request.id(),
                inputs,
                request.outputs(),
                request.parameters(),
                request.deadlineNanos(),
                request.arrivedNanos(),
                new Options(o.priority(), o.timeoutNanos(), null, null, o.signature()));
    }

    private void start(EngineServable shadow, ServableHandle handle, InferenceRequest copy) {
        count(requests, copy.model(), shadow, true, null);
        var unused = submitter.submit(shadow, handle, copy, new ResponseSink() {
            @Override
            public void next(InferenceResponse response, boolean last) {
                response.close();
                if (last) {
                    inFlight.decrementAndGet();
                }
            }

            @Override
            public void fail(ServingException e) {
                inFlight.decrementAndGet();
                switch (e.code()) {
                    case UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED ->
                        count(dropped, copy.model(), shadow, true, null);
                    default -> {
                        // counted as a failure of the version itself
                    }
                }
            }
        });
    }

    private void drop(ModelRef model, EngineServable shadow, ServableHandle handle) {
        inFlight.decrementAndGet();
        count(dropped, model, shadow, true, null);
        handle.close();
    }

    private static void count(
            Map<Key, Counter> counts,
            ModelRef ref,
            EngineServable servable,
            boolean shadow,
            @Nullable RequestTrace trace) {
        ServableId id = servable.metadata().id();
        String label = ref.label() == null ? "" : ref.label();
        counts.computeIfAbsent(new Key(id.model(), label, id.version(), shadow), k -> new Counter())
                .increment(trace);
    }

    /** The number of requests so far. */
    public Map<Key, Counter> requests() {
        return new TreeMap<>(requests);
    }

    /** The number of copies that were not processed for lack of capacity. */
    public Map<Key, Counter> dropped() {
        return new TreeMap<>(dropped);
    }

    /** Stops the copying. */
    @Override
    public void close() {
        executor.shutdown();
    }
}
