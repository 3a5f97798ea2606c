// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.BuiltInModel;
import io.nereid.backends.java.LoadedJavaModel;
import io.nereid.backends.java.SimulatedDelays;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A backend with a single model, which does not need any files. The parameters {@code execute_delay_ms} and
 * {@code instance_wise_delay_multiplier} delay its runs. Thread-safe: has no state.
 */
abstract class SampleBackend implements Backend {
    private final String name;

    SampleBackend(String name) {
        this.name = name;
    }

    /** Creates the model and completes its configuration. */
    abstract BuiltInModel create(ModelConfig config);

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final List<String> platforms() {
        return List.of(name);
    }

    /** Returns an empty list, since the model does not need any files. */
    @Override
    public final List<String> defaultFiles() {
        return List.of();
    }

    @Override
    public final @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        BuiltInModel model = create(config);
        return new LoadedJavaModel(model.config(), name, name, model, SimulatedDelays.read(config), () -> {});
    }
}
