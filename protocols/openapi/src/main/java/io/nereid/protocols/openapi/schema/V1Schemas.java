// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.schema;

import static io.nereid.protocols.openapi.schema.OpenApiNodes.object;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.schemaReference;

import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Schemas and examples of a model's requests and responses of the V1 protocols, for its default signature. Confined to
 * one thread.
 */
public final class V1Schemas {
    private final ModelView model;
    private final Map<String, @Nullable Object> schemas;
    private final List<TensorSpec> inputs;
    private final List<TensorSpec> outputs;

    /** @param schemas receives the schemas of the components */
    public V1Schemas(ModelView model, Map<String, @Nullable Object> schemas) {
        this.model = model;
        this.schemas = schemas;
        Signature signature = model.metadata().signature("");
        this.inputs = signature == null ? model.metadata().inputs() : signature.inputs();
        this.outputs = signature == null ? model.metadata().outputs() : signature.outputs();
    }

    /** The schema of the body of {@code :predict}. */
    public Map<String, @Nullable Object> predictRequest() {
        Map<String, @Nullable Object> properties = object(
                "signature_name",
                object(
                        "type",
                        "string",
                        "enum",
                        new ArrayList<Object>(model.metadata().signatures().keySet())));
        if (rows(inputs)) {
            Map<String, @Nullable Object> row = values(inputs, 1, model.missingValues());
            schemas.put("Instance", row);
            properties.put("instances", object("type", "array", "items", schemaReference("Instance")));
        }
        properties.put("inputs", values(inputs, 0, model.missingValues()));
        schemas.put(
                "PredictRequest",
                object(
                        "type",
                        "object",
                        "description",
                        rows(inputs) ? "Exactly one of instances and inputs" : "The inputs do not have rows in common",
                        "properties",
                        properties));
        return schemaReference("PredictRequest");
    }

    /** The schema of the response of {@code :predict}. */
    public Map<String, @Nullable Object> predictResponse() {
        Map<String, @Nullable Object> properties = object();
        if (rows(inputs) && rows(outputs)) {
            schemas.put("Prediction", values(outputs, 1, false));
            properties.put("predictions", object("type", "array", "items", schemaReference("Prediction")));
        }
        properties.put("outputs", values(outputs, 0, false));
        schemas.put("PredictResponse", object("type", "object", "properties", properties));
        return schemaReference("PredictResponse");
    }

    /** Whether the first dimension of all tensors is one of rows. */
    private static boolean rows(List<TensorSpec> specs) {
        long rows = -2;
        for (TensorSpec spec : ModelView.required(specs)) {
            if (spec.shape().rank() == 0 || (rows != -2 && rows != spec.shape().dim(0))) {
                return false;
            }
            rows = spec.shape().dim(0);
        }
        return rows != -2;
    }

    /** The only tensor, or an object of tensors. */
    private static Map<String, @Nullable Object> values(List<TensorSpec> specs, int from, boolean nullable) {
        if (specs.size() == 1) {
            return value(specs.get(0), from, nullable);
        }
        Map<String, @Nullable Object> properties = object();
        List<Object> required = new ArrayList<>();
        for (TensorSpec spec : specs) {
            properties.put(spec.name(), value(spec, from, nullable));
            if (!spec.optional()) {
                required.add(spec.name());
            }
        }
        Map<String, @Nullable Object> schema = object("type", "object");
        if (!required.isEmpty()) {
            schema.put("required", required);
        }
        schema.put("properties", properties);
        return schema;
    }

    private static Map<String, @Nullable Object> value(TensorSpec spec, int from, boolean nullable) {
        if (spec.unchecked()) {
            return object("description", "Values of " + spec.dataType() + " in a shape that the model knows");
        }
        Map<String, @Nullable Object> element = spec.dataType() == DataType.BYTES
                ? object(
                        "oneOf",
                        List.of(
                                object("type", "string"),
                                object(
                                        "type",
                                        "object",
                                        "required",
                                        List.of("b64"),
                                        "properties",
                                        object("b64", object("type", "string", "format", "byte")))))
                : TensorSchemas.element(spec.dataType(), nullable);
        return TensorSchemas.nested(element, spec.shape().dims(), from);
    }

    /** A body of {@code :predict} that the model takes; null if there is none or it would be too long. */
    public @Nullable Object predictExample() {
        List<TensorSpec> needed = model.examples(inputs);
        if (model.sequence() || model.decoupled() || needed.isEmpty() || !TensorSchemas.writable(needed)) {
            return null;
        }
        boolean asRows = rows(inputs) && rows(outputs);
        int from = asRows ? 1 : 0;
        Object value;
        if (inputs.size() == 1) {
            value = TensorSchemas.nestedValue(needed.get(0), from);
        } else {
            Map<String, @Nullable Object> named = object();
            needed.forEach(spec -> named.put(spec.name(), TensorSchemas.nestedValue(spec, from)));
            value = named;
        }
        if (!asRows) {
            return object("inputs", value);
        }
        int rows = (int) TensorSchemas.exampleShape(needed.get(0))[0];
        return object("instances", Collections.nCopies(rows, value));
    }

    /** A body that asks for an explanation; null if there is none. */
    public @Nullable Object explainExample() {
        List<TensorSpec> needed = model.examples(inputs);
        if (!model.explainable() || !TensorSchemas.writable(needed)) {
            return null;
        }
        List<Object> row = new ArrayList<>();
        for (TensorSpec spec : needed) {
            long[] dims = TensorSchemas.exampleShape(spec);
            long width = needed.size() > 1 ? 1 : dims[dims.length - 1];
            row.addAll(Collections.nCopies((int) width, 0L));
        }
        List<Object> other = new ArrayList<>(Collections.nCopies(row.size(), 1L));
        return object(
                "instances",
                List.of(row),
                "parameters",
                object("method", "kernel_shap", "background", List.of(row, other)));
    }
}
