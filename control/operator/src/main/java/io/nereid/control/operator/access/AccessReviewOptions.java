// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.List;

/**
 * How callers are reviewed by the API server. Immutable.
 *
 * @param mode which services it concerns
 * @param audiences the audiences of which a token must be for at least one; empty for the API server's own
 * @param cache how long an answer is used; at most {@link #LONGEST}
 */
public record AccessReviewOptions(Mode mode, List<String> audiences, Duration cache) {
    /** The longest time for which an answer may be used: a right that was taken away holds for so long. */
    public static final Duration LONGEST = Duration.ofMinutes(10);

    /** Which services need a caller that the API server knows. */
    public enum Mode {
        /** None; a service that asks for it is not served. */
        OFF,
        /** Those that ask for it by their annotation. */
        ANNOTATED,
        /** All but those whose annotation is {@code false}. */
        ALL
    }

    /**
     * Checks the values.
     *
     * @throws ServingException INVALID_ARGUMENT for a time out of range or an empty audience
     */
    public AccessReviewOptions {
        audiences = List.copyOf(audiences);
        if (cache.toMillis() < 1_000 || cache.compareTo(LONGEST) > 0) {
            throw ServingException.invalidArgument(
                    "answers of the API server about callers cannot be used for " + cache.toMillis()
                            + " ms (expected: from 1 s to " + LONGEST.toMinutes() + " minutes)",
                    "set --kubernetes-auth-cache");
        }
        if (audiences.stream().anyMatch(String::isBlank)) {
            throw ServingException.invalidArgument(
                    "an audience of tokens is empty (expected: names such as https://models.example)",
                    "set --kubernetes-audiences");
        }
    }
}
