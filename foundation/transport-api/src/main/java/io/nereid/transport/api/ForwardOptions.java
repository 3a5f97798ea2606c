// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import java.time.Duration;
import java.util.List;

/**
 * Options of a forwarded request. Immutable.
 *
 * @param timeout the longest time until the response is complete; zero for no limit
 * @param mostBytes the largest response that is collected
 * @param added headers to set; they replace the client's headers of the same name
 */
public record ForwardOptions(Duration timeout, long mostBytes, List<UpstreamClient.Header> added) {
    /** One minute, 64 MiB, no headers. */
    public static final ForwardOptions DEFAULT = new ForwardOptions(Duration.ofMinutes(1), 64L << 20, List.of());
}
