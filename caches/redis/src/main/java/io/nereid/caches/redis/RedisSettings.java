// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.caches.redis;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Address, credentials, pool size and timeouts of the connection to a Redis server. Immutable.
 *
 * @param user null for the server's default user
 * @param password null for none
 * @param poolSize number of connections and of threads that use them
 * @param waitTimeoutMillis how long a lookup waits for a free connection before it counts as a miss
 */
record RedisSettings(
        String host,
        int port,
        @Nullable String user,
        @Nullable String password,
        int db,
        int poolSize,
        int connectTimeoutMillis,
        int socketTimeoutMillis,
        int waitTimeoutMillis) {
    private static final List<String> KNOWN = List.of(
            "host",
            "port",
            "user",
            "password",
            "db",
            "pool_size",
            "connect_timeout",
            "socket_timeout",
            "wait_timeout",
            "tls_enabled");

    /**
     * Parses the settings of {@code --cache-config}.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown setting, an invalid value, or a missing host
     */
    static RedisSettings of(Map<String, String> settings, Map<String, String> environment) {
        for (String key : settings.keySet()) {
            if (!KNOWN.contains(key)) {
                throw ServingException.invalidArgument(
                        "the redis cache has no setting '" + key + "'",
                        key.startsWith("tls_")
                                ? "TLS connections to Redis are not supported; use a tunnel"
                                : NameSuggestions.didYouMean(key, KNOWN, "it has " + String.join(", ", KNOWN)));
            }
        }
        if (Boolean.parseBoolean(settings.getOrDefault("tls_enabled", "false"))) {
            throw ServingException.invalidArgument(
                    "the redis cache has tls_enabled=true, but TLS connections to Redis are not supported",
                    "use a tunnel, or tls_enabled=false");
        }
        String host = settings.get("host");
        if (host == null || host.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the redis cache needs a host", "for example --cache-config redis,host=localhost,port=6379");
        }
        return new RedisSettings(
                host,
                number(settings, "port", 6379, 1, 65_535),
                settings.getOrDefault("user", environment.get("TRITONCACHE_REDIS_USERNAME")),
                settings.getOrDefault("password", environment.get("TRITONCACHE_REDIS_PASSWORD")),
                number(settings, "db", 0, 0, Integer.MAX_VALUE),
                number(settings, "pool_size", 4, 1, 256),
                number(settings, "connect_timeout", 1_000, 0, Integer.MAX_VALUE),
                number(settings, "socket_timeout", 1_000, 0, Integer.MAX_VALUE),
                number(settings, "wait_timeout", 1_000, 0, Integer.MAX_VALUE));
    }

    private static int number(Map<String, String> settings, String key, int otherwise, int least, int most) {
        String text = settings.get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            int value = Integer.parseInt(text.trim());
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument("the redis cache has " + key + "='" + text
                + "' (expected: a number from " + least + " to " + most + ")");
    }

    /** Returns the address, without credentials, for log messages. */
    @Override
    public String toString() {
        return host + ":" + port + "/" + db;
    }
}
