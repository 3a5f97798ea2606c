// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import io.nereid.access.credential.Principal;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * An engine that checks, for every request of a client, that the caller may run the model and is within its quota.
 * Protocols whose messages name the model are checked here, all others once more. A request without a caller is refused:
 * a protocol that forgets to say who calls must not open a way past the rules. Thread-safe.
 */
final class GuardedEngine implements InferenceEngine {
    private static final InferenceCall NOTHING = () -> {};
    private static final AtomicIntegerFieldUpdater<Counted> ENDED =
            AtomicIntegerFieldUpdater.newUpdater(Counted.class, "ended");

    private final InferenceEngine engine;
    private final QuotaTable quotas;

    GuardedEngine(InferenceEngine engine, QuotaTable quotas) {
        this.engine = engine;
        this.quotas = quotas;
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        // no further frame stays on the stack while the request runs: the compiler joins what is not too deep
        ResponseSink admitted = admit(request, sink);
        return admitted == null ? NOTHING : engine.infer(request, admitted);
    }

    /** The sink that ends the counts of the request; null when the request was refused. */
    private @Nullable ResponseSink admit(InferenceRequest request, ResponseSink sink) {
        Caller caller = request.caller();
        String model = request.model().model();
        if (caller == null) {
            return refuse(request, sink, ServingException.of(ErrorCode.PERMISSION_DENIED, "the request has no caller"));
        }
        if (!caller.may(Permission.INFER, model)) {
            return refuse(request, sink, caller.denied(Permission.INFER, model));
        }
        if (!(caller instanceof Principal principal)) {
            return sink;
        }
        QuotaTable.Counts counts = quotas.counts(principal, model);
        // requests of callers with credentials count for fair shares
        if (counts.caller() == null && counts.shared() == null && !principal.hasCredentials()) {
            return sink;
        }
        long now = quotas.nanos();
        String key = principal.name();
        ModelShares shares = counts.shares();
        if (!shares.fair(counts.share(), now)) {
            QuotaLimiter.Refusal refusal = new QuotaLimiter.Refusal("fair share", 1_000_000_000L);
            return refuse(request, sink, quotas.refused(key, model, "fair share", refusal));
        }
        QuotaLimiter mine = counts.caller();
        QuotaLimiter all = counts.shared();
        long size = counts.bytes() ? bytes(request) : 0;
        QuotaLimiter.Refusal refusal = mine == null ? null : mine.begin(size, now);
        if (refusal != null) {
            return refuse(request, sink, quotas.refused(key, model, "key", refusal));
        }
        refusal = all == null ? null : all.begin(size, now);
        if (refusal != null) {
            shares.saturated(counts.share());
            if (mine != null) {
                mine.end();
            }
            return refuse(request, sink, quotas.refused(key, model, "model", refusal));
        }
        shares.begin(counts.share());
        return new Counted(sink, counts);
    }

    private static long bytes(InferenceRequest request) {
        long size = 0;
        for (Tensor input : request.inputs()) {
            size += input.byteLength();
        }
        return size;
    }

    private static @Nullable ResponseSink refuse(InferenceRequest request, ResponseSink sink, ServingException e) {
        request.release();
        sink.fail(e);
        return null;
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return engine.metadata(model);
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return engine.config(model);
    }

    /** Ends the counts of a request with its last response. Thread-safe, as a sink is. */
    private static final class Counted implements ResponseSink {
        private final ResponseSink sink;
        private final QuotaTable.Counts counts;
        private volatile int ended;

        Counted(ResponseSink sink, QuotaTable.Counts counts) {
            this.sink = sink;
            this.counts = counts;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (last && ended == 0 && ENDED.compareAndSet(this, 0, 1)) {
                counts.end();
            }
            sink.next(response, last);
        }

        @Override
        public void fail(ServingException e) {
            if (e.code() == ErrorCode.UNAVAILABLE && e.retryAfter() != null
                    || e.code() == ErrorCode.RESOURCE_EXHAUSTED) {
                counts.shares().saturated(counts.share());
            }
            if (ended == 0 && ENDED.compareAndSet(this, 0, 1)) {
                counts.end();
            }
            sink.fail(e);
        }
    }

    /** A refusal for a quota, in the words of a client. */
    static ServingException exhausted(String key, String of, QuotaLimiter.Refusal refusal) {
        Duration wait = Duration.ofNanos(refusal.retryNanos());
        String limit = of.equals("fair share")
                ? "the model is saturated and '" + key + "' has more than its fair share of the requests in progress"
                : "the quota of " + (of.equals("key") ? "'" + key + "'" : "the model") + " is used up: "
                        + refusal.limit();
        return ServingException.retryable(
                ErrorCode.RESOURCE_EXHAUSTED,
                limit,
                "try again in " + Math.max(1, wait.plusMillis(999).toSeconds()) + " s",
                wait);
    }
}
