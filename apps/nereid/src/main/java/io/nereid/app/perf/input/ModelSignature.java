// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The inputs that a model expects, and how requests of a batch size fill them. Immutable.
 *
 * @param model the model's name
 * @param inputs the inputs in the model's order
 * @param batched whether the first dimension of every input is the batch dimension
 * @param maxBatchSize the largest batch; 0 where it is not known, or the model is not batched
 */
public record ModelSignature(String model, List<Input> inputs, boolean batched, int maxBatchSize) {
    /**
     * An input. Immutable.
     *
     * @param shape with the batch dimension where the model is batched; -1 for a dimension of any size
     */
    public record Input(String name, DataType dataType, Shape shape, boolean optional) {}

    /**
     * Reads the documents of a server.
     *
     * @param metadata the model's metadata
     * @param config the model's configuration; null where the server has none to show
     * @throws ServingException UNIMPLEMENTED for a model that a load of independent requests cannot use
     */
    public static ModelSignature of(JsonNode metadata, @Nullable JsonNode config) {
        String model = metadata.path("name").asText();
        List<String> optional = new ArrayList<>();
        int most = 0;
        if (config != null) {
            requireIndependent(
                    model,
                    config.has("sequence_batching"),
                    config.path("model_transaction_policy").path("decoupled").asBoolean());
            most = config.path("max_batch_size").asInt();
            for (JsonNode input : config.path("input")) {
                if (input.path("optional").asBoolean()) {
                    optional.add(input.path("name").asText());
                }
            }
        }
        List<Input> inputs = new ArrayList<>();
        boolean dynamic = true;
        for (JsonNode input : metadata.path("inputs")) {
            String name = input.path("name").asText();
            String type = input.path("datatype").asText();
            DataType known = DataType.ofWireName(type);
            if (known == null) {
                throw ServingException.of(
                        ErrorCode.UNIMPLEMENTED,
                        "input '" + name + "' of model '" + model + "' has the type '" + type
                                + "', which is not one of Open Inference");
            }
            long[] dims = new long[input.path("shape").size()];
            for (int i = 0; i < dims.length; i++) {
                dims[i] = input.path("shape").path(i).asLong();
            }
            dynamic &= dims.length > 0 && dims[0] < 0;
            inputs.add(new Input(name, known, Shape.of(dims), optional.contains(name)));
        }
        // Without a configuration a first dimension of any size is taken for the batch dimension.
        boolean batched = config == null ? dynamic && !inputs.isEmpty() : most > 0;
        return new ModelSignature(model, List.copyOf(inputs), batched, most);
    }

    /** The signature of a model in this process. */
    public static ModelSignature of(ModelMetadata metadata, boolean sequence, boolean decoupled) {
        String model = metadata.id().model();
        requireIndependent(model, sequence, decoupled);
        return new ModelSignature(
                model,
                metadata.inputs().stream()
                        .map(input -> new Input(input.name(), input.dataType(), input.shape(), input.optional()))
                        .toList(),
                metadata.maxBatchSize() > 0,
                metadata.maxBatchSize());
    }

    private static void requireIndependent(String model, boolean sequence, boolean decoupled) {
        if (sequence || decoupled) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "model '" + model + "' " + (sequence ? "takes sequences of requests" : "is decoupled")
                            + " (expected: a model with one response to each independent request)");
        }
    }

    /** Whether every input has a known size, without the batch dimension. */
    public boolean isStatic(Input input) {
        return !element(input).isDynamic();
    }

    /** The shape of an input without the batch dimension. */
    public Shape element(Input input) {
        return batched ? input.shape().withoutFirst() : input.shape();
    }

    /** The input of a name. @throws ServingException INVALID_ARGUMENT for a name that the model does not have */
    public Input input(String name, String where) {
        for (Input input : inputs) {
            if (input.name().equals(name)) {
                return input;
            }
        }
        List<String> names = inputs.stream().map(Input::name).toList();
        throw ServingException.invalidArgument(
                where + ": model '" + model + "' has no input '" + name + "'",
                NameSuggestions.didYouMean(name, names, "it has " + names));
    }

    /**
     * Checks the size of a batch.
     *
     * @throws ServingException INVALID_ARGUMENT for a batch size that the model does not take
     */
    public void requireBatchSize(int batchSize) {
        if (batchSize > 1 && !batched) {
            throw ServingException.invalidArgument("--batch-size " + batchSize + ": model '" + model
                    + "' is not batched (expected: 1, or a model with max_batch_size above 0)");
        }
        if (maxBatchSize > 0 && batchSize > maxBatchSize) {
            throw ServingException.invalidArgument("--batch-size " + batchSize + ": the largest batch of model '"
                    + model + "' is " + maxBatchSize + " (expected: 1 to " + maxBatchSize + ")");
        }
    }

    /**
     * The shapes of the elements, without the batch dimension, by input.
     *
     * @param given the shapes of {@code --shape}, with the batch dimension or without it
     * @throws ServingException INVALID_ARGUMENT for a shape that does not fit
     */
    public Map<String, Shape> elementShapes(Map<String, long[]> given) {
        Map<String, Shape> shapes = new java.util.LinkedHashMap<>();
        for (String name : new TreeSet<>(given.keySet())) {
            Input unused = input(name, "--shape");
        }
        for (Input input : inputs) {
            Shape element = element(input);
            long[] dims = given.get(input.name());
            if (dims != null) {
                Shape wanted = Shape.of(
                        batched && dims.length == input.shape().rank()
                                ? Arrays.copyOfRange(dims, 1, dims.length)
                                : dims);
                if (!element.accepts(wanted)) {
                    throw ServingException.invalidArgument(
                            "--shape " + input.name() + ":" + wanted + " does not fit the model (expected: " + element
                                    + (batched ? ", without the batch dimension)" : ")"));
                }
                element = wanted;
            }
            shapes.put(input.name(), element);
        }
        return shapes;
    }

    /** The shape of a request's input. */
    Shape whole(Shape element, int batchSize) {
        return batched ? element.prepend(batchSize) : element;
    }
}
