// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

import io.nereid.spi.ServableState;
import java.util.List;
import java.util.Map;

/**
 * The states of one model's versions. Immutable.
 *
 * @param model the model's name
 * @param versions by descending version; empty when the model was never loaded
 * @param labels the current meaning of its version labels, by name
 */
public record ModelStatus(String model, List<ServableState> versions, Map<String, VersionLabel> labels) {
    /** The status of a model without labels. */
    public ModelStatus(String model, List<ServableState> versions) {
        this(model, versions, Map.of());
    }
}
