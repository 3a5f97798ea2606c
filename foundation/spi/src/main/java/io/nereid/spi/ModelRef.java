// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import org.jspecify.annotations.Nullable;

/**
 * What a client asked for. Immutable.
 *
 * @param model the model's name
 * @param version the version asked for, or {@link #ANY}
 * @param label the label asked for instead of a version, or null
 */
public record ModelRef(String model, long version, @Nullable String label) {
    /** No particular version: the highest available one. */
    public static final long ANY = -1;

    /** The highest available version of a model. */
    public static ModelRef latest(String model) {
        return new ModelRef(model, ANY, null);
    }

    /** One version of a model. */
    public static ModelRef exact(String model, long version) {
        return new ModelRef(model, version, null);
    }
}
