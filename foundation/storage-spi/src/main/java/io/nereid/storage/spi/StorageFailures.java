// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * Makes exceptions of a store's failures: one code for each status, and no secrets in messages. Immutable.
 *
 * @param settings the settings whose secrets are replaced
 * @param attempts how often a request was sent
 */
public record StorageFailures(StorageSettings settings, int attempts) {
    /**
     * The exception for a status of HTTP.
     *
     * @param what the object or URI, without secrets
     * @param reason the store's error code or message; empty without one
     * @param remedy the next step; null for the usual one
     */
    public ServingException ofStatus(String what, int status, String reason, @Nullable String remedy) {
        ErrorCode code = switch (status) {
            case 401 -> ErrorCode.UNAUTHENTICATED;
            case 403 -> ErrorCode.PERMISSION_DENIED;
            case 404, 410 -> ErrorCode.NOT_FOUND;
            case 412, 416 -> ErrorCode.ABORTED;
            case 408, 425, 429 -> ErrorCode.UNAVAILABLE;
            default -> status >= 500 ? ErrorCode.UNAVAILABLE : ErrorCode.FAILED_PRECONDITION;
        };
        String next = remedy;
        if (next == null && (status == 401 || status == 403)) {
            next = "check the credentials of the service, and what they may read";
        }
        String because = reason.isEmpty() ? "" : " " + reason;
        return ServingException.of(code, settings.redact(what + ": the store answered " + status + because), next);
    }

    /** As {@link #ofStatus}, for an object that was to be written. */
    public ServingException ofWriting(String what, int status, String reason) {
        String remedy = status == 401 || status == 403
                ? "check the credentials of the logger, and what they may write"
                : status == 404 ? "create the bucket or container" : null;
        return ofStatus(what, status, reason, remedy);
    }

    /** The exception for a store that cannot be reached; UNAVAILABLE. */
    public ServingException unreachable(String what, IOException e) {
        String why = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        String kind = e.getClass().getSimpleName();
        boolean plain = e.getClass() == IOException.class || why.equals(kind);
        return ServingException.wrap(
                ErrorCode.UNAVAILABLE,
                settings.redact(what + ": the store cannot be reached"
                        + (attempts == 1 ? "" : " after " + attempts + " attempts") + ": "
                        + (plain ? why : kind + " " + why)),
                e);
    }

    /** Whether a status permits a retry. */
    public static boolean isRetryable(int status) {
        return status == 408 || status == 425 || status == 429 || status >= 500 && status != 501 && status != 505;
    }

    /** Does not show settings. */
    @Override
    public String toString() {
        return "StorageFailures[" + settings + "]";
    }
}
