// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.nereid.backend.CacheStore;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.lang.management.ManagementFactory;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The server's response cache: in memory ({@code local,size=BYTES}), or in an external store from a
 * {@link CacheStoreProvider}. Only models whose configuration enables it use it. Thread-safe.
 */
public final class ResponseCache implements AutoCloseable {
    private final Hash128 hash;
    private final @Nullable LocalResponseCache local;
    private final @Nullable CacheStore store;
    private final Clock clock;
    private final long process = new SecureRandom().nextLong();
    private final AtomicLong loads = new AtomicLong();

    private ResponseCache(Hash128 hash, @Nullable LocalResponseCache local, @Nullable CacheStore store, Clock clock) {
        this.hash = hash;
        this.local = local;
        this.store = store;
        this.clock = clock;
    }

    /** Creates an in-memory cache with the given hash function. */
    public static ResponseCache local(long bytes, Hash128 hash, Clock clock) {
        return new ResponseCache(hash, new LocalResponseCache(bytes), null, clock);
    }

    /** Creates a cache on an external store. */
    static ResponseCache remote(CacheStore store, Clock clock) {
        return new ResponseCache(Hash128.seeded(0), null, store, clock);
    }

    /** The external caches on the class path. */
    public static List<CacheStoreProvider> onClassPath() {
        List<CacheStoreProvider> found = new ArrayList<>();
        ServiceLoader.load(CacheStoreProvider.class).forEach(found::add);
        return found;
    }

    /**
     * Creates the cache with this name.
     *
     * @param external the available external caches
     * @throws ServingException INVALID_ARGUMENT for an unknown name, or an unknown, missing or invalid setting
     */
    public static ResponseCache open(
            String name, Map<String, String> settings, List<CacheStoreProvider> external, Clock clock) {
        if (name.equals("local")) {
            return local(size(settings), Hash128.seeded(new SecureRandom().nextLong()), clock);
        }
        List<String> known = new ArrayList<>(List.of("local"));
        for (CacheStoreProvider provider : external) {
            if (provider.name().equals(name)) {
                return remote(provider.open(settings), clock);
            }
            known.add(provider.name());
        }
        throw ServingException.invalidArgument(
                "unknown response cache '" + name + "'", "this server has " + String.join(", ", known));
    }

    private static long size(Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (!key.equals("size")) {
                throw ServingException.invalidArgument(
                        "the local response cache has no setting '" + key + "'", "it has size, in bytes");
            }
        }
        String size = settings.get("size");
        if (size == null) {
            throw ServingException.invalidArgument(
                    "the local response cache needs a size", "for example --cache-config local,size=104857600");
        }
        long bytes;
        try {
            bytes = Long.parseLong(size.trim());
        } catch (NumberFormatException e) {
            bytes = 0;
        }
        if (bytes <= 0) {
            throw ServingException.invalidArgument(
                    "the size of the local response cache is '" + size + "' (expected: a number of bytes above 0)");
        }
        long most = outsideHeap();
        if (bytes > most / 4 * 3) {
            throw ServingException.invalidArgument(
                    "the size of the local response cache is " + bytes
                            + " bytes (expected: at most three quarters of the " + most
                            + " bytes that this Java may use outside its heap, as requests need the rest)",
                    "give a smaller size, or a larger -XX:MaxDirectMemorySize");
        }
        return bytes;
    }

    /** The limit of off-heap (direct) memory of this JVM. */
    private static long outsideHeap() {
        HotSpotDiagnosticMXBean machine = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        long given = machine == null
                ? 0
                : Long.parseLong(machine.getVMOption("MaxDirectMemorySize").getValue());
        return given > 0 ? given : Runtime.getRuntime().maxMemory();
    }

    /**
     * Returns the cache for one load of a version; null for a model whose responses are not cached.
     *
     * @param missed receives the duration of each miss
     */
    public @Nullable VersionResponseCache of(
            ServableId id, ModelConfig config, String fingerprint, LongConsumer missed) {
        if (!config.responseCache() || config.decoupled() || config.sequence() != null) {
            return null;
        }
        // an ensemble's fingerprint does not cover its composing models, so another load must not see its entries
        boolean alone = local != null || config.ensemble() != null;
        String load = alone ? fingerprint + "#" + process + "-" + loads.incrementAndGet() : fingerprint;
        return new VersionResponseCache(id, load, hash, local, store, missed, clock);
    }

    /** Statistics for the metrics endpoint: value by name. */
    public Map<String, Long> statistics() {
        return local != null ? local.figures() : store != null ? store.statistics() : Map.of();
    }

    @Override
    public void close() {
        if (local != null) {
            local.close();
        }
        if (store != null) {
            store.close();
        }
    }
}
