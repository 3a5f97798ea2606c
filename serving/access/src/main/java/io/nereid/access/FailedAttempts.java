// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access;

import io.nereid.access.quota.TokenBucket;
import io.nereid.base.Clock;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts wrong credentials by address and logs them. An address that sends too many gets RESOURCE_EXHAUSTED in place of
 * UNAUTHENTICATED; valid credentials are accepted from it all the same, as a proxy is one address for many clients. Thread-safe.
 */
final class FailedAttempts {
    private static final Logger LOG = LoggerFactory.getLogger(FailedAttempts.class);

    /** Wrong tries from one address in a second, on average. */
    private static final double RATE = 5;
    /** More addresses than this share one limit. */
    private static final int MOST_ADDRESSES = 10_000;

    private static final String OTHERS = "(others)";
    private static final long LOG_NANOS = 10_000_000_000L;

    private final Clock clock;
    private final Map<String, Source> sources = new ConcurrentHashMap<>();

    FailedAttempts(Clock clock) {
        this.clock = clock;
    }

    /** The wrong tries from one address. */
    private static final class Source {
        final TokenBucket tries;
        volatile long loggedAt;
        volatile boolean logged;
        volatile long seen;

        Source(long now) {
            tries = new TokenBucket(RATE, now);
            seen = now;
        }
    }

    private static String addressOf(SocketAddress remote) {
        if (remote instanceof InetSocketAddress inet) {
            InetAddress address = inet.getAddress();
            return address == null ? inet.getHostString() : address.getHostAddress();
        }
        return "local";
    }

    /**
     * Counts a wrong try.
     *
     * @param what what was wrong, without a secret
     * @return 0, or after how many nanoseconds the address may try again when it tries too often
     */
    long failed(SocketAddress remote, String what) {
        long now = clock.nanos();
        String address = addressOf(remote);
        Source source = sources.get(address);
        if (source == null) {
            if (sources.size() >= MOST_ADDRESSES) {
                sources.values().removeIf(s -> now - s.seen > 60_000_000_000L);
            }
            String name = sources.size() < MOST_ADDRESSES ? address : OTHERS;
            source = sources.computeIfAbsent(name, a -> new Source(now));
        }
        source.seen = now;
        long wait = source.tries.take(1, now);
        if (!source.logged || now - source.loggedAt >= LOG_NANOS) {
            source.logged = true;
            source.loggedAt = now;
            LOG.warn("refused credentials from {}: {}", address, what);
        }
        return wait;
    }
}
