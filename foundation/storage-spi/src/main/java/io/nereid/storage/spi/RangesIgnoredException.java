// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import java.io.IOException;

/** A store answers a range request with the whole object. The server then reads every object as a whole. */
public final class RangesIgnoredException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Creates the exception. */
    public RangesIgnoredException() {
        super("the store ignores ranges");
    }
}
