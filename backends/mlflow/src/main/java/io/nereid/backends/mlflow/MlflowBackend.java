// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Serves MLflow model directories: reads {@code MLmodel}, and delegates the model inside to the backend of its flavor.
 * The columns of a signature become the model's inputs, with one value per row each; a signature of tensors determines
 * the types of inputs. Parameter:
 *
 * <ul>
 *   <li>{@code inputs}: {@code matrix} to expose the inputs of the model inside although the signature has columns
 *   <li>{@code flavor}: the flavor to serve, of those in the file, instead of the first supported one
 * </ul>
 *
 * <p>A model that is a Python function only is run by the backend {@code python} with {@code mlflow.pyfunc}: its code
 * runs, as that of a {@code model.py} does.
 *
 * Further parameters are passed to the other backend. For example, in {@code config.pbtxt}:
 *
 * <pre>{@code
 * backend: "mlflow"
 * parameters { key: "inputs" value { string_value: "matrix" } }
 * }</pre>
 *
 * <p>Thread-safe: immutable.
 */
public final class MlflowBackend implements Backend {
    static final String NAME = "mlflow";
    private static final String FEATURE_NAMES = "feature_names";
    private static final String MAX_ROWS = "default-max-batch-size";
    private static final int ROWS = 1 << 20;

    private final List<Backend> others;

    /** For {@link java.util.ServiceLoader}. */
    public MlflowBackend() {
        this(List.of());
    }

    /** With backends to delegate to when the context does not have one of that name. */
    MlflowBackend(List<Backend> others) {
        this.others = List.copyOf(others);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        List<String> platforms = new ArrayList<>(List.of(NAME));
        Flavor.BACKENDS.keySet().forEach(f -> platforms.add(NAME + "_" + f));
        return List.copyOf(platforms);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(MlModel.FILE);
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path directory = source.versionDirectory();
        MlModel model = MlModel.read(directory);
        Flavor flavor =
                Flavor.of(model, directory, config.name(), config.parameters().getOrDefault(Flavor.PARAMETER, ""));
        Backend backend = backend(flavor, config, context);
        if (flavor.function()) {
            return FunctionModel.load(source, config, context, model, backend, backends(context));
        }
        Loading loading = new Loading(source, config, context, backends(context), model, flavor, backend);
        if (!config.inputs().isEmpty()) {
            BackendModel adapted = loading.adapted();
            if (adapted.config().inputs().equals(config.inputs())) {
                return adapted;
            }
            adapted.close();
            return loading.asConfigured();
        }
        return loading.adapted();
    }

    private List<Backend> backends(BackendContext context) {
        return context.backends().isEmpty() ? others : context.backends();
    }

    private Backend backend(Flavor flavor, ModelConfig config, BackendContext context) {
        for (Backend backend : backends(context)) {
            if (backend.name().equals(flavor.backend())) {
                String unavailable = backend.unavailableReason();
                if (unavailable != null) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "model '" + config.name() + "' has the flavor '" + flavor.name() + "', and the backend '"
                                    + backend.name() + "' cannot work here: " + unavailable);
                }
                return backend;
            }
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "' has the flavor '" + flavor.name() + "', which needs the backend '"
                        + flavor.backend() + "', which this server does not have",
                "see 'nereid plugins list', or log the model in the flavour onnx");
    }

    /** The load of one model. Confined to one thread. */
    private record Loading(
            ModelLocation source,
            ModelConfig config,
            BackendContext context,
            List<Backend> backends,
            MlModel model,
            Flavor flavor,
            Backend backend) {
        /** Loads the model, and adapts it to its signature. */
        BackendModel adapted() {
            MlModel.Schema schema = model.inputs();
            boolean columns = schema != null
                    && schema.columns()
                    && schema.named()
                    && !config.parameters().getOrDefault("inputs", "").equals("matrix");
            ModelConfig.Builder inside = inside().inputs(List.of());
            if (columns && config.maxBatchSize() < 0) {
                inside.maxBatchSize(0);
            }
            BackendModel loaded = load(inside.build(), true);
            try {
                List<InputMapping> ports = schema == null
                        ? InputMapping.same(loaded.config())
                        : columns
                                ? InputMapping.columns(loaded.config(), schema, config.name())
                                : InputMapping.tensors(loaded.config(), schema);
                List<TensorSpec> inputs = columns && schema != null
                        ? inputs(schema, loaded.config().batched())
                        : InputMapping.specs(ports);
                ModelConfig complete = complete(loaded.config(), inputs);
                return new MlflowModel(loaded, complete, ports, flavor.labels());
            } catch (RuntimeException e) {
                loaded.close();
                throw e;
            }
        }

        /** Loads the model with the configured inputs, which must be those of the model inside. */
        BackendModel asConfigured() {
            BackendModel loaded = load(inside().build(), context.autoComplete());
            ModelConfig complete = complete(loaded.config(), loaded.config().inputs());
            return new MlflowModel(loaded, complete, InputMapping.same(loaded.config()), flavor.labels());
        }

        private BackendModel load(ModelConfig inside, boolean complete) {
            // Clients of MLflow send tables of any length, so the model must accept batches.
            Map<String, String> settings = new HashMap<>(context.settings());
            settings.putIfAbsent(MAX_ROWS, String.valueOf(ROWS));
            BackendContext its = new BackendContext(
                    context.cores(),
                    context.scratch(),
                    Map.copyOf(settings),
                    complete,
                    context.engine(),
                    context.control(),
                    backends);
            return backend.load(source, inside, its);
        }

        /** The configuration for the backend of the model inside. */
        private ModelConfig.Builder inside() {
            Map<String, String> parameters = new HashMap<>(flavor.parameters());
            parameters.putAll(config.parameters());
            if (config.parameters().getOrDefault("inputs", "").equals("columns")) {
                parameters.remove("inputs");
            }
            List<TensorSpec> outputs = config.outputs();
            if (flavor.labels()) {
                boolean batched = config.maxBatchSize() > 0
                        || (config.maxBatchSize() < 0
                                && !frame()
                                && !"0".equals(context.settings().getOrDefault(MAX_ROWS, "")));
                outputs = outputs.isEmpty()
                        ? List.of(new TensorSpec(
                                MlflowModel.LABEL, DataType.INT64, batched ? Shape.SCALAR : Shape.of(-1)))
                        : outputs.stream().map(Loading::inside).toList();
            }
            return config.toBuilder()
                    .backend(backend.name())
                    .platform("")
                    .modelFile(flavor.modelFile())
                    .parameters(Map.copyOf(parameters))
                    .outputs(outputs);
        }

        private boolean frame() {
            MlModel.Schema schema = model.inputs();
            return schema != null
                    && schema.columns()
                    && schema.named()
                    && !config.parameters().getOrDefault("inputs", "").equals("matrix");
        }

        private static TensorSpec inside(TensorSpec output) {
            return output.name().equals(MlflowModel.PREDICT) ? renamed(output, MlflowModel.LABEL) : output;
        }

        private static TensorSpec outside(TensorSpec output) {
            return output.name().equals(MlflowModel.LABEL) ? renamed(output, MlflowModel.PREDICT) : output;
        }

        private static TensorSpec renamed(TensorSpec s, String name) {
            return new TensorSpec(name, s.dataType(), s.shape(), s.optional(), s.ragged(), s.reshape(), s.unchecked());
        }

        private static List<TensorSpec> inputs(MlModel.Schema schema, boolean batched) {
            return schema.items().stream()
                    .map(i -> new TensorSpec(i.name(), i.type(), Shape.of(batched ? 1 : -1), !i.required()))
                    .toList();
        }

        private ModelConfig complete(ModelConfig inside, List<TensorSpec> inputs) {
            Map<String, String> parameters = new HashMap<>(model.facts());
            parameters.putAll(inside.parameters());
            flavor.parameters().keySet().forEach(k -> {
                if (!config.parameters().containsKey(k)) {
                    parameters.remove(k);
                }
            });
            parameters.putAll(config.parameters());
            parameters.put("mlflow_flavor", flavor.name());
            MlModel.Schema schema = model.inputs();
            if (schema != null
                    && schema.columns()
                    && schema.named()
                    && !config.parameters().containsKey(FEATURE_NAMES)
                    && schema.items().stream().noneMatch(i -> i.name().contains(","))) {
                parameters.put(
                        FEATURE_NAMES,
                        String.join(
                                ",",
                                schema.items().stream().map(MlModel.Item::name).toList()));
            }
            List<TensorSpec> outputs = flavor.labels()
                    ? inside.outputs().stream().map(Loading::outside).toList()
                    : inside.outputs();
            return inside.toBuilder()
                    .backend(NAME)
                    .platform(NAME + "_" + flavor.name())
                    .modelFile(config.modelFile())
                    .inputs(inputs)
                    .outputs(outputs)
                    .parameters(Map.copyOf(parameters))
                    .build();
        }
    }
}
