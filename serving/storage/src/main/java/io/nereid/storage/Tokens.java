// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/** Tokens that stores gave, until they expire; kept in memory only. Thread-safe: one lock, not held while asking. */
final class Tokens {
    private static final int MOST = 256;
    private static final long EARLY_MILLIS = 60_000;

    private final Clock clock;
    private final Map<String, Token> tokens = new LinkedHashMap<>(16, 0.75f, true);

    Tokens(Clock clock) {
        this.clock = clock;
    }

    /**
     * A token. Immutable; never shown.
     *
     * @param value what is sent
     * @param expiresMillis when it ends, in wall-clock milliseconds
     */
    record Token(String value, long expiresMillis) {
        @Override
        public String toString() {
            return "Token[***]";
        }
    }

    /** The token for an identity (a text that is digested, not kept), asked for if there is none that still holds. */
    Token of(String identity, Supplier<Token> ask) {
        String key = Digests.sha256(identity);
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

    long millis() {
        return clock.millis();
    }
}
