// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

/**
 * A limit on use. 0 stands for unlimited. Immutable.
 *
 * @param requestsPerSecond inference requests that may begin in a second, on average; as many may begin at once
 * @param concurrentRequests inference requests that may be in progress at the same time
 * @param bytesPerSecond bytes of input tensors in a second, on average
 */
public record Quota(double requestsPerSecond, int concurrentRequests, long bytesPerSecond) {
    /** No limit. */
    public static final Quota NONE = new Quota(0, 0, 0);

    /** Whether nothing is limited. */
    public boolean isNone() {
        return equals(NONE);
    }
}
