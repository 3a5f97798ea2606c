// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.spi;

import io.nereid.control.local.LocalInfrastructure;
import io.nereid.repository.ManagedModel;
import java.util.List;
import java.util.Map;

/**
 * The engine, as the control plane sees it: a consumer of the complete list of models to serve. The engine reports each
 * model's state through {@link LocalInfrastructure#modelState}. Called by one thread at a time.
 */
@FunctionalInterface
public interface EngineModels {
    /**
     * Serves exactly these models and unloads all others. May block: it can read the models' directories.
     *
     * @return the names in the engine, by the name of each given model: its own, or one for each model of a repository
     */
    Map<String, List<String>> place(List<ManagedModel> all);
}
