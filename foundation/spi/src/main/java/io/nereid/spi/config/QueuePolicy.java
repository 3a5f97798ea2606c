// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.time.Duration;

/**
 * Limits of a queue. Immutable.
 *
 * @param maxSize the most requests that may wait; 0 for no limit
 * @param defaultTimeout the longest wait of a request that sets no timeout; zero for no limit
 * @param allowTimeoutOverride whether a request may set its own timeout
 * @param onTimeout what happens to a request that has exceeded its timeout
 */
public record QueuePolicy(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride, TimeoutAction onTimeout) {
    /** No limits in this model: the server-wide limits apply. */
    public static final QueuePolicy DEFAULT = new QueuePolicy(0, Duration.ZERO, true);

    /** Limits that reject requests after their timeout. */
    public QueuePolicy(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride) {
        this(maxSize, defaultTimeout, allowTimeoutOverride, TimeoutAction.REJECT);
    }

    /** What happens to a request that has exceeded its timeout. */
    public enum TimeoutAction {
        /** The request fails. */
        REJECT,
        /** The request is served after all requests that have not exceeded their timeouts. */
        DELAY
    }
}
