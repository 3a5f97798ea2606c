// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.json.JsonWriter;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tfdata.TfDataType;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The signatures of a model as JSON of TensorFlow Serving's REST API, which follows protobuf's JSON mapping: every
 * field is written, and 64-bit integers are strings. Holds no state.
 */
final class MetadataJson {
    private MetadataJson() {}

    static String of(ModelMetadata metadata) {
        JsonWriter w = new JsonWriter(1024);
        w.beginObject().name("model_spec").beginObject();
        w.name("name").value(metadata.id().model());
        w.name("signature_name").value("");
        w.name("version").value(Long.toString(metadata.id().version()));
        w.endObject().name("metadata").beginObject();
        w.name("signature_def").beginObject().name("signature_def").beginObject();
        for (Map.Entry<String, Signature> each : new TreeMap<>(metadata.signatures()).entrySet()) {
            Signature signature = each.getValue();
            w.name(each.getKey()).beginObject();
            w.name("inputs");
            tensors(w, signature, signature.inputs());
            w.name("outputs");
            tensors(w, signature, signature.outputs());
            w.name("method_name").value(signature.method());
            w.name("defaults").beginObject().endObject();
            w.endObject();
        }
        w.endObject().endObject().endObject().endObject();
        return new String(w.array(), 0, w.length(), StandardCharsets.UTF_8);
    }

    private static void tensors(JsonWriter w, Signature signature, List<TensorSpec> specs) {
        w.beginObject();
        for (TensorSpec spec : specs) {
            boolean unknownRank = spec.unchecked() && spec.shape().rank() == 0;
            w.name(spec.name()).beginObject();
            w.name("dtype").value(TfDataType.of(spec.dataType()).protoName());
            w.name("tensor_shape").beginObject().name("dim").beginArray();
            for (long size : spec.shape().dims()) {
                w.beginObject().name("size").value(Long.toString(size));
                w.name("name").value("").endObject();
            }
            w.endArray().name("unknown_rank").value(unknownRank).endObject();
            w.name("name").value(signature.tensors().getOrDefault(spec.name(), spec.name()));
            w.endObject();
        }
        w.endObject();
    }
}
