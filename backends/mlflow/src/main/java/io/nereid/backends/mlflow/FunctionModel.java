// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelTraits;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.ModelConfig;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A model that is a Python function, which the backend {@code python} runs with {@code mlflow.pyfunc}. That backend
 * derives inputs and outputs from the signature; here are MLflow's facts, and the forms of tables that clients may send.
 * Thread-safe, as the model inside is.
 */
final class FunctionModel extends ForwardingModel {
    private final ModelTraits traits;

    private FunctionModel(BackendModel inside, ModelConfig config) {
        super(inside, config);
        this.traits = super.traits().toBuilder().takesTables(true).build();
    }

    /** Loads the model: its code runs in a process of the backend {@code python}. */
    static BackendModel load(
            ModelLocation source,
            ModelConfig config,
            BackendContext context,
            MlModel model,
            Backend python,
            List<Backend> backends) {
        BackendContext its = new BackendContext(
                context.cores(),
                context.scratch(),
                context.settingsByBackend().getOrDefault(python.name(), Map.of()),
                context.autoComplete(),
                context.engine(),
                context.control(),
                backends,
                context.settingsByBackend());
        BackendModel inside = python.load(
                source,
                config.toBuilder()
                        .backend(python.name())
                        .platform("")
                        .modelFile(MlModel.FILE)
                        .build(),
                its);
        Map<String, String> parameters = new HashMap<>(model.facts());
        parameters.putAll(config.parameters());
        parameters.put("mlflow_flavor", Flavor.FUNCTION);
        parameters.put(ModelMetadata.PYTHON_FUNCTION, "true");
        return new FunctionModel(
                inside,
                inside.config().toBuilder()
                        .backend(MlflowBackend.NAME)
                        .platform(MlflowBackend.NAME + "_" + Flavor.FUNCTION)
                        .modelFile(config.modelFile())
                        .parameters(Map.copyOf(parameters))
                        .build());
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }
}
