// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.backend.BackendContext;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.pmml4s.metadata.OutputField;

/** Validates a model's configuration against its document and completes the fields that it leaves out. Stateless. */
final class PmmlConfig {
    private static final String MATRIX = "input-0";
    private static final String FEATURE_NAMES = "feature_names";

    private PmmlConfig() {}

    /** @throws ServingException INVALID_ARGUMENT for tensors that the model does not have */
    static PmmlModel complete(PmmlDocument document, ModelConfig config, BackendContext context) {
        boolean batched = config.maxBatchSize() > 0;
        List<TensorSpec> inputs = config.inputs().isEmpty() ? inputs(document, config, batched) : config.inputs();
        List<TensorSpec> outputs = config.outputs().isEmpty() ? outputs(document, batched) : config.outputs();
        ModelConfig.Builder builder = config
                .completed(
                        PmmlBackend.NAME,
                        PmmlBackend.NAME,
                        Math.max(0, config.maxBatchSize()),
                        inputs,
                        outputs,
                        config.batching(),
                        config.instances() > 0 ? config.instances() : Math.max(1, context.cores()))
                .toBuilder();
        List<String> names = document.fields().stream().map(InputField::name).toList();
        if (!config.parameters().containsKey(FEATURE_NAMES) && names.stream().noneMatch(n -> n.contains(","))) {
            Map<String, String> parameters = new HashMap<>(config.parameters());
            parameters.put(FEATURE_NAMES, String.join(",", names));
            builder = builder.parameters(Map.copyOf(parameters));
        }
        ModelConfig complete = builder.build();
        String matrix = null;
        for (TensorSpec spec : complete.modelInputs()) {
            if (!names.contains(spec.name())) {
                matrix = matrix(complete, spec, names, matrix);
            } else if (spec.modelShape().rank() > (batched ? 1 : 2)) {
                throw wrong(complete, "input '" + spec.name() + "' of shape " + spec.modelShape(), "one value per row");
            }
        }
        List<PmmlModel.Answer> answers = new ArrayList<>();
        for (TensorSpec spec : complete.modelOutputs()) {
            answers.add(answer(complete, spec, document, batched));
        }
        return new PmmlModel(complete, document, matrix, answers);
    }

    private static List<TensorSpec> inputs(PmmlDocument document, ModelConfig config, boolean batched) {
        String given = config.parameters().getOrDefault("input_type", "FP32");
        DataType numbers = DataType.ofWireName(given);
        if (numbers != DataType.FP32 && numbers != DataType.FP64) {
            throw wrong(config, "parameter input_type '" + given + "'", "FP32 or FP64");
        }
        List<TensorSpec> inputs = new ArrayList<>();
        Shape one = batched ? Shape.of(1) : Shape.of(-1);
        boolean all = true;
        for (InputField field : document.fields()) {
            inputs.add(new TensorSpec(field.name(), field.type(), one, true));
            all &= field.type() != DataType.BYTES && !field.name().equals(MATRIX);
        }
        if (all) {
            Shape row = Shape.of(document.fields().size());
            inputs.add(new TensorSpec(MATRIX, numbers, batched ? row : row.prepend(-1), true));
        }
        return List.copyOf(inputs);
    }

    private static List<TensorSpec> outputs(PmmlDocument document, boolean batched) {
        List<TensorSpec> outputs = new ArrayList<>();
        for (OutputField field : document.outputs()) {
            outputs.add(new TensorSpec(
                    field.name(), InputField.type(field.dataType()), batched ? Shape.SCALAR : Shape.of(-1)));
        }
        return List.copyOf(outputs);
    }

    private static String matrix(ModelConfig config, TensorSpec spec, List<String> names, @Nullable String other) {
        Shape shape = spec.modelShape();
        boolean fits = shape.rank() == (config.batched() ? 1 : 2)
                && (shape.dim(shape.rank() - 1) < 0 || shape.dim(shape.rank() - 1) == names.size());
        if (other != null || !fits) {
            throw wrong(
                    config,
                    "input '" + spec.name() + "' of shape " + shape,
                    "a field of the model (" + String.join(", ", names) + "), or rows of all " + names.size()
                            + " of them in one input");
        }
        return spec.name();
    }

    private static PmmlModel.Answer answer(
            ModelConfig config, TensorSpec spec, PmmlDocument document, boolean batched) {
        for (int i = 0; i < document.outputs().size(); i++) {
            OutputField field = document.outputs().get(i);
            if (!field.name().equals(spec.name())) {
                continue;
            }
            boolean text = InputField.type(field.dataType()) == DataType.BYTES;
            boolean typed = text
                    ? spec.dataType() == DataType.BYTES
                    : List.of(DataType.FP64, DataType.FP32, DataType.INT64, DataType.INT32, DataType.BOOL)
                            .contains(spec.dataType());
            if (!typed || spec.modelShape().rank() > (batched ? 1 : 2)) {
                throw wrong(
                        config,
                        "output '" + spec.name() + "' " + spec.dataType() + spec.modelShape(),
                        InputField.type(field.dataType()) + " with one value per row");
            }
            return new PmmlModel.Answer(spec.name(), spec.dataType(), i);
        }
        throw wrong(
                config,
                "output '" + spec.name() + "'",
                "some of "
                        + String.join(
                                ", ",
                                document.outputs().stream()
                                        .map(OutputField::name)
                                        .toList()));
    }

    private static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' has " + what + " (expected: " + expected + ")",
                "correct its configuration");
    }
}
