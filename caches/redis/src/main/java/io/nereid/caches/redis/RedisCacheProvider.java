// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.caches.redis;

import io.nereid.backend.CacheStore;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.base.Clock;
import java.util.Map;

/**
 * The provider of the response cache in Redis: {@code --cache-config redis,host=H,port=6379}, with {@code user},
 * {@code password} (or the environment's {@code TRITONCACHE_REDIS_USERNAME} and {@code TRITONCACHE_REDIS_PASSWORD}),
 * {@code db}, {@code pool_size} connections, and in milliseconds {@code connect_timeout}, {@code socket_timeout} and
 * {@code wait_timeout}. Immutable.
 */
public final class RedisCacheProvider implements CacheStoreProvider {
    /** Found through {@link java.util.ServiceLoader}. */
    public RedisCacheProvider() {}

    @Override
    public String name() {
        return "redis";
    }

    @Override
    public CacheStore open(Map<String, String> settings) {
        RedisCacheStore store = new RedisCacheStore(RedisSettings.of(settings, System.getenv()), Clock.system());
        store.probe();
        return store;
    }
}
