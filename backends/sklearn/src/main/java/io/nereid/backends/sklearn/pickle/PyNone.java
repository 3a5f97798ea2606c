// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

/** Python's {@code None}. Immutable. */
public enum PyNone {
    NONE
}
