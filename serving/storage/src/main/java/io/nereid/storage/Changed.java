// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

/** Something in a store changed while it was brought: ask anew what is there. */
final class Changed extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Changed(String what) {
        super(what, null, false, false);
    }
}
