// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/**
 * One aspired version, or the reason why it cannot be loaded. Immutable.
 *
 * @param id the version
 * @param loader loads the version; null when {@code error} is set
 * @param error why the version cannot be loaded; null when {@code loader} is set
 */
public record AspiredVersion(
        ServableId id, @Nullable Loader loader, @Nullable ServingException error) {
    /** A version that can be loaded. */
    public static AspiredVersion of(Loader loader) {
        return new AspiredVersion(loader.id(), loader, null);
    }

    /** A version that cannot be loaded. */
    public static AspiredVersion failed(ServableId id, ServingException error) {
        return new AspiredVersion(id, null, error);
    }
}
