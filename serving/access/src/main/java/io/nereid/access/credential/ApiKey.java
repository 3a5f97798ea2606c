// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An API key as the server knows it: without its secret, of which only a hash is kept. Immutable.
 *
 * <p>What a client sends is {@code nrd_<id>_<secret>}: the id finds the key, the secret has 192 random bits, so one round
 * of SHA-256 protects it: a slow hash helps against guessing, and there is nothing to guess.
 *
 * @param name the name in audit logs and metrics
 * @param id the public part, 12 hexadecimal digits
 * @param hash the SHA-256 of the whole key, in hexadecimal digits
 * @param roles the names of the key's roles
 * @param created when it was made
 * @param expires when it stops being valid; null for never
 * @param revoked when it was revoked; null when it is not
 */
public record ApiKey(
        String name,
        String id,
        String hash,
        List<String> roles,
        Instant created,
        @Nullable Instant expires,
        @Nullable Instant revoked) {
    static final String PREFIX = "nrd_";
    private static final int ID_BYTES = 6;
    private static final int SECRET_BYTES = 24;
    private static final HexFormat HEX = HexFormat.of();

    /** Copies the list. */
    public ApiKey {
        roles = List.copyOf(roles);
    }

    /**
     * A key with its secret, which is shown once.
     *
     * @param key the key to store
     * @param text what the client sends
     */
    public record Created(ApiKey key, String text) {}

    /** Makes a new key. */
    public static Created create(String name, List<String> roles, Instant now, @Nullable Instant expires) {
        SecureRandom random = new SecureRandom();
        byte[] id = new byte[ID_BYTES];
        byte[] secret = new byte[SECRET_BYTES];
        random.nextBytes(id);
        random.nextBytes(secret);
        String text = PREFIX + HEX.formatHex(id) + "_" + HEX.formatHex(secret);
        return new Created(
                new ApiKey(name, HEX.formatHex(id), HEX.formatHex(hash(text)), roles, now, expires, null), text);
    }

    /** The id in a text that a client sent; null when the text has not the form of a key. */
    static @Nullable String idOf(String text) {
        int from = PREFIX.length();
        int end = from + 2 * ID_BYTES;
        if (text.length() != end + 1 + 2 * SECRET_BYTES || !text.startsWith(PREFIX) || text.charAt(end) != '_') {
            return null;
        }
        return text.substring(from, end);
    }

    /** Whether a text is this key; takes the same time for every wrong one. */
    boolean matches(String text) {
        return MessageDigest.isEqual(hash(text), HEX.parseHex(hash));
    }

    /** Whether the key is valid at a moment. */
    public boolean validAt(Instant now) {
        return revoked == null && (expires == null || now.isBefore(expires));
    }

    private static byte[] hash(String text) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java runtime has SHA-256", e);
        }
    }
}
