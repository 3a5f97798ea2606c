// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.BackendContext;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A completed model configuration, and the settings of runs that follow from it. Immutable.
 *
 * @param config the completed configuration
 * @param rowVector whether the input is a single row, without a dimension for rows
 * @param margin whether {@code predict} is the margin
 */
record TreeConfig(ModelConfig config, boolean rowVector, boolean margin) {
    static final String INPUT = "input-0";
    /** The parameter that makes {@code predict} return the margin, by XGBoost's name. */
    static final String OUTPUT_MARGIN = "output_margin";
    /** The same parameter, by LightGBM's name. */
    private static final String RAW_SCORE = "raw_score";
    /** The signature whose {@code predict} is the margin. */
    static final String MARGIN = "margin";
    /** The signature whose {@code predict} is the prediction, of a model configured to return margins. */
    static final String ANSWER = "answer";

    private static final String ITERATION_RANGE = "iteration_range";
    private static final String FEATURE_NAMES = "feature_names";
    private static final int ROWS = 1 << 20;
    /** Longer lists of feature names are not added to the parameters. */
    private static final int MOST_NAMES = 1 << 16;

    /** The available outputs. */
    enum Output {
        PREDICT,
        MARGIN,
        PREDICT_PROBA,
        LABEL;

        /** The output of this name, or null; KServe's servers have their own name for the prediction. */
        static @Nullable Output of(String name) {
            if (name.equals(ModelMetadata.KSERVE_OUTPUT)) {
                return PREDICT;
            }
            for (Output output : values()) {
                if (output.toString().equals(name)) {
                    return output;
                }
            }
            return null;
        }

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The number of values per row of an output. */
    static int width(Output output, ParsedModel model, boolean margin) {
        switch (output) {
            case PREDICT:
                return margin ? model.outputs() : model.link().width(model.outputs());
            case MARGIN:
                return model.outputs();
            case PREDICT_PROBA:
                return model.classes();
            default:
                return 1;
        }
    }

    /**
     * Validates a configuration against a model, and completes the fields that it leaves out.
     *
     * @throws ServingException INVALID_ARGUMENT for a configuration that does not match the model
     */
    static TreeConfig complete(ParsedModel model, ModelConfig config, BackendContext context) {
        boolean margin = margin(config);
        int rows = config.maxBatchSize() >= 0 ? config.maxBatchSize() : context.autoComplete() ? rows(context) : 0;
        boolean batched = rows > 0;
        List<TensorSpec> inputs = config.inputs();
        if (inputs.isEmpty()) {
            Shape shape = Shape.of(model.features());
            // The number type of each library.
            inputs = List.of(new TensorSpec(INPUT, type(model), batched ? shape : shape.prepend(-1)));
        }
        List<TensorSpec> outputs = config.outputs();
        if (outputs.isEmpty()) {
            int width = width(Output.PREDICT, model, margin);
            Shape shape = width == 1 ? Shape.SCALAR : Shape.of(width);
            boolean kserve = config.parameters()
                    .getOrDefault(ModelMetadata.KSERVE_SERVER, "")
                    .equals("true");
            String name = kserve ? ModelMetadata.KSERVE_OUTPUT : Output.PREDICT.toString();
            outputs = List.of(new TensorSpec(name, type(model), batched ? shape : shape.prepend(-1)));
        }
        ModelConfig.Builder builder = config
                .completed(
                        model.format(),
                        model.format(),
                        rows,
                        inputs,
                        outputs,
                        config.batching(),
                        config.instances() > 0 ? config.instances() : Math.max(1, context.cores()))
                .toBuilder();
        String names = String.join(",", model.names());
        if (!names.isEmpty()
                && names.length() <= MOST_NAMES
                && !config.parameters().containsKey(FEATURE_NAMES)) {
            Map<String, String> parameters = new HashMap<>(config.parameters());
            parameters.put(FEATURE_NAMES, names);
            builder = builder.parameters(Map.copyOf(parameters));
        }
        ModelConfig complete = builder.build();
        boolean rowVector = input(complete, model, batched);
        for (TensorSpec spec : complete.modelOutputs()) {
            output(complete, spec, model, margin, batched, rowVector);
        }
        return new TreeConfig(complete, rowVector, margin);
    }

    /** The model restricted to the iterations that the configuration selects. */
    static ParsedModel chosen(ParsedModel model, ModelConfig config) {
        String text = config.parameters().getOrDefault(ITERATION_RANGE, "").strip();
        boolean none = model.best() < 0 && text.equals("auto");
        if (text.isEmpty() || text.equals("all") || none) {
            return model;
        }
        int begin = 0;
        int end = -1;
        if (text.equals("best") || text.equals("auto")) {
            end = model.best() + 1;
            if (model.best() < 0) {
                throw wrong(
                        config,
                        "has " + ITERATION_RANGE + " 'best', but its file has no best iteration",
                        "a model trained with early stopping, or a range such as 0,10");
            }
        } else {
            String[] ends = text.split(",", -1);
            try {
                begin = Integer.parseInt(ends[0].strip());
                end = ends.length == 2 ? Integer.parseInt(ends[1].strip()) : -1;
            } catch (NumberFormatException e) {
                end = -1;
            }
            // (0, 0) selects all, as in the Python packages.
            end = begin == 0 && end == 0 ? model.rounds() : end;
        }
        if (begin < 0 || end <= begin || end > model.rounds()) {
            throw wrong(
                    config,
                    "has " + ITERATION_RANGE + " '" + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "'",
                    "best, auto, all, or the first iteration and the one after the last, of " + model.rounds());
        }
        return model.between(begin, end);
    }

    static DataType type(ParsedModel model) {
        return model.format().equals(ParsedModel.XGBOOST) ? DataType.FP32 : DataType.FP64;
    }

    private static boolean margin(ModelConfig config) {
        try {
            Boolean margin = margin(config.parameters());
            return margin != null && margin;
        } catch (ServingException e) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "': " + e.getMessage(), "correct its configuration");
        }
    }

    /**
     * Whether the parameters of a configuration or request select the margin; null when they do not set it.
     *
     * @throws ServingException INVALID_ARGUMENT for a value other than true or false, or contradictory parameters
     */
    static @Nullable Boolean margin(Map<String, ?> parameters) {
        Boolean selected = null;
        for (String name : List.of(OUTPUT_MARGIN, RAW_SCORE)) {
            Object value = parameters.get(name);
            if (value == null) {
                continue;
            }
            String text = String.valueOf(value).strip().toLowerCase(Locale.ROOT);
            boolean truth = List.of("true", "1").contains(text);
            if ((!truth && !List.of("false", "0").contains(text)) || (selected != null && selected != truth)) {
                throw ServingException.invalidArgument("parameter '" + name + "' is '"
                        + (text.length() > 40 ? text.substring(0, 40) + "…" : text)
                        + "' (expected: true or false" + (selected == null ? "" : ", equal to " + OUTPUT_MARGIN)
                        + ")");
            }
            selected = truth;
        }
        return selected;
    }

    /**
     * The outputs of the signature that inverts the configured choice: {@code predict} is the margin instead of the
     * prediction, or the reverse. Empty for a model without that output.
     */
    List<TensorSpec> turned(ParsedModel model) {
        int outer = config.batched() || rowVector ? 0 : 1;
        List<TensorSpec> specs = new ArrayList<>();
        boolean any = false;
        for (TensorSpec spec : config.outputs()) {
            if (Output.of(spec.name()) != Output.PREDICT) {
                specs.add(spec);
                continue;
            }
            any = true;
            int from = width(Output.PREDICT, model, margin);
            int to = width(Output.PREDICT, model, !margin);
            Shape shape = to == 1 ? Shape.SCALAR : Shape.of(to);
            specs.add(
                    from == to
                            ? spec
                            : new TensorSpec(spec.name(), spec.dataType(), outer == 0 ? shape : shape.prepend(-1)));
        }
        return any ? List.copyOf(specs) : List.of();
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

    private static boolean input(ModelConfig config, ParsedModel model, boolean batched) {
        List<DataType> types = List.of(DataType.FP32, DataType.FP64, DataType.INT32, DataType.INT64);
        List<TensorSpec> feeds = config.modelInputs();
        if (feeds.size() == 1) {
            TensorSpec spec = feeds.get(0);
            Shape shape = spec.modelShape();
            int rank = shape.rank();
            boolean fits = rank == 1 || (rank == 2 && !batched);
            long last = rank == 0 ? 0 : shape.dim(rank - 1);
            if (fits
                    && !spec.optional()
                    && types.contains(spec.dataType())
                    && (last == -1 || last == model.features())) {
                return !batched && rank == 1;
            }
        }
        List<String> found = new ArrayList<>();
        for (TensorSpec spec : feeds) {
            found.add("'" + spec.name() + "' " + spec.dataType() + spec.modelShape());
        }
        throw wrong(
                config,
                "has inputs " + String.join(", ", found),
                "one of TYPE_FP32, TYPE_FP64, TYPE_INT32 or TYPE_INT64 with dims [ " + (batched ? "" : "-1, ")
                        + model.features() + " ]");
    }

    private static void output(
            ModelConfig config,
            TensorSpec spec,
            ParsedModel model,
            boolean margin,
            boolean batched,
            boolean rowVector) {
        Output output = Output.of(spec.name());
        if (output == null) {
            throw wrong(config, "has output '" + spec.name() + "'", "any of predict, margin, predict_proba and label");
        }
        int width = width(output, model, margin);
        if ((output == Output.LABEL || output == Output.PREDICT_PROBA) && model.classes() == 0) {
            throw wrong(
                    config,
                    "has output '" + spec.name() + "', but the objective '" + model.objective()
                            + "' is not a classification",
                    "predict or margin");
        }
        Shape shape = spec.modelShape();
        int outer = batched || rowVector ? 0 : 1;
        boolean fits = shape.rank() == outer
                ? width == 1
                : shape.rank() == outer + 1 && (shape.dim(outer) == -1 || shape.dim(outer) == width);
        boolean typed = output == Output.LABEL
                ? spec.dataType() == DataType.INT64 || spec.dataType() == DataType.INT32
                : spec.dataType() == DataType.FP32 || spec.dataType() == DataType.FP64;
        if (!fits || !typed) {
            throw wrong(
                    config,
                    "has output '" + spec.name() + "' " + spec.dataType() + shape,
                    (output == Output.LABEL ? "TYPE_INT64" : "TYPE_" + type(model)) + " with dims [ "
                            + (outer == 1 ? "-1, " : "") + width + " ]");
        }
    }

    private static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' " + what + " (expected: " + expected + ")", "correct its configuration");
    }
}
