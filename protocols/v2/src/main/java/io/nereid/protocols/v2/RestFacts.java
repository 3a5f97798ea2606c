// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

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

/** What a server of REST tells of itself, of its models and of its errors, read and written. Confined to one body. */
final class RestFacts {
    /** How much of a body that is no JSON an error tells. */
    private static final int TOLD = 300;

    private final JsonReader json = new JsonReader();

    private RestFacts(byte[] body) {
        json.reset(Arrays.copyOf(body, body.length + JsonReader.SLACK), 0, body.length);
    }

    /** @throws ServingException FAILED_PRECONDITION for what is no metadata of V2 */
    static ModelMetadataResponse model(byte[] body) {
        ModelMetadataResponse.Builder made = ModelMetadataResponse.newBuilder();
        RestFacts facts = new RestFacts(body);
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

    /** As the other one. */
    static ServerMetadataResponse server(byte[] body) {
        ServerMetadataResponse.Builder made = ServerMetadataResponse.newBuilder();
        RestFacts facts = new RestFacts(body);
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

    /** The body that tells of a model. */
    static byte[] text(ModelMetadataResponse told) {
        JsonWriter json = new JsonWriter(256).beginObject();
        json.name("name").value(told.getName());
        strings("versions", told.getVersionsList(), json);
        json.name("platform").value(told.getPlatform());
        tensors("inputs", told.getInputsList(), json);
        tensors("outputs", told.getOutputsList(), json);
        if (told.getPropertiesCount() > 0) {
            json.name("properties").beginObject();
            told.getPropertiesMap().forEach((name, value) -> json.name(name).value(value));
            json.endObject();
        }
        json.endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    /** The body that tells of a server. */
    static byte[] text(ServerMetadataResponse told) {
        JsonWriter json = new JsonWriter(256).beginObject();
        json.name("name").value(told.getName()).name("version").value(told.getVersion());
        strings("extensions", told.getExtensionsList(), json);
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

    /** What a body tells of an error, in the words of KServe's router, V1, V2 or FastAPI; else its text. */
    static String error(byte[] body) {
        Map<String, String> said = new HashMap<>();
        try {
            RestFacts facts = new RestFacts(body);
            facts.fields(key -> {
                if (facts.json.peek() == JsonToken.STRING) {
                    said.put(key, facts.json.readString());
                } else {
                    facts.json.skipValue();
                }
            });
        } catch (ServingException e) {
            said.clear();
        }
        for (String key : new String[] {"cause", "error", "detail", "message"}) {
            String told = said.getOrDefault(key, "");
            if (!told.isEmpty()) {
                return told;
            }
        }
        return beginning(body);
    }

    /** The beginning of a body, as text. */
    static String beginning(byte[] body) {
        String text = new String(body, 0, Math.min(body.length, TOLD), StandardCharsets.UTF_8).strip();
        return body.length > TOLD ? text + "..." : text;
    }

    private static void read(Runnable reading) {
        try {
            reading.run();
        } catch (ServingException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "the service's metadata are none of V2: " + e.getMessage(), e);
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

    /** A string; other values as their text, null as nothing. */
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
