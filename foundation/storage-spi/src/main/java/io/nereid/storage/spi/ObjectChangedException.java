// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

/** An object changed in the store during its download: the fetch must list the store again. */
public final class ObjectChangedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param what the object, without secrets
     */
    public ObjectChangedException(String what) {
        super(what, null, false, false);
    }
}
