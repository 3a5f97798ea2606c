// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

import io.nereid.base.ServingException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The effect of a new model list on one model. Immutable.
 *
 * @param model the model's name
 * @param action what happens to the model
 * @param load versions to load, as far as they are stored now, ascending
 * @param unload versions to unload, ascending
 * @param error why the model does not serve as configured; null when it does, or when that is not known yet
 */
public record ModelListChange(
        String model,
        Action action,
        List<Long> load,
        List<Long> unload,
        @Nullable ServingException error) {
    /** What happens to a model. */
    public enum Action {
        /** The model is new in the list. */
        ADDED,
        /** The model was in the list with other settings. */
        CHANGED,
        /** Nothing changes. */
        KEPT,
        /** The model is no longer in the list. */
        REMOVED
    }
}
