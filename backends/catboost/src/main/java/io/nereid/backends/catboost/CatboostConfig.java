// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backend.BackendContext;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Validates a configuration against a model and completes the fields that it leaves out. Stateless. */
final class CatboostConfig {
    private static final String MATRIX = "input-0";
    private static final String PREDICTION_TYPE = "prediction_type";
    private static final String FEATURE_NAMES = "feature_names";
    private static final int ROWS = 1 << 20;
    private static final int MOST_NAMES = 1 << 16;
    private static final List<DataType> NUMBERS = List.of(DataType.FP32, DataType.FP64, DataType.INT32, DataType.INT64);

    private static final List<DataType> CATEGORIES = List.of(DataType.BYTES, DataType.INT32, DataType.INT64);

    private CatboostConfig() {}

    /** @throws ServingException INVALID_ARGUMENT for a configuration that does not match the model */
    static ModelConfig complete(ParsedModel model, ModelConfig config, BackendContext context) {
        int rows = config.maxBatchSize() >= 0 ? config.maxBatchSize() : context.autoComplete() ? rows(context) : 0;
        boolean batched = rows > 0;
        List<TensorSpec> inputs = config.inputs().isEmpty() ? inputs(model, batched) : config.inputs();
        List<TensorSpec> outputs = config.outputs();
        if (outputs.isEmpty()) {
            PredictionType selected = selected(model, config.parameters());
            if (selected == null) {
                throw wrong(
                        config, "has prediction_type '" + config.parameters().get(PREDICTION_TYPE) + "'", types(model));
            }
            outputs = List.of(spec(selected, model, batched));
        }
        ModelConfig complete = config.completed(
                CatboostBackend.NAME,
                CatboostBackend.NAME,
                rows,
                inputs,
                outputs,
                config.batching(),
                config.instances() > 0 ? config.instances() : Math.max(1, context.cores()));
        String names = String.join(",", names(model));
        if (!config.parameters().containsKey(FEATURE_NAMES)
                && names.length() <= MOST_NAMES
                && model.features().stream().noneMatch(f -> f.name().contains(","))) {
            Map<String, String> parameters = new HashMap<>(config.parameters());
            parameters.put(FEATURE_NAMES, names);
            complete = complete.toBuilder().parameters(Map.copyOf(parameters)).build();
        }
        complete = labelled(model, complete);
        checkInputs(model, complete);
        for (TensorSpec spec : complete.modelOutputs()) {
            checkOutput(model, spec, complete);
        }
        return complete;
    }

    /** Names the classes of probabilities, for classification requests, unless the configuration does. */
    private static ModelConfig labelled(ParsedModel model, ModelConfig config) {
        if (model.labels().isEmpty() || model.manyLabels()) {
            return config;
        }
        List<String> texts = new ArrayList<>();
        for (Object label : model.labels()) {
            texts.add(
                    !(label instanceof Double number)
                            ? String.valueOf(label)
                            : switch (model.labelType()) {
                                case BOOL -> number == 0 ? "False" : "True";
                                case INT64 -> Long.toString(number.longValue());
                                default -> number.toString();
                            });
        }
        Map<String, List<String>> labels = new HashMap<>(config.labels());
        labels.putIfAbsent(PredictionType.PREDICT_PROBA.toString(), List.copyOf(texts));
        labels.putIfAbsent(PredictionType.PREDICT_LOG_PROBA.toString(), List.copyOf(texts));
        return config.toBuilder().labels(Map.copyOf(labels)).build();
    }

    /** The column names; generated where the file has none, or duplicates. */
    static List<String> names(ParsedModel model) {
        List<String> names = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        for (FeatureColumn f : model.features()) {
            boolean own = !f.name().isEmpty() && seen.add(f.name());
            names.add(own ? f.name() : "x" + f.place());
        }
        return names;
    }

    private static List<TensorSpec> inputs(ParsedModel model, boolean batched) {
        if (!model.hasCategories()) {
            Shape shape = Shape.of(model.features().size());
            return List.of(new TensorSpec(MATRIX, DataType.FP32, batched ? shape : shape.prepend(-1)));
        }
        List<TensorSpec> inputs = new ArrayList<>();
        List<String> names = names(model);
        for (int i = 0; i < names.size(); i++) {
            DataType type = model.features().get(i).categorical() ? DataType.BYTES : DataType.FP32;
            inputs.add(
                    batched
                            ? new TensorSpec(names.get(i), type, Shape.of(1), false, false, Shape.SCALAR)
                            : new TensorSpec(names.get(i), type, Shape.of(-1)));
        }
        return inputs;
    }

    /** An output's default specification. */
    static TensorSpec spec(PredictionType output, ParsedModel model, boolean batched) {
        int width = output.width(model);
        Shape shape = width == 1 ? Shape.SCALAR : Shape.of(width);
        return new TensorSpec(output.toString(), output.type(model), batched ? shape : shape.prepend(-1));
    }

    /**
     * The output that the parameter {@code prediction_type} of a configuration or request selects.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown type, or one that the model does not support
     */
    static PredictionType selected(ParsedModel model, Map<String, Object> parameters, ModelConfig config) {
        PredictionType output = selected(model, parameters);
        if (output == null) {
            throw ServingException.invalidArgument("parameter 'prediction_type' is '" + parameters.get(PREDICTION_TYPE)
                    + "' (expected for model '" + config.name() + "': " + types(model) + ")");
        }
        return output;
    }

    private static String types(ParsedModel model) {
        return model.classifies() ? "Class, Probability, LogProbability or RawFormulaVal" : "RawFormulaVal or none";
    }

    private static @Nullable PredictionType selected(ParsedModel model, Map<String, ?> parameters) {
        Object value = parameters.get(PREDICTION_TYPE);
        String type = value == null ? "" : value.toString().strip();
        if (type.isEmpty()) {
            return PredictionType.PREDICT;
        }
        for (PredictionType output : PredictionType.values()) {
            if (output.predictionType.toLowerCase(Locale.ROOT).equals(type.toLowerCase(Locale.ROOT))
                    && output.suits(model)
                    && (output != PredictionType.PREDICT || model.classifies())) {
                return output;
            }
        }
        return null;
    }

    private static int rows(BackendContext context) {
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

    private static void checkInputs(ParsedModel model, ModelConfig config) {
        List<TensorSpec> feeds = config.modelInputs();
        int outer = config.batched() ? 0 : 1;
        if (!model.hasCategories() && feeds.size() == 1 && model.features().size() != 1) {
            TensorSpec spec = feeds.get(0);
            Shape shape = spec.modelShape();
            long last = shape.rank() == outer + 1 ? shape.dim(outer) : 0;
            if (spec.optional()
                    || !NUMBERS.contains(spec.dataType())
                    || (last != -1 && last != model.features().size())) {
                throw wrong(
                        config,
                        "has input '" + spec.name() + "' " + spec.dataType() + shape,
                        "TYPE_FP32 with dims [ " + (outer == 1 ? "-1, " : "")
                                + model.features().size() + " ]");
            }
            return;
        }
        if (feeds.size() != model.features().size()) {
            throw wrong(
                    config, "has " + feeds.size() + " inputs", model.features().size() + ", one for each column");
        }
        List<String> names = names(model);
        for (TensorSpec spec : feeds) {
            int place = feeds.size() == 1 ? 0 : names.indexOf(spec.name());
            boolean text = place >= 0 && model.features().get(place).categorical();
            Shape shape = spec.modelShape();
            boolean fits = shape.rank() == outer
                    || (shape.rank() == outer + 1 && (shape.dim(outer) == 1 || shape.dim(outer) == -1));
            if (place < 0 || spec.optional() || !fits || !(text ? CATEGORIES : NUMBERS).contains(spec.dataType())) {
                throw wrong(
                        config,
                        "has input '" + spec.name() + "' " + spec.dataType() + shape,
                        "columns " + names
                                + ", TYPE_STRING or TYPE_INT64 for categories, TYPE_FP32 for numbers, one per row");
            }
        }
    }

    private static void checkOutput(ParsedModel model, TensorSpec spec, ModelConfig config) {
        PredictionType output = PredictionType.of(spec.name());
        if (output == null || !output.suits(model)) {
            throw wrong(
                    config,
                    "has output '" + spec.name() + "'",
                    model.classifies() ? Arrays.toString(PredictionType.values()) : "predict or margin");
        }
        int width = output.width(model);
        int outer = config.batched() ? 0 : 1;
        Shape shape = spec.modelShape();
        boolean fits = shape.rank() == outer
                ? width == 1
                : shape.rank() == outer + 1 && (shape.dim(outer) == -1 || shape.dim(outer) == width);
        boolean text = output.type(model) == DataType.BYTES;
        boolean typed = text
                ? spec.dataType() == DataType.BYTES
                : spec.dataType() == output.type(model)
                        || spec.dataType() == DataType.FP32
                        || spec.dataType() == DataType.FP64;
        if (!fits || !typed) {
            throw wrong(
                    config,
                    "has output '" + spec.name() + "' " + spec.dataType() + shape,
                    output.type(model) + " with dims [ " + (outer == 1 ? "-1, " : "") + width + " ]");
        }
    }

    static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' " + what + " (expected: " + expected + ")", "correct its configuration");
    }
}
