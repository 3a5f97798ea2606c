// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.backend.CacheStore;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The response cache for one load of one version. Other loads do not see its local entries, so a reload starts with an
 * empty cache. Thread-safe.
 */
public final class VersionResponseCache implements AutoCloseable {
    private final byte[] prefix;
    private final byte[] storePrefix;
    private final Hash128 hash;
    private final @Nullable LocalResponseCache local;
    private final @Nullable CacheStore store;
    private final LongConsumer missed;
    private final Clock clock;

    /**
     * Creates the cache of one load.
     *
     * @param fingerprint identifies what the version was loaded from
     * @param missed receives the duration of each miss: lookup plus insertion
     */
    VersionResponseCache(
            ServableId id,
            String fingerprint,
            Hash128 hash,
            @Nullable LocalResponseCache local,
            @Nullable CacheStore store,
            LongConsumer missed,
            Clock clock) {
        this.prefix = CacheKey.prefix(id.model(), id.version(), fingerprint);
        this.storePrefix = ("nereid:" + id.model() + ":" + id.version() + ":").getBytes(StandardCharsets.UTF_8);
        this.hash = hash;
        this.local = local;
        this.store = store;
        this.missed = missed;
        this.clock = clock;
    }

    /** Completes a job from the cache, or runs {@code compute}, on this thread or on one of the store's. */
    public void serve(CacheableJob job, Runnable compute) {
        long from = clock.nanos();
        CacheKey key = CacheKey.of(prefix, job.request(), hash);
        if (local != null) {
            CachedResponse answer = local.get(key);
            long took = clock.nanos() - from;
            if (answer != null) {
                job.cached(answer.outputs(), answer.parameters(), took);
                return;
            }
            LocalResponseCache cache = local;
            job.cacheWriter((outputs, parameters) -> {
                long since = clock.nanos();
                cache.put(this, key, outputs, parameters);
                missed.accept(took + clock.nanos() - since);
            });
        } else if (store != null) {
            ask(job, key, store, from, compute);
            return;
        }
        compute.run();
    }

    private void ask(CacheableJob job, CacheKey key, CacheStore remote, long from, Runnable compute) {
        byte[] name = name(key);
        remote.get(name).whenComplete((bytes, e) -> {
            CachedResponse answer = bytes == null ? null : CachedResponse.decode(bytes);
            long took = clock.nanos() - from;
            if (answer != null) {
                job.cached(answer.outputs(), answer.parameters(), took);
                return;
            }
            job.cacheWriter((outputs, parameters) -> {
                keep(remote, name, outputs, parameters, took);
            });
            try {
                compute.run();
            } catch (RuntimeException refused) {
                job.fail(ServingException.from(refused));
            }
        });
    }

    private void keep(
            CacheStore remote, byte[] name, List<Tensor> outputs, Map<String, Object> parameters, long lookupNanos) {
        long since = clock.nanos();
        byte[] bytes = CachedResponse.encode(outputs, parameters);
        if (bytes != null) {
            remote.put(name, bytes);
        }
        missed.accept(lookupNanos + clock.nanos() - since);
    }

    private byte[] name(CacheKey key) {
        byte[] digest = HexFormat.of().formatHex(key.digest()).getBytes(StandardCharsets.US_ASCII);
        byte[] name = new byte[storePrefix.length + digest.length];
        System.arraycopy(storePrefix, 0, name, 0, storePrefix.length);
        System.arraycopy(digest, 0, name, storePrefix.length, digest.length);
        return name;
    }

    /**
     * Removes every local entry, because the version was unloaded or replaced by another load. Entries in an external
     * store remain for other servers; another load does not find them, because the key contains the fingerprint.
     */
    @Override
    public void close() {
        if (local != null) {
            local.purge(this);
        }
    }
}
