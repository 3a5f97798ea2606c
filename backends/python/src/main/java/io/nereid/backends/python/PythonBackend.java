// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.python.PythonModel.Plan;
import io.nereid.base.ServingException;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Runs models that are written in Python: a file {@code model.py} with a class {@code TritonPythonModel}, as in
 * Triton's Python backend. Every model instance is a process of its own, so instances do not share an interpreter lock,
 * and a crash ends one instance only. A directory that MLflow saved as a Python function, whose file {@code MLmodel} is
 * the model's file, is run with {@code mlflow.pyfunc}. Stateless, therefore thread-safe.
 *
 * <pre>{@code
 * # models/add_one/1/model.py
 * import triton_python_backend_utils as pb_utils
 *
 * class TritonPythonModel:
 *     def execute(self, requests):
 *         responses = []
 *         for request in requests:
 *             x = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
 *             responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", x + 1)]))
 *         return responses
 * }</pre>
 */
public final class PythonBackend implements Backend {
    static final String NAME = "python";
    /** The file of a model directory of MLflow, which is run with {@code mlflow.pyfunc}. */
    static final String MLFLOW_FILE = "MLmodel";

    private static final String FILE = "model.py";

    /** For {@link java.util.ServiceLoader}. */
    public PythonBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(NAME);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(FILE);
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(PythonSettings.names());
    }

    /** Null: a missing interpreter is reported when a model is loaded, because each model may use another one. */
    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    static String file(ModelConfig config) {
        return config.modelFile().isEmpty() ? FILE : config.modelFile();
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path file = source.versionDirectory().resolve(file(config));
        if (!Files.isRegularFile(file)) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has no file " + file,
                    "put its Python file there, or name it with default_model_filename");
        }
        PythonSettings settings = PythonSettings.read(context);
        Path script = WorkerScript.extracted(context.scratch());
        Plan plan = new Plan(
                source.id(),
                file.endsWith(MLFLOW_FILE) ? script.resolveSibling(WorkerScript.MLFLOW_MODEL) : file,
                Objects.requireNonNullElse(file.toAbsolutePath().getParent(), source.versionDirectory()),
                source.modelDirectory(),
                settings.interpreter(source, config),
                script,
                settings,
                config.decoupled(),
                new CustomMetrics(),
                context.engine(),
                context.control());
        ModelConfig given = grouped(config);
        InstanceGroup group = given.instanceGroups().get(0);
        String label = group.name() + "_0";
        Worker first = PythonModel.connected(plan, label);
        PythonModel model;
        try {
            ModelConfig complete = completed(plan, given, first, context.autoComplete());
            if (complete.outputs().isEmpty()) {
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' names no outputs",
                        "write its inputs and outputs into config.pbtxt, or add them in auto_complete_config");
            }
            if (complete.decoupled() != plan.decoupled()) {
                // A worker is started for one transaction policy, so a change of it needs another worker.
                first.abandon();
                plan = plan.decoupled(complete.decoupled());
                first = PythonModel.connected(plan, label);
                first.command(
                        PythonModel.loading(plan, first, null), settings.loadTimeout(), "load " + plan.shownFile());
            }
            PythonModel.initialise(plan, first, complete, ModelConfigMapper.of(complete), group, label, 0);
            model = new PythonModel(plan, complete, first);
        } catch (RuntimeException e) {
            first.abandon();
            throw e;
        }
        try {
            model.fill();
            return model;
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    private static ModelConfig grouped(ModelConfig config) {
        ModelConfig.Builder builder = config.toBuilder().backend(NAME).platform("");
        if (config.maxBatchSize() < 0) {
            builder.maxBatchSize(0);
        }
        return (config.instances() > 0 ? builder : builder.instances(1)).build();
    }

    private static ModelConfig completed(Plan plan, ModelConfig config, Worker worker, boolean autoComplete) {
        Map<String, Object> reply = worker.command(
                PythonModel.loading(plan, worker, autoComplete ? ModelConfigMapper.of(config) : null),
                plan.settings().loadTimeout(),
                "load " + plan.shownFile());
        if (reply.containsKey("config")) {
            return ModelConfigMapper.completed(config, FrameCodec.map(reply.get("config")));
        }
        ModelConfigMapper.checkComplete(config);
        return config;
    }
}
