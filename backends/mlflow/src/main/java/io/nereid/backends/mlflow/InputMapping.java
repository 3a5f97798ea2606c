// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * Maps the inputs that clients send to one input of the model inside. Immutable.
 *
 * @param inside the input of the model inside, without the batch dimension of a batched model
 * @param type the type for clients, of an input that is passed through
 * @param columns the columns that are joined, in order; empty for an input that is passed through
 * @param batched whether the model inside is batched
 */
record InputMapping(TensorSpec inside, DataType type, List<String> columns, boolean batched) {
    /** Passes all inputs through unchanged. */
    static List<InputMapping> same(ModelConfig config) {
        return config.modelInputs().stream()
                .map(s -> new InputMapping(s, s.dataType(), List.of(), config.batched()))
                .toList();
    }

    /** Passes all inputs through, with the signature's types where these can be converted to the model's. */
    static List<InputMapping> tensors(ModelConfig config, MlModel.Schema schema) {
        List<InputMapping> ports = new ArrayList<>();
        for (TensorSpec spec : config.modelInputs()) {
            MlModel.Item item = null;
            for (MlModel.Item i : schema.items()) {
                boolean only =
                        schema.items().size() == 1 && config.modelInputs().size() == 1 && !schema.columns();
                if (only || (i.name().equals(spec.name()) && !schema.columns())) {
                    item = i;
                }
            }
            DataType type = item != null && TensorConversion.possible(item.type(), spec.dataType())
                    ? item.type()
                    : spec.dataType();
            ports.add(new InputMapping(spec, type, List.of(), config.batched()));
        }
        return ports;
    }

    /**
     * Maps the columns of a signature: all to the single input of a model, or each to the input of its name.
     *
     * @throws ServingException INVALID_ARGUMENT when the model does not take the columns of its signature
     */
    static List<InputMapping> columns(ModelConfig config, MlModel.Schema schema, String model) {
        List<TensorSpec> feeds = config.modelInputs();
        List<String> names = schema.items().stream().map(MlModel.Item::name).toList();
        if (feeds.size() == 1 && !names.contains(feeds.get(0).name())) {
            TensorSpec matrix = feeds.get(0);
            int rank = matrix.modelShape().rank();
            long width =
                    rank == (config.batched() ? 0 : 1) ? 1 : matrix.modelShape().dim(rank - 1);
            boolean one = rank <= (config.batched() ? 1 : 2);
            if (!one || (width >= 0 && width != names.size())) {
                throw mismatch(model, names, "input '" + matrix.name() + "' of shape " + matrix.modelShape());
            }
            for (MlModel.Item item : schema.items()) {
                check(model, item, matrix.dataType());
            }
            return List.of(new InputMapping(matrix, matrix.dataType(), names, config.batched()));
        }
        List<InputMapping> ports = new ArrayList<>();
        for (TensorSpec spec : feeds) {
            int place = names.indexOf(spec.name());
            if (place < 0) {
                throw mismatch(
                        model,
                        names,
                        "inputs "
                                + String.join(
                                        ", ",
                                        feeds.stream().map(TensorSpec::name).toList()));
            }
            check(model, schema.items().get(place), spec.dataType());
            ports.add(new InputMapping(spec, spec.dataType(), List.of(spec.name()), config.batched()));
        }
        return ports;
    }

    private static void check(String model, MlModel.Item item, DataType type) {
        if (!TensorConversion.possible(item.type(), type)) {
            throw ServingException.invalidArgument(
                    "model '" + model + "' has the column '" + item.name() + "' of type " + item.type()
                            + " in its signature, and takes " + type,
                    "log the model with the signature of the data that it was trained on, or set the parameter 'inputs'"
                            + " to 'matrix'");
        }
    }

    private static ServingException mismatch(String model, List<String> names, String has) {
        return ServingException.invalidArgument(
                "model '" + model + "' has " + has + " (expected: its signature's columns " + String.join(", ", names)
                        + ")",
                "log the model with the signature of the data that it was trained on, or set the parameter 'inputs' to"
                        + " 'matrix'");
    }

    /** The specifications for clients, of inputs that are passed through. */
    static List<TensorSpec> specs(List<InputMapping> ports) {
        return ports.stream()
                .map(p -> new TensorSpec(
                        p.inside.name(),
                        p.type,
                        p.inside.shape(),
                        p.inside.optional(),
                        p.inside.ragged(),
                        p.inside.reshape(),
                        p.inside.unchecked()))
                .toList();
    }
}
