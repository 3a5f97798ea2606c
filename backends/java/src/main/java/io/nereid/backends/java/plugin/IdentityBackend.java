// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.LoadedJavaModel;
import io.nereid.backends.java.SimulatedDelays;
import io.nereid.backends.java.samples.IdentityModel;
import io.nereid.backends.java.samples.TritonIdentityModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code identity}, as Triton's: returns {@code INPUT<i>} as {@code OUTPUT<i>}, with zeros for an absent
 * optional input, and four fixed parameters in every response. Configuration parameters: {@code creation_delay_sec},
 * {@code execute_delay_ms} and {@code instance_wise_delay_multiplier}. Thread-safe.
 */
public final class IdentityBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public IdentityBackend() {
        super("identity");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        SimulatedDelays delays = SimulatedDelays.read(config);
        ModelConfig complete = IdentityModel.complete(config);
        delays.create(config.name());
        return new LoadedJavaModel(
                complete, name(), name(), new TritonIdentityModel(new IdentityModel(complete)), delays, () -> {});
    }
}
