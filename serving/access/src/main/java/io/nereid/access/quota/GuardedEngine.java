// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import io.nereid.access.config.Quota;
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
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * An engine that checks, for every request of a client, that the caller may run the model and is within its quota.
 * Protocols whose messages name the model are checked here, all others once more. A request without a caller is refused:
 * a protocol that forgets to say who calls must not open a way past the rules. Thread-safe.
 */
final class GuardedEngine implements InferenceEngine {
    private static final InferenceCall NOTHING = () -> {};

    private final InferenceEngine engine;
    private final QuotaTable quotas;

    GuardedEngine(InferenceEngine engine, QuotaTable quotas) {
        this.engine = engine;
        this.quotas = quotas;
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        Caller caller = request.caller();
        String model = request.model().model();
        if (caller == null) {
            return refuse(request, sink, ServingException.of(ErrorCode.PERMISSION_DENIED, "the request has no caller"));
        }
        if (!caller.may(Permission.INFER, model)) {
            return refuse(request, sink, caller.denied(Permission.INFER, model));
        }
        if (!(caller instanceof Principal principal)) {
            return engine.infer(request, sink);
        }
        quotas.counted(principal.name());
        Quota own = principal.quota();
        Quota shared = quotas.ofModel(model);
        if (own.isNone() && shared == null && !quotas.shares(principal)) {
            return engine.infer(request, sink);
        }
        return limited(request, sink, principal, model, own, shared);
    }

    private InferenceCall limited(
            InferenceRequest request,
            ResponseSink sink,
            Principal principal,
            String model,
            Quota own,
            @Nullable Quota shared) {
        long now = quotas.nanos();
        long size = 0;
        for (Tensor input : request.inputs()) {
            size += input.byteLength();
        }
        String key = principal.name();
        ModelShares shares = quotas.sharesOf(model);
        if (!shares.fair(key, now)) {
            return refuse(
                    request,
                    sink,
                    quotas.refused(key, model, "fair share", new QuotaLimiter.Refusal("fair share", 1_000_000_000L)));
        }
        QuotaLimiter mine = own.isNone() ? null : quotas.limiterOfKey(key, own, now);
        if (mine != null) {
            QuotaLimiter.Refusal refusal = mine.begin(size, now);
            if (refusal != null) {
                return refuse(request, sink, quotas.refused(key, model, "key", refusal));
            }
        }
        QuotaLimiter all = shared == null ? null : quotas.limiterOfModel(model, shared, now);
        if (all != null) {
            QuotaLimiter.Refusal refusal = all.begin(size, now);
            if (refusal != null) {
                shares.saturated(key, now);
                if (mine != null) {
                    mine.end();
                }
                return refuse(request, sink, quotas.refused(key, model, "model", refusal));
            }
        }
        shares.begin(key);
        return engine.infer(request, new Counted(sink, mine, all, shares, key));
    }

    private static InferenceCall refuse(InferenceRequest request, ResponseSink sink, ServingException e) {
        request.release();
        sink.fail(e);
        return NOTHING;
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
    private final class Counted implements ResponseSink {
        private final ResponseSink sink;
        private final @Nullable QuotaLimiter key;
        private final @Nullable QuotaLimiter model;
        private final ModelShares shares;
        private final String name;
        private final AtomicBoolean ended = new AtomicBoolean();

        Counted(
                ResponseSink sink,
                @Nullable QuotaLimiter key,
                @Nullable QuotaLimiter model,
                ModelShares shares,
                String name) {
            this.sink = sink;
            this.key = key;
            this.model = model;
            this.shares = shares;
            this.name = name;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (last) {
                end();
            }
            sink.next(response, last);
        }

        @Override
        public void fail(ServingException e) {
            if (e.code() == ErrorCode.UNAVAILABLE && e.retryAfter() != null
                    || e.code() == ErrorCode.RESOURCE_EXHAUSTED) {
                shares.saturated(name, quotas.nanos());
            }
            end();
            sink.fail(e);
        }

        private void end() {
            if (ended.compareAndSet(false, true)) {
                if (key != null) {
                    key.end();
                }
                if (model != null) {
                    model.end();
                }
                shares.end(name);
            }
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
