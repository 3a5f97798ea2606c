// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.protocol;

import java.util.Map;

/**
 * One attempt of a call, for a protocol. Immutable.
 *
 * @param headers the headers to send, names in lower case
 * @param deadlineNanos when the call must have ended, of {@link io.nereid.base.Clock#nanos}; {@link #NONE} for never
 */
public record CallContext(Map<String, String> headers, long deadlineNanos) {
    /** No deadline. */
    public static final long NONE = Long.MAX_VALUE;
}
