// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.BuiltInModel;
import io.nereid.backends.java.SimulatedDelays;
import io.nereid.base.ServingException;
import io.nereid.samples.model.IdentityModel;
import io.nereid.samples.model.TritonIdentityModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code identity}, as Triton's: returns {@code INPUT<i>} as {@code OUTPUT<i>}, with zeros for an absent
 * optional input, and four fixed parameters in every response. Configuration parameters: {@code creation_delay_sec},
 * {@code execute_delay_ms}, {@code instance_wise_delay_multiplier}, {@code absent_outputs} ({@code zeros}, or
 * {@code omitted}: a response has no output whose input is absent) and {@code response_parameters}; with {@code false}
 * for the last, responses have no parameters and the model runs on batches of tensors, as most models do. Thread-safe.
 */
public final class IdentityBackend extends SampleBackend {
    private static final String RESPONSE_PARAMETERS = "response_parameters";

    /** For {@link java.util.ServiceLoader}. */
    public IdentityBackend() {
        super("identity");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        IdentityModel model = new IdentityModel(IdentityModel.complete(config));
        String text = config.parameters().getOrDefault(RESPONSE_PARAMETERS, "true");
        return switch (text) {
            case "true" ->
                new TritonIdentityModel(
                        model,
                        config.parameters().getOrDefault("absent_outputs", "").equals("omitted"));
            case "false" -> model;
            default ->
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' has " + RESPONSE_PARAMETERS + " '" + text
                                + "' (expected: true or false)",
                        "correct the parameter");
        };
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        BackendModel model = super.load(source, config, context);
        SimulatedDelays.read(config).create(config.name());
        return model;
    }
}
