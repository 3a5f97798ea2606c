// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ServingException;
import java.io.IOException;

/** A store rejects a read for now, such as with the status 429 or 503. */
public final class StoreBusyException extends IOException {
    private static final long serialVersionUID = 1L;

    private final ServingException failure;
    private final long retryAfterMillis;

    /**
     * Creates the exception.
     *
     * @param failure what the fetch fails with when the attempts are used up
     * @param retryAfterMillis how long the store asks to wait; 0 when it does not say
     */
    public StoreBusyException(ServingException failure, long retryAfterMillis) {
        super(failure.getMessage(), failure);
        this.failure = failure;
        this.retryAfterMillis = retryAfterMillis;
    }

    /** What the fetch fails with when the attempts are used up. */
    public ServingException failure() {
        return failure;
    }

    /** How long the store asks to wait; 0 when it does not say. */
    public long retryAfterMillis() {
        return retryAfterMillis;
    }
}
