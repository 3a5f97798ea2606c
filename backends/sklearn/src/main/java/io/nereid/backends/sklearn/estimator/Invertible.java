// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

/** A transformer with {@code inverse_transform}. Immutable. */
public interface Invertible {
    /** The table that the transformer would convert to this one. */
    DataTable inverse(DataTable table);
}
