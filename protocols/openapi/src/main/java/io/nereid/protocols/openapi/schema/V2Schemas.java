// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.schema;

import static io.nereid.protocols.openapi.schema.OpenApiNodes.object;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.schemaReference;

import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Schemas and examples of a model's requests and responses of Open Inference. Confined to one thread. */
public final class V2Schemas {
    private final ModelView model;
    private final Map<String, @Nullable Object> schemas;

    /** @param schemas receives the schemas of the components */
    public V2Schemas(ModelView model, Map<String, @Nullable Object> schemas) {
        this.model = model;
        this.schemas = schemas;
    }

    /** The schema of the body of {@code /infer}. */
    public Map<String, @Nullable Object> inferRequest() {
        List<TensorSpec> inputs = model.metadata().inputs();
        List<TensorSpec> outputs = model.metadata().outputs();
        List<Object> requested = new ArrayList<>();
        outputs.forEach(output -> requested.add(output.name()));
        Map<String, @Nullable Object> output = object(
                "type",
                "object",
                "required",
                List.of("name"),
                "properties",
                object("name", names(requested), "parameters", schemaReference("V2Parameters")));
        schemas.put("RequestedOutput", output);
        Map<String, @Nullable Object> inputList = list(tensors("Input", inputs, model.missingValues()));
        inputList.put("minItems", (long) ModelView.required(inputs).size());
        inputList.put("maxItems", (long) inputs.size());
        schemas.put(
                "InferRequest",
                object(
                        "type",
                        "object",
                        "required",
                        List.of("inputs"),
                        "properties",
                        object(
                                "id",
                                object("type", "string", "description", "Comes back in the response"),
                                "parameters",
                                schemaReference("V2Parameters"),
                                "inputs",
                                inputList,
                                "outputs",
                                list(schemaReference("RequestedOutput")))));
        return schemaReference("InferRequest");
    }

    /** The schema of the response of {@code /infer}. */
    public Map<String, @Nullable Object> inferResponse() {
        schemas.put(
                "InferResponse",
                object(
                        "type",
                        "object",
                        "required",
                        List.of("model_name", "outputs"),
                        "properties",
                        object(
                                "model_name",
                                object("type", "string"),
                                "model_version",
                                object("type", "string"),
                                "id",
                                object("type", "string"),
                                "parameters",
                                schemaReference("V2Parameters"),
                                "outputs",
                                list(tensors("Output", model.metadata().outputs(), false)))));
        return schemaReference("InferResponse");
    }

    private static Map<String, @Nullable Object> list(Map<String, @Nullable Object> items) {
        return object("type", "array", "items", items);
    }

    private static Map<String, @Nullable Object> names(List<Object> names) {
        return names.isEmpty() ? object("type", "string") : object("type", "string", "enum", names);
    }

    /** The schema of any of some tensors. */
    private Map<String, @Nullable Object> tensors(String kind, List<TensorSpec> specs, boolean nullable) {
        List<Object> choices = new ArrayList<>();
        for (int i = 0; i < specs.size(); i++) {
            String name = kind + i;
            schemas.put(name, tensor(specs.get(i), nullable));
            choices.add(schemaReference(name));
        }
        if (choices.isEmpty()) {
            return schemaReference(kind.equals("Input") ? "V2InputTensor" : "V2OutputTensor");
        }
        return specs.size() == 1 ? schemaReference(kind + 0) : object("oneOf", choices);
    }

    private static Map<String, @Nullable Object> tensor(TensorSpec spec, boolean nullable) {
        long[] dims = spec.shape().dims();
        Map<String, @Nullable Object> shape = object(
                "type",
                "array",
                "items",
                object("type", "integer", "format", "int64"),
                "description",
                spec.unchecked() ? "Any shape" : "Of " + spec.shape() + ", where -1 is any size");
        Map<String, @Nullable Object> data = object(
                "type", "array", "items", TensorSchemas.element(spec.dataType(), nullable), "description", "Row-major");
        if (!spec.unchecked()) {
            shape.put("minItems", (long) dims.length);
            shape.put("maxItems", (long) dims.length);
            shape.put("example", TensorSchemas.list(TensorSchemas.exampleShape(spec)));
        }
        return object(
                "type",
                "object",
                "title",
                spec.name(),
                "required",
                List.of("name", "shape", "datatype"),
                "properties",
                object(
                        "name",
                        names(List.of(spec.name())),
                        "shape",
                        shape,
                        "datatype",
                        names(List.of(spec.dataType().name())),
                        "parameters",
                        schemaReference("V2Parameters"),
                        "data",
                        data),
                "x-nereid-shape",
                TensorSchemas.list(dims));
    }

    /** A body of {@code /infer} that the model takes; null if there is none or it would be too long. */
    public @Nullable Object inferExample() {
        List<TensorSpec> inputs = model.examples(model.metadata().inputs());
        if (model.decoupled() || inputs.isEmpty() || !TensorSchemas.writable(inputs)) {
            return null;
        }
        List<Object> tensors = new ArrayList<>();
        for (TensorSpec spec : inputs) {
            tensors.add(object(
                    "name",
                    spec.name(),
                    "shape",
                    TensorSchemas.list(TensorSchemas.exampleShape(spec)),
                    "datatype",
                    spec.dataType().name(),
                    "data",
                    TensorSchemas.flat(spec)));
        }
        Map<String, @Nullable Object> body = object("id", "example");
        if (model.sequence()) {
            body.put("parameters", object("sequence_id", 1L, "sequence_start", true, "sequence_end", true));
        }
        body.put("inputs", tensors);
        return body;
    }

    /** The schema of the bodies of {@code /generate} and {@code /generate_stream}. */
    public Map<String, @Nullable Object> generateRequest() {
        Map<String, @Nullable Object> properties = object();
        List<Object> required = new ArrayList<>();
        for (TensorSpec spec : model.metadata().inputs()) {
            properties.put(spec.name(), oneOrMore(spec.dataType(), model.missingValues()));
            if (!spec.optional()) {
                required.add(spec.name());
            }
        }
        return generate("GenerateRequest", properties, required);
    }

    /** The schema of a response of {@code /generate}. */
    public Map<String, @Nullable Object> generateResponse() {
        Map<String, @Nullable Object> properties =
                object("model_name", object("type", "string"), "model_version", object("type", "string"));
        for (TensorSpec spec : model.metadata().outputs()) {
            properties.put(spec.name(), oneOrMore(spec.dataType(), false));
        }
        return generate("GenerateResponse", properties, List.of());
    }

    private Map<String, @Nullable Object> generate(
            String name, Map<String, @Nullable Object> properties, List<Object> required) {
        Map<String, @Nullable Object> schema = object("type", "object");
        if (!required.isEmpty()) {
            schema.put("required", required);
        }
        schema.put("properties", properties);
        schema.put("additionalProperties", true);
        schemas.put(name, schema);
        return schemaReference(name);
    }

    private static Map<String, @Nullable Object> oneOrMore(DataType type, boolean nullable) {
        Map<String, @Nullable Object> element = TensorSchemas.element(type, nullable);
        return object("oneOf", List.of(element, list(TensorSchemas.element(type, nullable))));
    }

    /**
     * A body of {@code /generate} that the model takes; null if there is none or it would be too long.
     *
     * @param streaming whether for {@code /generate_stream}, which takes any number of responses
     */
    public @Nullable Object generateExample(boolean streaming) {
        List<TensorSpec> inputs = model.examples(model.metadata().inputs());
        if ((model.decoupled() && !streaming)
                || model.sequence()
                || inputs.isEmpty()
                || !TensorSchemas.writable(inputs)) {
            return null;
        }
        Map<String, @Nullable Object> body = object();
        for (TensorSpec spec : inputs) {
            List<Object> elements = TensorSchemas.flat(spec);
            body.put(spec.name(), elements.size() == 1 ? elements.get(0) : elements);
        }
        return body;
    }
}
