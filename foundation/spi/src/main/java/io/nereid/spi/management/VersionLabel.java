// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

import java.util.List;

/**
 * The meaning of a version label. Immutable.
 *
 * @param targets the versions that requests with this label are routed to, each with its weight; never empty
 * @param shadows versions that receive copies of requests, whose responses are measured and discarded. The weight
 *     is the fraction of the requests, 0 to 1
 */
public record VersionLabel(List<WeightedVersion> targets, List<WeightedVersion> shadows) {
    /** A label for one version. */
    public static VersionLabel of(long version) {
        return new VersionLabel(List.of(new WeightedVersion(version, 1)), List.of());
    }
}
