// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import io.nereid.access.config.AccessConfig;
import io.nereid.access.config.Quota;
import io.nereid.access.credential.Principal;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.spi.InferenceEngine;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * The use of keys and models, counted against their quotas. A changed quota begins with fresh counts; an unchanged one
 * keeps them when the configuration is read again. Thread-safe.
 */
public final class QuotaTable {
    /** More names than this are counted under one, so that clients of many identities cannot fill the memory. */
    private static final int MOST_NAMES = 10_000;

    private static final String OTHERS = "(others)";

    private record Rejection(String key, String model, String quota) {}

    private final Clock clock;
    private final Map<String, CallerUse> callers = new ConcurrentHashMap<>();
    private final Map<String, QuotaLimiter> models = new ConcurrentHashMap<>();
    private final Map<String, ModelShares> shares = new ConcurrentHashMap<>();
    private final Map<Rejection, LongAdder> rejections = new ConcurrentHashMap<>();
    private volatile AccessConfig config;

    /** Creates a table without counts. */
    public QuotaTable(AccessConfig config, Clock clock) {
        this.config = config;
        this.clock = clock;
    }

    /** Uses another configuration from now on. */
    public void configure(AccessConfig next) {
        config = next;
    }

    /** An engine that lets callers run what they may, within their quotas. */
    public InferenceEngine guard(InferenceEngine engine) {
        return new GuardedEngine(engine, this);
    }

    long nanos() {
        return clock.nanos();
    }

    /** The requests of one caller. Thread-safe. */
    private static final class CallerUse {
        /** The caller's name, or that under which callers beyond the limit count together. */
        final String name;

        final LongAdder requests = new LongAdder();
        volatile @Nullable QuotaLimiter limiter;
        /** The counts for the model of the last request: most callers use one. */
        volatile @Nullable Counts last;

        CallerUse(String name) {
            this.name = name;
        }
    }

    /**
     * What the requests of one caller for one model count against. Immutable.
     *
     * @param config the configuration that it was made from
     * @param quota the caller's quota that it was made from
     * @param caller counts against the caller's quota; null without one
     * @param shared counts against the model's quota; null without one
     * @param shares the requests of all callers for the model
     * @param share those of this caller
     */
    record Counts(
            AccessConfig config,
            Quota quota,
            String model,
            @Nullable QuotaLimiter caller,
            @Nullable QuotaLimiter shared,
            ModelShares shares,
            ModelShares.Share share) {
        /** Whether a quota needs the size of requests. */
        boolean bytes() {
            return caller != null && caller.countsBytes() || shared != null && shared.countsBytes();
        }

        /** Ends a request that was counted. */
        void end() {
            if (caller != null) {
                caller.end();
            }
            if (shared != null) {
                shared.end();
            }
            shares.end(share);
        }
    }

    /** Counts a request and returns what else it counts against. */
    Counts counts(Principal principal, String model) {
        CallerUse use = callers.get(principal.name());
        if (use == null) {
            use = callers.computeIfAbsent(callers.size() < MOST_NAMES ? principal.name() : OTHERS, CallerUse::new);
        }
        use.requests.increment();
        Counts last = use.last;
        if (last != null && last.config == config && last.quota == principal.quota() && last.model.equals(model)) {
            return last;
        }
        return resolve(use, principal, model);
    }

    private Counts resolve(CallerUse use, Principal principal, String model) {
        AccessConfig now = config;
        String name = shares.containsKey(model) || shares.size() < MOST_NAMES ? model : OTHERS;
        ModelShares among = shares.computeIfAbsent(name, m -> new ModelShares(clock));
        Quota ofModel = now.modelQuotas().isEmpty() ? null : now.modelQuota(model);
        Counts made = new Counts(
                now,
                principal.quota(),
                model,
                limiterOf(use, principal.quota()),
                ofModel == null ? null : limiterOfModel(model, ofModel),
                among,
                among.of(use.name));
        use.last = made;
        return made;
    }

    /** The counts of a caller against its quota; fresh ones after a change of the quota. */
    private @Nullable QuotaLimiter limiterOf(CallerUse use, Quota quota) {
        if (quota.isNone()) {
            return null;
        }
        synchronized (use) {
            QuotaLimiter known = use.limiter;
            // callers that count together have the first one's quota: with a change at each of them none would be kept
            if (known == null || !known.quota().equals(quota) && !use.name.equals(OTHERS)) {
                known = new QuotaLimiter(quota, nanos());
                use.limiter = known;
            }
            return known;
        }
    }

    private QuotaLimiter limiterOfModel(String model, Quota quota) {
        String name = models.containsKey(model) || models.size() < MOST_NAMES ? model : OTHERS;
        return models.compute(
                name,
                (n, before) ->
                        before != null && (n.equals(OTHERS) || before.quota().equals(quota))
                                ? before
                                : new QuotaLimiter(quota, nanos()));
    }

    ServingException refused(String key, String model, String of, QuotaLimiter.Refusal refusal) {
        Rejection rejection =
                rejections.size() < MOST_NAMES ? new Rejection(key, model, of) : new Rejection(OTHERS, OTHERS, of);
        rejections.computeIfAbsent(rejection, r -> new LongAdder()).increment();
        return GuardedEngine.exhausted(key, of, refusal);
    }

    /** Writes the counters by name of key. */
    public void writeMetrics(MetricsWriter page) {
        Map<String, CallerUse> sorted = new TreeMap<>(callers);
        page.family("nereid_access_requests_total", MetricType.COUNTER, "Inference requests by caller");
        sorted.forEach((key, use) -> page.sample(LabelSet.of("key", key), use.requests.sum()));
        page.family(
                "nereid_access_quota_rejections_total",
                MetricType.COUNTER,
                "Inference requests refused by a quota: of the key, of the model, or the key's fair share");
        rejections.forEach((r, count) -> page.sample(
                LabelSet.of("key", r.key()).with("model", r.model()).with("quota", r.quota()), count.sum()));
        page.family("nereid_access_requests_in_progress", MetricType.GAUGE, "Inference requests in progress by key");
        sorted.forEach((key, use) -> {
            QuotaLimiter limiter = use.limiter;
            if (limiter != null) {
                page.sample(LabelSet.of("key", key), limiter.running());
            }
        });
    }
}
