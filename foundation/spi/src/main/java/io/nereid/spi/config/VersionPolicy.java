// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.List;

/**
 * Which of the stored versions are served. Immutable.
 *
 * @param kind the rule
 * @param count the number of versions, for {@link Kind#LATEST}
 * @param versions the version numbers, for {@link Kind#SPECIFIC}
 */
public record VersionPolicy(VersionPolicy.Kind kind, int count, List<Long> versions) {
    /** The highest version only. */
    public static final VersionPolicy LATEST = new VersionPolicy(VersionPolicy.Kind.LATEST, 1, List.of());

    /** The rules. */
    public enum Kind {
        /** The highest {@code count} versions. */
        LATEST,
        /** Every version. */
        ALL,
        /** The listed versions. */
        SPECIFIC
    }
}
