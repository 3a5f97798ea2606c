// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import org.jspecify.annotations.Nullable;

/** Measures configurations of a model: a server, an engine of this process, or a simulation. Confined to one thread. */
interface VariantTarget {
    /**
     * Gives the model a configuration, and measures it under a load.
     *
     * @param concurrency requests in flight at the same time
     * @return null when the measurement was interrupted
     * @throws io.nereid.base.ServingException when the model cannot be loaded with it
     */
    @Nullable VariantResult measure(ConfigVariant variant, int concurrency);
}
