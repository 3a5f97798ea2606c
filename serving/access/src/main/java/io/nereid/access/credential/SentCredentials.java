// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.access.RequestHead;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.jspecify.annotations.Nullable;

/** The headers in which a request carries credentials. */
public final class SentCredentials {
    /** The header that carries a key or token, or a key as the password. */
    public static final String AUTHORIZATION = "authorization";

    /** The header that carries an API key, where {@code authorization} does not. */
    public static final String KEY_HEADER = "x-api-key";

    private SentCredentials() {}

    /** The key or token that a request carries: {@code Bearer}, {@code Basic} with it as the password, or x-api-key. */
    public static @Nullable String of(RequestHead head) {
        String given = head.header(AUTHORIZATION);
        if (given == null) {
            return head.header(KEY_HEADER);
        }
        if (given.regionMatches(true, 0, "Bearer ", 0, 7)) {
            return given.substring(7).strip();
        }
        if (given.regionMatches(true, 0, "Basic ", 0, 6)) {
            try {
                String pair =
                        new String(Base64.getDecoder().decode(given.substring(6).strip()), StandardCharsets.UTF_8);
                return pair.substring(pair.indexOf(':') + 1);
            } catch (IllegalArgumentException e) {
                throw unauthenticated("the header 'authorization' is not valid Base64");
            }
        }
        throw unauthenticated("the header 'authorization' has an unknown scheme (expected: Bearer or Basic)");
    }

    private static ServingException unauthenticated(String reason) {
        return ServingException.of(ErrorCode.UNAUTHENTICATED, reason);
    }
}
