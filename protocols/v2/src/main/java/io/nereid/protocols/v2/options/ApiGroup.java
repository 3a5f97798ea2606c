// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.options;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** A group of calls that an operator can restrict, as in Triton's {@code --http-restricted-api}. Immutable. */
public enum ApiGroup {
    HEALTH,
    METADATA,
    INFERENCE,
    SHARED_MEMORY,
    MODEL_CONFIG,
    MODEL_REPOSITORY,
    STATISTICS,
    TRACE,
    LOGGING;

    private static final List<String> NAMES =
            Arrays.stream(values()).map(ApiGroup::wireName).toList();

    /** The name in options, such as {@code model-repository}. */
    String wireName() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    static ApiGroup of(String wireName) {
        int at = NAMES.indexOf(wireName);
        if (at < 0) {
            throw ServingException.invalidArgument(
                    "unknown restricted api '" + wireName + "' (expected one of " + String.join(", ", NAMES) + ")");
        }
        return values()[at];
    }
}
