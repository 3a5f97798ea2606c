// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.repository.PlacedModels.PlacedModel;
import java.util.List;
import java.util.Map;

/**
 * The engine as far as workloads need it: {@code placed::place} of a {@link io.nereid.repository.PlacedModels} that the engine
 * has as a source. How the models fare is told to {@link LocalInfrastructure#modelState}. Called by one thread at a time.
 */
@FunctionalInterface
public interface Models {
    /**
     * Serves these models and no others; may read their directories.
     *
     * @return the names in the engine by the name of each placed model: its own, or one for each model of a repository
     */
    Map<String, List<String>> place(List<PlacedModel> all);
}
