// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Calls that an operator can restrict together. Immutable. */
enum ApiGroup {
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

    /** As operators write it: {@code model-repository}. */
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
