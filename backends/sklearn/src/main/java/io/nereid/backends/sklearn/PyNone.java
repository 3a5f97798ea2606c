// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

/** Python's {@code None}. Immutable. */
enum PyNone {
    NONE
}
