// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.Tensor;
import java.util.Map;

/** Writes an answer as the flat JSON object of the generate calls. Immutable. */
final class GenerateWriter {
    private GenerateWriter() {}

    /** The outputs by name, a single element bare, then the answer's parameters. The response stays the caller's. */
    static void write(InferenceResponse response, JsonWriter json) {
        json.beginObject();
        if (!response.id().isEmpty()) {
            json.name("id").value(response.id());
        }
        json.name("model_name").value(response.servable().model());
        long version = response.servable().version();
        json.name("model_version").value(Names.unversioned(version) ? "" : Long.toString(version));
        for (Tensor output : response.outputs()) {
            json.name(output.name());
            RestInferWriter.writeData(output, output.shape().elementCount() == 1, json);
        }
        for (Map.Entry<String, Object> parameter : response.parameters().entrySet()) {
            json.name(parameter.getKey());
            DocumentJson.write(parameter.getValue(), json);
        }
        json.endObject();
    }
}
