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
    private final Map<String, QuotaLimiter> keys = new ConcurrentHashMap<>();
    private final Map<String, QuotaLimiter> models = new ConcurrentHashMap<>();
    private final Map<String, ModelShares> shares = new ConcurrentHashMap<>();
    private final Map<String, LongAdder> requests = new ConcurrentHashMap<>();
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

    @Nullable Quota ofModel(String model) {
        return config.modelQuotas().isEmpty() ? null : config.modelQuota(model);
    }

    /** Whether requests of a caller count for fair shares: those with credentials do. */
    boolean shares(Principal principal) {
        return principal.hasCredentials();
    }

    ModelShares sharesOf(String model) {
        ModelShares known = shares.get(model);
        if (known != null) {
            return known;
        }
        String name = shares.size() < MOST_NAMES ? model : OTHERS;
        return shares.computeIfAbsent(name, m -> new ModelShares());
    }

    QuotaLimiter limiterOfKey(String key, Quota quota, long nowNanos) {
        return limiter(keys, key, quota, nowNanos);
    }

    QuotaLimiter limiterOfModel(String model, Quota quota, long nowNanos) {
        return limiter(models, model, quota, nowNanos);
    }

    private static QuotaLimiter limiter(Map<String, QuotaLimiter> all, String name, Quota quota, long nowNanos) {
        QuotaLimiter known = all.get(name);
        if (known != null && (known.quota() == quota || known.quota().equals(quota))) {
            return known;
        }
        if (known == null && all.size() >= MOST_NAMES) {
            return all.computeIfAbsent(OTHERS, n -> new QuotaLimiter(quota, nowNanos));
        }
        return all.compute(
                name,
                (n, before) ->
                        before != null && before.quota().equals(quota) ? before : new QuotaLimiter(quota, nowNanos));
    }

    void counted(String key) {
        LongAdder count = requests.get(key);
        if (count == null) {
            count = requests.computeIfAbsent(requests.size() < MOST_NAMES ? key : OTHERS, k -> new LongAdder());
        }
        count.increment();
    }

    ServingException refused(String key, String model, String of, QuotaLimiter.Refusal refusal) {
        Rejection rejection =
                rejections.size() < MOST_NAMES ? new Rejection(key, model, of) : new Rejection(OTHERS, OTHERS, of);
        rejections.computeIfAbsent(rejection, r -> new LongAdder()).increment();
        return GuardedEngine.exhausted(key, of, refusal);
    }

    /** Writes the counters by name of key. */
    public void writeMetrics(MetricsWriter page) {
        page.family("nereid_access_requests_total", MetricType.COUNTER, "Inference requests by caller");
        new TreeMap<>(requests).forEach((key, count) -> page.sample(LabelSet.of("key", key), count.sum()));
        page.family(
                "nereid_access_quota_rejections_total",
                MetricType.COUNTER,
                "Inference requests refused by a quota: of the key, of the model, or the key's fair share");
        rejections.forEach((r, count) -> page.sample(
                LabelSet.of("key", r.key()).with("model", r.model()).with("quota", r.quota()), count.sum()));
        page.family("nereid_access_requests_in_progress", MetricType.GAUGE, "Inference requests in progress by key");
        new TreeMap<>(keys).forEach((key, limiter) -> page.sample(LabelSet.of("key", key), limiter.running()));
    }
}
