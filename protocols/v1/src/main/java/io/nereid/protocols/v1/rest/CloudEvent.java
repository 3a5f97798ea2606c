// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A request in the form of a CloudEvent, and the conversion of its response to a CloudEvent of the same mode. In binary
 * mode the attributes are headers and the body is the data; in structured mode the body is a JSON object with both.
 * Error responses are not converted. Immutable.
 */
final class CloudEvent {
    /** The content type of structured mode. */
    static final String STRUCTURED = "application/cloudevents+json";

    private static final String EXCEPTIONS = "Cloud Event Exceptions: ";
    private static final String PREFIX = "ce-";
    private static final List<String> REQUIRED = List.of("source", "id", "type", "specversion");
    private static final List<String> OWN = List.of("id", "time", "type", "source", "specversion", "datacontenttype");

    private final boolean structured;
    /** Values in the form in which they are sent again: the text of headers, or the JSON text. */
    private final Map<String, String> attributes;

    private final byte[] data;

    private CloudEvent(boolean structured, Map<String, String> attributes, byte[] data) {
        this.structured = structured;
        this.attributes = attributes;
        this.data = data;
    }

    /**
     * The event of a request whose headers declare one; null when they do not.
     *
     * @throws ServingException INVALID_ARGUMENT for an incomplete event
     */
    static @Nullable CloudEvent of(HttpExchange x) {
        if (x.header("ce-specversion") != null) {
            return binary(x);
        }
        String type = x.header("content-type");
        if (type != null && type.regionMatches(true, 0, STRUCTURED, 0, STRUCTURED.length())) {
            return structured(x, true);
        }
        return null;
    }

    /**
     * The event in the body of a request whose headers do not declare one, or null: KServe treats an object as an event
     * if it has all of {@code time}, {@code type}, {@code source}, {@code id}, {@code specversion} and {@code data}.
     */
    static @Nullable CloudEvent inBody(HttpExchange x) {
        return structured(x, false);
    }

    private static CloudEvent binary(HttpExchange x) {
        for (String name : REQUIRED) {
            if (x.header(PREFIX + name) == null) {
                throw ServingException.invalidArgument(
                        EXCEPTIONS + "Failed to find " + name + " in HTTP request",
                        "the header " + PREFIX + name + " is missing beside ce-specversion");
            }
        }
        checkVersion(String.valueOf(x.header("ce-specversion")));
        Map<String, String> attributes = new LinkedHashMap<>();
        x.headers((name, value) -> {
            if (name.startsWith(PREFIX)) {
                attributes.put(name.substring(PREFIX.length()), value);
            }
        });
        return new CloudEvent(false, attributes, new byte[0]);
    }

    private static @Nullable CloudEvent structured(HttpExchange x, boolean declared) {
        MemoryRegion body = x.body();
        int length = body.size();
        byte[] text = new byte[length + JsonReader.SLACK];
        body.getBytes(0, text, 0, length);
        JsonReader reader = new JsonReader();
        reader.reset(text, 0, length);
        Map<String, String> attributes = new LinkedHashMap<>();
        byte[] data = null;
        try {
            if (!declared && reader.peek() != JsonToken.OBJECT) {
                return null;
            }
            reader.beginObject();
            while (reader.nextField()) {
                String name = reader.key();
                reader.peek();
                int from = reader.position();
                if (name.equals("data_base64")) {
                    ByteSink sink = new ByteSink(256);
                    reader.readBase64(sink);
                    data = Arrays.copyOf(sink.array(), sink.length());
                    continue;
                }
                reader.skipValue();
                byte[] value = Arrays.copyOfRange(text, from, reader.position());
                if (name.equals("data")) {
                    data = value;
                } else {
                    attributes.put(name, new String(value, StandardCharsets.UTF_8).strip());
                }
            }
            reader.expectEnd();
        } catch (ServingException e) {
            if (!declared) {
                return null;
            }
            throw ServingException.invalidArgument(
                    "Unrecognized request format: " + EXCEPTIONS + e.getMessage(), e.remedy());
        }
        if (!declared
                && (data == null
                        || !attributes.containsKey("time")
                        || !attributes.keySet().containsAll(REQUIRED))) {
            return null;
        }
        for (String name : REQUIRED) {
            if (!attributes.containsKey(name)) {
                throw ServingException.invalidArgument(
                        EXCEPTIONS + "Failed to find " + name + " in HTTP request",
                        "a body of type " + STRUCTURED + " has \"" + name + "\"");
            }
        }
        String version = attributes.get("specversion");
        checkVersion(version == null ? "" : version.replace("\"", ""));
        if (data == null) {
            throw ServingException.invalidArgument(
                    EXCEPTIONS + "the event has no data", "put the request into \"data\": {\"instances\": [...]}");
        }
        return new CloudEvent(true, attributes, data);
    }

    private static void checkVersion(String version) {
        if (!version.equals("1.0") && !version.equals("0.3")) {
            throw ServingException.invalidArgument(
                    EXCEPTIONS + "Found invalid specversion " + version, "versions 1.0 and 0.3 are supported");
        }
    }

    /** Opens the event's data; {@code exchange} is the one that the event arrived with. */
    void open(RestRequestBody body, HttpExchange exchange) {
        if (structured) {
            body.open(data, data.length);
        } else {
            body.open(exchange.body());
        }
    }

    /** The exception for data that cannot be read, in KServe's wording for events. */
    ServingException explained(ServingException e) {
        String unreadable = "Unrecognized request format: ";
        return structured || !e.getMessage().startsWith(unreadable)
                ? e
                : ServingException.invalidArgument(
                        "Failed to decode or parse binary json cloudevent: "
                                + e.getMessage().substring(unreadable.length()),
                        e.remedy());
    }

    /** Converts a response to an event, unless it is an error. */
    HttpReply answer(HttpReply reply, String model, V1Options options) {
        if (reply.status() != 200) {
            return reply;
        }
        V1Options.Events settings = options.events();
        Map<String, String> all = new LinkedHashMap<>();
        all.put("specversion", text("1.0"));
        all.put("id", text(UUID.randomUUID().toString()));
        all.put("source", text(settings.source() == null ? "io.kserve.inference." + model : settings.source()));
        all.put("type", text(settings.type()));
        all.put("time", text(Instant.ofEpochMilli(options.clock().millis()).toString()));
        if (settings.merge()) {
            String version = attributes.get("specversion");
            if (version != null) {
                all.put("specversion", version);
            }
            String dataType = attributes.get("datacontenttype");
            if (structured && dataType != null) {
                all.put("datacontenttype", dataType);
            }
            attributes.forEach((name, value) -> {
                if (!OWN.contains(name)) {
                    all.put(name, value);
                }
            });
        }
        return structured ? whole(reply, all) : headed(reply, all);
    }

    private String text(String value) {
        return structured ? HttpReply.quote(value) : value;
    }

    private static HttpReply headed(HttpReply reply, Map<String, String> all) {
        List<String> headers = new ArrayList<>(List.of(reply.headers()));
        all.forEach((name, value) -> {
            headers.add(PREFIX + name);
            headers.add(value);
        });
        return new HttpReply(reply.status(), reply.contentType(), headers.toArray(new String[0]), reply.content());
    }

    private static HttpReply whole(HttpReply reply, Map<String, String> all) {
        ResponseBody content = reply.content();
        ByteArrayOutputStream body = new ByteArrayOutputStream(content.textLength() + 256);
        StringBuilder head = new StringBuilder("{");
        all.forEach((name, value) ->
                head.append(HttpReply.quote(name)).append(':').append(value).append(','));
        body.writeBytes(head.append("\"data\":").toString().getBytes(StandardCharsets.UTF_8));
        body.write(content.text(), 0, content.textLength());
        body.write('}');
        byte[] bytes = body.toByteArray();
        return new HttpReply(reply.status(), STRUCTURED, reply.headers(), new ResponseBody(bytes, bytes.length));
    }
}
