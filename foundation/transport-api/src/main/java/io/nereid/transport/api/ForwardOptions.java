// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import java.time.Duration;
import java.util.List;

/**
 * Options of a forwarded request. Immutable.
 *
 * @param timeout the longest time until the response is complete; zero for no limit
 * @param maxBytes the largest response that is collected
 * @param headers headers to set; they replace the client's headers of the same name
 */
public record ForwardOptions(Duration timeout, long maxBytes, List<UpstreamClient.Header> headers) {
    /** One minute, 64 MiB, no headers. */
    public static final ForwardOptions DEFAULT = new ForwardOptions(Duration.ofMinutes(1), 64L << 20, List.of());
}
