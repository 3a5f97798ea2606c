// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ServingException;
import io.nereid.base.access.Permission;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v2.codec.CodecBuffers;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.DocumentJsonWriter;
import io.nereid.protocols.v2.codec.LoadParameters;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelStatus;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** The REST handlers of health, metadata, model configuration and model repository. Thread-safe. */
final class RestManagement {
    private final CodecContext context;

    RestManagement(CodecContext context) {
        this.context = context;
    }

    void server(HttpExchange exchange) {
        JsonWriter json = context.buffers().writer();
        json.beginObject().name("name").value(context.options.serverName());
        json.name("version").value(context.options.serverVersion());
        json.name("extensions").beginArray();
        RepositoryIndex.extensions(context).forEach(json::value);
        json.endArray().endObject();
        reply(exchange, 200, json);
    }

    void live(HttpExchange exchange) {
        flag(exchange, "live", context.control.live());
    }

    void ready(HttpExchange exchange) {
        flag(exchange, "ready", context.control.ready());
    }

    private void flag(HttpExchange exchange, String name, boolean value) {
        if (!context.options.healthBodies()) {
            exchange.reply(empty(value ? 200 : 503));
            return;
        }
        JsonWriter json = context.buffers().writer();
        json.beginObject().name(name).value(value).endObject();
        reply(exchange, value ? 200 : 503, json);
    }

    private static HttpReply empty(int status) {
        return HttpReply.text(status, "", new byte[0]);
    }

    void models(HttpExchange exchange) {
        List<ModelStatus> index = context.control.index();
        JsonWriter json = context.buffers().writer();
        json.beginObject().name("models").beginArray();
        for (ModelStatus status : index) {
            if (exchange.caller().may(Permission.METADATA, status.model())) {
                json.value(status.model());
            }
        }
        json.endArray().endObject();
        reply(exchange, 200, json);
    }

    void modelReady(HttpExchange exchange, ModelRef model) {
        boolean ready = context.control.ready(model);
        if (ready && !context.options.healthBodies()) {
            exchange.reply(empty(200));
            return;
        }
        JsonWriter json = context.buffers().writer();
        json.beginObject().name("name").value(model.model()).name("ready").value(ready);
        if (!ready) {
            json.name("error").value(RepositoryIndex.notReady(model.model()));
        }
        json.endObject();
        reply(exchange, ready ? 200 : 503, json);
    }

    void metadata(HttpExchange exchange, ModelRef model) {
        ModelMetadata metadata = context.engine.metadata(model);
        String name = metadata.id().model();
        List<String> versions = RepositoryIndex.versions(context.control, name);
        JsonWriter json = context.buffers().writer();
        json.beginObject().name("name").value(name).name("versions").beginArray();
        versions.forEach(json::value);
        json.endArray().name("platform").value(metadata.platform());
        specs(json, "inputs", metadata.inputs());
        specs(json, "outputs", metadata.outputs());
        if (!metadata.properties().isEmpty()) {
            json.name("properties").beginObject();
            for (Map.Entry<String, String> entry : metadata.properties().entrySet()) {
                json.name(entry.getKey()).value(entry.getValue());
            }
            json.endObject();
        }
        json.endObject();
        reply(exchange, 200, json);
    }

    private static void specs(JsonWriter json, String name, List<TensorSpec> specs) {
        json.name(name).beginArray();
        for (TensorSpec spec : specs) {
            json.beginObject().name("name").value(spec.name());
            json.name("datatype").value(spec.dataType().name()).name("shape").beginArray();
            for (long dim : spec.shape().dims()) {
                json.value(dim);
            }
            json.endArray().endObject();
        }
        json.endArray();
    }

    void config(HttpExchange exchange, ModelRef model) {
        ModelConfig config = context.engine.config(model);
        JsonWriter json = context.buffers().writer();
        DocumentJsonWriter.write(config.document(), json);
        reply(exchange, 200, json);
    }

    void index(HttpExchange exchange) {
        boolean readyOnly = false;
        JsonReader reader = body(context, exchange);
        if (reader != null) {
            reader.beginObject();
            while (reader.nextField()) {
                if (reader.keyEquals("ready")) {
                    if (reader.peek() != JsonToken.BOOLEAN) {
                        throw ServingException.invalidArgument("Invalid value for 'ready': expected a boolean");
                    }
                    readyOnly = reader.readBoolean();
                } else {
                    reader.skipValue();
                }
            }
            reader.expectEnd();
        }
        List<RepositoryIndex.IndexEntry> entries = RepositoryIndex.index(context.control, readyOnly, exchange.caller());
        JsonWriter json = context.buffers().writer();
        json.beginArray();
        for (RepositoryIndex.IndexEntry entry : entries) {
            json.beginObject().name("name").value(entry.model());
            given(json, "version", entry.version());
            given(json, "state", entry.state());
            given(json, "reason", entry.reason());
            json.endObject();
        }
        json.endArray();
        reply(exchange, 200, json);
    }

    private static void given(JsonWriter json, String name, String value) {
        if (!value.isEmpty()) {
            json.name(name).value(value);
        }
    }

    void load(HttpExchange exchange) {
        String model = exchange.pathParameter(0);
        ModelReferences.checkLoadable(model);
        if (context.mustOffload(exchange.body().size())) {
            context.offload(() -> {
                try {
                    loadNow(exchange, model);
                } catch (RuntimeException | OutOfMemoryError e) {
                    exchange.fail(ServingException.from(e));
                }
            });
        } else {
            loadNow(exchange, model);
        }
    }

    private void loadNow(HttpExchange exchange, String model) {
        answer(exchange, model, "load", context.control.load(model, loadOptions(exchange)));
    }

    void unload(HttpExchange exchange) {
        String model = exchange.pathParameter(0);
        ModelReferences.checkLoadable(model);
        answer(exchange, model, "unload", context.control.unload(model, unloadsDependents(exchange)));
    }

    void withRepositoryName(HttpExchange exchange) {
        throw RepositoryIndex.repositoryName();
    }

    private LoadOptions loadOptions(HttpExchange exchange) {
        LoadParameters parameters = new LoadParameters(context.options.modelUpload());
        parameters(exchange, (name, reader) -> {
            Object value = LoadParameters.isFile(name) ? fileContent(name, reader) : scalar(reader);
            if (value == null) {
                throw ServingException.invalidArgument("load parameter '" + name
                        + "' has invalid type. It should be either 'int', 'bool', 'string', or 'double'.");
            }
            parameters.put(name, value);
        });
        return parameters.options();
    }

    private byte[] fileContent(String name, JsonReader reader) {
        if (reader.peek() != JsonToken.STRING) {
            throw LoadParameters.wrongFile(name);
        }
        ByteSink content = new ByteSink(1024);
        reader.readBase64(content);
        return Arrays.copyOf(content.array(), content.length());
    }

    /** Reads a String, Boolean, Long or Double; returns null and reads nothing for other values. */
    static @Nullable Object scalar(JsonReader reader) {
        return switch (reader.peek()) {
            case STRING -> reader.readString();
            case BOOLEAN -> reader.readBoolean();
            case NUMBER -> reader.isIntegral() ? (Object) reader.readLong() : (Object) reader.readDouble();
            default -> null;
        };
    }

    private boolean unloadsDependents(HttpExchange exchange) {
        boolean[] dependents = {false};
        parameters(exchange, (name, reader) -> {
            if (name.equals("unload_dependents")) {
                dependents[0] = reader.readBoolean();
            } else {
                reader.skipValue();
            }
        });
        return dependents[0];
    }

    /** Calls {@code each} for every entry of {@code parameters}, with the reader positioned before its value. */
    private void parameters(HttpExchange exchange, BiConsumer<String, JsonReader> each) {
        JsonReader reader = body(context, exchange);
        if (reader == null) {
            return;
        }
        reader.beginObject();
        while (reader.nextField()) {
            if (reader.keyEquals("parameters")) {
                if (!reader.tryNull()) {
                    reader.beginObject();
                    while (reader.nextField()) {
                        each.accept(reader.key(), reader);
                    }
                }
            } else {
                reader.skipValue();
            }
        }
        reader.expectEnd();
    }

    private void answer(HttpExchange exchange, String model, String what, CompletionStage<Void> stage) {
        stage.whenComplete((done, failure) -> {
            if (failure != null) {
                exchange.fail(RepositoryIndex.failure(failure));
            } else {
                JsonWriter json = context.buffers().writer();
                json.beginObject()
                        .name("name")
                        .value(model)
                        .name(what)
                        .value(true)
                        .endObject();
                reply(exchange, 200, json);
            }
        });
    }

    /** A reader at the start of the body, or null when the body is empty. */
    static @Nullable JsonReader body(CodecContext context, HttpExchange exchange) {
        int length = exchange.body().size();
        if (length == 0) {
            return null;
        }
        CodecBuffers buffers = context.buffers();
        byte[] text = buffers.text(length);
        exchange.body().getBytes(0, text, 0, length);
        buffers.reader.reset(text, 0, length);
        return buffers.reader;
    }

    static void reply(HttpExchange exchange, int status, JsonWriter json) {
        exchange.reply(HttpReply.json(status, json.array(), json.length()));
    }
}
