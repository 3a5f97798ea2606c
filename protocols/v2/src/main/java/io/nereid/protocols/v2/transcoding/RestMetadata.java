// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse.TensorMetadata;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Converts V2 metadata between JSON and protobuf, and reads the error texts of REST services. Confined to one body. */
final class RestMetadata {
    /** The most bytes of a body that an error message quotes. */
    private static final int MAX_QUOTED = 300;

    private final JsonReader json = new JsonReader();

    private RestMetadata(byte[] body) {
        json.reset(Arrays.copyOf(body, body.length + JsonReader.SLACK), 0, body.length);
    }

    /**
     * Reads model metadata.
     *
     * @throws ServingException FAILED_PRECONDITION for a body that is not V2 metadata
     */
    static ModelMetadataResponse model(byte[] body) {
        ModelMetadataResponse.Builder made = ModelMetadataResponse.newBuilder();
        RestMetadata facts = new RestMetadata(body);
        read(() -> facts.fields(key -> {
            switch (key) {
                case "name" -> made.setName(facts.text());
                case "platform" -> made.setPlatform(facts.text());
                case "versions" -> facts.each(() -> made.addVersions(facts.text()));
                case "inputs" -> facts.each(() -> made.addInputs(facts.tensor()));
                case "outputs" -> facts.each(() -> made.addOutputs(facts.tensor()));
                case "properties" -> facts.fields(name -> made.putProperties(name, facts.text()));
                default -> facts.json.skipValue();
            }
        }));
        return made.build();
    }

    /**
     * Reads server metadata.
     *
     * @throws ServingException FAILED_PRECONDITION for a body that is not V2 metadata
     */
    static ServerMetadataResponse server(byte[] body) {
        ServerMetadataResponse.Builder made = ServerMetadataResponse.newBuilder();
        RestMetadata facts = new RestMetadata(body);
        read(() -> facts.fields(key -> {
            switch (key) {
                case "name" -> made.setName(facts.text());
                case "version" -> made.setVersion(facts.text());
                case "extensions" -> facts.each(() -> made.addExtensions(facts.text()));
                default -> facts.json.skipValue();
            }
        }));
        return made.build();
    }

    /** The JSON of model metadata. */
    static byte[] text(ModelMetadataResponse metadata) {
        JsonWriter json = new JsonWriter(256).beginObject();
        json.name("name").value(metadata.getName());
        strings("versions", metadata.getVersionsList(), json);
        json.name("platform").value(metadata.getPlatform());
        tensors("inputs", metadata.getInputsList(), json);
        tensors("outputs", metadata.getOutputsList(), json);
        if (metadata.getPropertiesCount() > 0) {
            json.name("properties").beginObject();
            metadata.getPropertiesMap().forEach((name, value) -> json.name(name).value(value));
            json.endObject();
        }
        json.endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    /** The JSON of server metadata. */
    static byte[] text(ServerMetadataResponse metadata) {
        JsonWriter json = new JsonWriter(256).beginObject();
        json.name("name").value(metadata.getName()).name("version").value(metadata.getVersion());
        strings("extensions", metadata.getExtensionsList(), json);
        json.endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    private static void strings(String name, List<String> values, JsonWriter json) {
        json.name(name).beginArray();
        values.forEach(json::value);
        json.endArray();
    }

    private static void tensors(String name, List<TensorMetadata> values, JsonWriter json) {
        json.name(name).beginArray();
        for (TensorMetadata value : values) {
            json.beginObject().name("name").value(value.getName());
            json.name("datatype").value(value.getDatatype()).name("shape").beginArray();
            value.getShapeList().forEach(json::value);
            json.endArray().endObject();
        }
        json.endArray();
    }

    /** The error message in a body of KServe's router, V1, V2 or FastAPI; otherwise the beginning of the body. */
    static String error(byte[] body) {
        Map<String, String> found = new HashMap<>();
        try {
            RestMetadata facts = new RestMetadata(body);
            facts.fields(key -> {
                if (facts.json.peek() == JsonToken.STRING) {
                    found.put(key, facts.json.readString());
                } else {
                    facts.json.skipValue();
                }
            });
        } catch (ServingException e) {
            found.clear();
        }
        for (String key : new String[] {"cause", "error", "detail", "message"}) {
            String message = found.getOrDefault(key, "");
            if (!message.isEmpty()) {
                return message;
            }
        }
        return beginning(body);
    }

    /** The beginning of a body, as text. */
    static String beginning(byte[] body) {
        String text = new String(body, 0, Math.min(body.length, MAX_QUOTED), StandardCharsets.UTF_8).strip();
        return body.length > MAX_QUOTED ? text + "..." : text;
    }

    private static void read(Runnable reading) {
        try {
            reading.run();
        } catch (ServingException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "the service's metadata is not V2 metadata: " + e.getMessage(), e);
        }
    }

    private TensorMetadata tensor() {
        TensorMetadata.Builder made = TensorMetadata.newBuilder();
        fields(key -> {
            switch (key) {
                case "name" -> made.setName(text());
                case "datatype" -> made.setDatatype(text());
                case "shape" -> each(() -> made.addShape(json.readLong()));
                default -> json.skipValue();
            }
        });
        return made.build();
    }

    private void fields(Consumer<String> each) {
        if (json.tryNull()) {
            return;
        }
        json.beginObject();
        while (json.nextField()) {
            each.accept(json.key());
        }
    }

    private void each(Runnable element) {
        if (json.tryNull()) {
            return;
        }
        json.beginArray();
        while (json.hasNext()) {
            element.run();
        }
    }

    /** A string, or the text of a number or boolean; empty for other values. */
    private String text() {
        return switch (json.peek()) {
            case STRING -> json.readString();
            case NUMBER -> json.isIntegral() ? Long.toString(json.readLong()) : Double.toString(json.readDouble());
            case BOOLEAN -> Boolean.toString(json.readBoolean());
            default -> {
                json.skipValue();
                yield "";
            }
        };
    }
}
