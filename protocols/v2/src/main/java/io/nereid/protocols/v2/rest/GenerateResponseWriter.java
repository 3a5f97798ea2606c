// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.json.JsonWriter;
import io.nereid.protocols.v2.codec.DocumentJsonWriter;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.Tensor;
import java.util.Map;

/** Encodes a response as the flat JSON object of the generate extension. Holds no state. */
final class GenerateResponseWriter {
    private GenerateResponseWriter() {}

    /**
     * Writes the outputs by name, a single element without an array, and the response's parameters. The caller still
     * owns the response.
     */
    static void write(InferenceResponse response, JsonWriter json) {
        json.beginObject();
        if (!response.id().isEmpty()) {
            json.name("id").value(response.id());
        }
        json.name("model_name").value(response.servable().model());
        long version = response.servable().version();
        json.name("model_version").value(ModelReferences.unversioned(version) ? "" : Long.toString(version));
        for (Tensor output : response.outputs()) {
            json.name(output.name());
            RestInferWriter.writeData(output, output.shape().elementCount() == 1, json);
        }
        for (Map.Entry<String, Object> parameter : response.parameters().entrySet()) {
            json.name(parameter.getKey());
            DocumentJsonWriter.write(parameter.getValue(), json);
        }
        json.endObject();
    }
}
