// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import org.jspecify.annotations.Nullable;

/**
 * A client's reference to a model: by name, and optionally by version number or version label. Immutable.
 *
 * @param model the model's name
 * @param version the requested version, or {@link #ANY}
 * @param label the requested version label instead of a version number, or null
 */
public record ModelRef(String model, long version, @Nullable String label) {
    /** No particular version: the highest available one is used. */
    public static final long ANY = -1;

    /** References the highest available version of a model. */
    public static ModelRef latest(String model) {
        return new ModelRef(model, ANY, null);
    }

    /** References one version of a model. */
    public static ModelRef exact(String model, long version) {
        return new ModelRef(model, version, null);
    }
}
