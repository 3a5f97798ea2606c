// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ServingException;

/**
 * A model of a pool. Immutable.
 *
 * @param name its name, unique in the pool
 * @param declaredBytes the memory that it is expected to use, until a load has measured it
 * @param pinned whether it is never evicted
 */
public record PooledModel(String name, long declaredBytes, boolean pinned) {
    /**
     * Creates a model.
     *
     * @throws ServingException INVALID_ARGUMENT for an empty name or a size that is not positive
     */
    public PooledModel {
        if (name.isEmpty() || declaredBytes <= 0) {
            throw ServingException.invalidArgument(
                    "model '" + name + "' declares " + declaredBytes + " bytes (expected a name and a positive size)",
                    "declare the memory that the model needs, for example 64Mi");
        }
    }
}
