// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.BackendContext;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Validates a model's configuration against its estimator and completes the fields that it leaves out. Stateless. */
final class SklearnConfig {
    private static final String MATRIX = "input-0";
    private static final int ROWS = 1 << 20;
    private static final String FEATURE_NAMES = "feature_names";
    /** Longer lists of column names are not added to the parameters. */
    private static final int MOST_NAMES = 1 << 16;

    private SklearnConfig() {}

    /**
     * The model of an estimator under the completed configuration.
     *
     * @param names the columns that the estimator was fitted to; empty when unknown
     * @param proba whether classifiers return probabilities by default
     * @param release called when the model is closed
     * @throws ServingException INVALID_ARGUMENT for tensors or methods that the estimator does not have
     */
    static SklearnModel complete(
            Estimator estimator,
            List<String> names,
            ModelConfig config,
            BackendContext context,
            String proba,
            Runnable release) {
        int features = estimator.features();
        List<String> columns = names.size() == features ? names : List.of();
        boolean[] texts = FittedColumns.texts(estimator, features);
        boolean[] text = texts == null ? new boolean[0] : texts;
        List<PredictMethod> methods = methods(estimator, config, proba);
        int rows =
                config.maxBatchSize() >= 0 ? config.maxBatchSize() : context.autoComplete() ? defaultRows(context) : 0;
        List<TensorSpec> inputs =
                config.inputs().isEmpty() ? inputs(columns, text, features, config, rows > 0) : config.inputs();
        List<TensorSpec> outputs = config.outputs();
        if (outputs.isEmpty()) {
            outputs = new ArrayList<>();
            boolean kserve = methods.size() == 1
                    && config.parameters()
                            .getOrDefault(ModelMetadata.KSERVE_SERVER, "")
                            .equals("true");
            for (PredictMethod method : methods) {
                String name = kserve ? ModelMetadata.KSERVE_OUTPUT : method.text();
                outputs.add(new TensorSpec(name, estimator.type(method), shape(estimator.width(method), rows > 0)));
            }
        }
        ModelConfig complete = config.completed(
                config.platform().isEmpty() ? "sklearn_pickle" : config.platform(),
                SklearnBackend.NAME,
                rows,
                inputs,
                outputs,
                config.batching() == null && rows > 0 && context.autoComplete() && config.maxBatchSize() < 0
                        ? DynamicBatching.EAGER
                        : config.batching(),
                config.instances() > 0 ? config.instances() : Math.max(1, context.cores()));
        complete = named(complete, columns);
        InputReader reading =
                new InputReader(config.name(), complete.modelInputs(), columns, features, complete.batched());
        List<OutputWriter> writings = new ArrayList<>();
        for (TensorSpec spec : complete.modelOutputs()) {
            writings.add(writing(estimator, spec, methods, complete));
        }
        Map<PredictMethod, TensorSpec> specs = new EnumMap<>(PredictMethod.class);
        for (PredictMethod method : estimator.methods()) {
            specs.put(
                    method,
                    new TensorSpec(
                            method.text(), estimator.type(method), shape(estimator.width(method), complete.batched())));
        }
        MethodSignatures others = MethodSignatures.of(
                estimator,
                complete,
                specs,
                complete.outputs().stream().map(TensorSpec::name).toList());
        return new SklearnModel(complete, estimator, reading, writings, others, text, release);
    }

    /** Adds the column names as a parameter, for protocols and clients that map names to columns. */
    private static ModelConfig named(ModelConfig config, List<String> columns) {
        String names = String.join(",", columns);
        if (names.isEmpty()
                || names.length() > MOST_NAMES
                || config.parameters().containsKey(FEATURE_NAMES)
                || columns.stream().anyMatch(c -> c.contains(","))) {
            return config;
        }
        Map<String, String> parameters = new HashMap<>(config.parameters());
        parameters.put(FEATURE_NAMES, names);
        return config.toBuilder().parameters(Map.copyOf(parameters)).build();
    }

    private static Shape shape(int width, boolean batched) {
        Shape row = width == 0 ? Shape.SCALAR : Shape.of(width);
        return batched ? row : row.prepend(-1);
    }

    private static List<TensorSpec> inputs(
            List<String> columns, boolean[] texts, int features, ModelConfig config, boolean batched) {
        String layout = layout(config);
        if (!List.of("", "matrix", "columns").contains(layout)) {
            throw wrong(config, "parameter inputs '" + layout + "'", "matrix or columns");
        }
        DataType numbers = DataType.ofWireName(config.parameters().getOrDefault("input_type", "FP64"));
        if (numbers != DataType.FP64 && numbers != DataType.FP32) {
            throw wrong(config, "parameter input_type '" + config.parameters().get("input_type") + "'", "FP64 or FP32");
        }
        if (!separate(config, columns, texts)) {
            DataType type = count(texts) > 0 ? DataType.BYTES : numbers;
            return List.of(
                    type == DataType.BYTES && features == 1
                            ? single(MATRIX, type, batched)
                            : new TensorSpec(MATRIX, type, shape(features, batched)));
        }
        if (features < 1) {
            throw wrong(config, "parameter inputs 'columns'", "a model that stores its number of columns");
        }
        List<TensorSpec> inputs = new ArrayList<>();
        for (int c = 0; c < features; c++) {
            String name = columns.isEmpty() ? "x" + c : columns.get(c);
            inputs.add(single(name, c < texts.length && texts[c] ? DataType.BYTES : numbers, batched));
        }
        return inputs;
    }

    /**
     * One value per row: a client sends {@code [rows, 1]} to a batched model, and the model sees {@code [rows]}.
     */
    private static TensorSpec single(String name, DataType type, boolean batched) {
        return batched
                ? new TensorSpec(name, type, Shape.of(1), false, false, Shape.SCALAR)
                : new TensorSpec(name, type, Shape.of(-1));
    }

    private static String layout(ModelConfig config) {
        return config.parameters().getOrDefault("inputs", "");
    }

    private static int count(boolean[] texts) {
        int some = 0;
        for (boolean text : texts) {
            some += text ? 1 : 0;
        }
        return some;
    }

    /** Whether each column is an input of its own: by parameter, or because numbers and text are mixed. */
    private static boolean separate(ModelConfig config, List<String> columns, boolean[] texts) {
        int some = count(texts);
        boolean mixed = some > 0 && (some < texts.length || !columns.isEmpty());
        return layout(config).equals("columns") || (mixed && !layout(config).equals("matrix"));
    }

    private static List<PredictMethod> methods(Estimator estimator, ModelConfig config, String proba) {
        String given = config.parameters()
                .getOrDefault("method", config.parameters().getOrDefault("predict_fn", ""))
                .strip();
        List<PredictMethod> methods = new ArrayList<>();
        if (given.isEmpty()) {
            for (TensorSpec output : config.outputs()) {
                PredictMethod method = PredictMethod.of(output.name());
                if (method != null && estimator.can(method)) {
                    methods.add(method);
                }
            }
            if (!methods.isEmpty()) {
                return methods;
            }
            return List.of(
                    estimator.can(PredictMethod.PREDICT_PROBA) && proba(config, proba)
                            ? PredictMethod.PREDICT_PROBA
                            : estimator.methods().get(0));
        }
        for (String text : given.split(",")) {
            PredictMethod method = PredictMethod.of(text.strip());
            if (method == null || !estimator.can(method)) {
                throw wrong(
                        config,
                        "method '" + (text.length() > 40 ? text.substring(0, 40) + "…" : text.strip()) + "'",
                        names(estimator.methods()) + " of " + estimator.type());
            }
            if (!methods.contains(method)) {
                methods.add(method);
            }
        }
        return methods;
    }

    /** Whether classifiers return probabilities by default: the model's parameter, or the backend's default. */
    private static boolean proba(ModelConfig config, String otherwise) {
        String text = config.parameters()
                .getOrDefault("predict_proba", otherwise)
                .strip()
                .toLowerCase(Locale.ROOT);
        if (!List.of("true", "false", "1", "0").contains(text)) {
            throw wrong(config, "predict_proba '" + text + "'", "true or false");
        }
        return text.equals("true") || text.equals("1");
    }

    private static String names(List<PredictMethod> methods) {
        return String.join(", ", methods.stream().map(PredictMethod::text).toList());
    }

    private static OutputWriter writing(
            Estimator estimator, TensorSpec spec, List<PredictMethod> methods, ModelConfig config) {
        PredictMethod named = PredictMethod.of(spec.name());
        PredictMethod method = named != null ? named : methods.size() == 1 ? methods.get(0) : null;
        if (method == null || !estimator.can(method)) {
            throw wrong(config, "output '" + spec.name() + "'", names(estimator.methods()) + " of " + estimator.type());
        }
        boolean text = estimator.type(method) == DataType.BYTES;
        boolean fits = text
                ? spec.dataType() == DataType.BYTES
                : List.of(DataType.FP64, DataType.FP32, DataType.INT64, DataType.INT32, DataType.BOOL)
                        .contains(spec.dataType());
        if (!fits) {
            throw wrong(
                    config,
                    "output '" + spec.name() + "' of type " + spec.dataType(),
                    text ? "BYTES" : "FP64, FP32, INT64, INT32 or BOOL");
        }
        int rank = spec.modelShape().rank() - (config.batched() ? 0 : 1);
        int width = estimator.width(method);
        boolean flat = rank == 0;
        if (rank < 0 || rank > 1 || (flat && width > 1)) {
            throw wrong(
                    config,
                    "output '" + spec.name() + "' of shape " + spec.modelShape(),
                    shape(width, config.batched()).toString());
        }
        return new OutputWriter(spec.name(), method, spec.dataType(), flat);
    }

    private static int defaultRows(BackendContext context) {
        String text = context.settings().getOrDefault("default-max-batch-size", String.valueOf(ROWS));
        try {
            int rows = Integer.parseInt(text.strip());
            if (rows >= 0) {
                return rows;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument(
                "setting 'default-max-batch-size' is '" + text + "' (expected: a whole number >= 0)");
    }

    static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' has " + what + " (expected: " + expected + ")",
                "correct its configuration");
    }
}
