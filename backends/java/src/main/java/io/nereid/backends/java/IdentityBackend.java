// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/**
 * Triton's identity model, {@code backend: "identity"}: {@code INPUT<i>} comes back as {@code OUTPUT<i>}, an optional
 * input that was left out as zeros, with four fixed parameters in every answer. Parameters of the configuration:
 * {@code creation_delay_sec}, {@code execute_delay_ms} and {@code instance_wise_delay_multiplier}. Thread-safe.
 */
public final class IdentityBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public IdentityBackend() {
        super("identity");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Delays delays = Delays.read(config);
        ModelConfig complete = IdentityModel.complete(config);
        delays.create(config.name());
        return new LoadedJavaModel(
                complete, name(), name(), new EchoModel(new IdentityModel(complete)), delays, () -> {});
    }
}
