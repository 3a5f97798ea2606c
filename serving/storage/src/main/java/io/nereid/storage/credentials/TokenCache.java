// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.credentials;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.storage.object.ContentDigests;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A cache of tokens until they expire, in memory only. Thread-safe: one lock, which is not held during the request of a
 * token, so concurrent callers may request the same token twice.
 */
public final class TokenCache {
    private static final int MOST = 256;
    private static final long EARLY_MILLIS = 60_000;

    private final Clock clock;

    @GuardedBy("tokens") private final Map<String, Token> tokens = new LinkedHashMap<>(16, 0.75f, true);

    public TokenCache(Clock clock) {
        this.clock = clock;
    }

    /**
     * A token. Immutable; never shown.
     *
     * @param value the token's text
     * @param expiresMillis expiry, in wall-clock milliseconds
     */
    public record Token(String value, long expiresMillis) {
        @Override
        public String toString() {
            return "Token[***]";
        }
    }

    /** Returns the token for an identity, requested if absent or expired. Only a digest of the identity is kept. */
    public Token of(String identity, Supplier<Token> ask) {
        String key = ContentDigests.sha256(identity);
        synchronized (tokens) {
            Token known = tokens.get(key);
            if (known != null && known.expiresMillis() - EARLY_MILLIS > clock.millis()) {
                return known;
            }
        }
        Token fresh = ask.get();
        synchronized (tokens) {
            tokens.put(key, fresh);
            if (tokens.size() > MOST) {
                tokens.remove(tokens.keySet().iterator().next());
            }
        }
        return fresh;
    }

    public long millis() {
        return clock.millis();
    }
}
