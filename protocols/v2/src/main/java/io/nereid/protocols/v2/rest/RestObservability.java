// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.DocumentJsonWriter;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The REST handlers of Triton's statistics, trace and logging extensions. Thread-safe. */
final class RestObservability {
    private final CodecContext context;

    RestObservability(CodecContext context) {
        this.context = context;
    }

    void allStatistics(HttpExchange exchange) {
        statistics(
                exchange,
                RepositoryIndex.visible(context.observation.statistics(null, ModelRef.ANY), exchange.caller()));
    }

    void statistics(HttpExchange exchange, ModelRef model) {
        statistics(exchange, context.observation.statistics(model.model(), model.version()));
    }

    void slowRequests(HttpExchange exchange, ModelRef model) {
        JsonWriter json = context.buffers().writer();
        RequestSamplesJson.write(context.observation.requestSamples(model.model(), model.version()), json);
        RestManagement.reply(exchange, 200, json);
    }

    private void statistics(HttpExchange exchange, List<ModelStatisticsSnapshot> reports) {
        JsonWriter json = context.buffers().writer();
        StatisticsJson.write(reports, json);
        RestManagement.reply(exchange, 200, json);
    }

    void traceSettings(HttpExchange exchange, @Nullable ModelRef model) {
        replyTrace(exchange, context.observation.traceSettings(known(model)));
    }

    void updateTraceSettings(HttpExchange exchange, @Nullable ModelRef model) {
        exchange.require(Permission.CONFIGURE_OBSERVE, model == null ? Caller.ALL : model.model());
        String name = known(model);
        Map<String, @Nullable List<String>> settings = new LinkedHashMap<>();
        JsonReader json = RestManagement.body(context, exchange);
        if (json != null) {
            json.beginObject();
            while (json.nextField()) {
                String setting = json.key();
                settings.put(setting, values(json, setting));
            }
            json.expectEnd();
        }
        replyTrace(exchange, context.observation.updateTraceSettings(name, settings));
    }

    /** The name of a model that exists; null for the server-wide settings. */
    private @Nullable String known(@Nullable ModelRef model) {
        return model == null ? null : context.engine.metadata(model).id().model();
    }

    private static @Nullable List<String> values(JsonReader json, String setting) {
        JsonToken token = json.peek();
        if (token == JsonToken.NULL) {
            json.readNull();
            return null;
        }
        List<String> values = new ArrayList<>();
        if (token == JsonToken.ARRAY) {
            json.beginArray();
            while (json.hasNext()) {
                values.add(text(json, setting));
            }
        } else {
            values.add(text(json, setting));
        }
        return values;
    }

    private static String text(JsonReader json, String setting) {
        return switch (json.peek()) {
            case STRING -> json.readString();
            case NUMBER -> Long.toString(json.readLong());
            default ->
                throw ServingException.invalidArgument(
                        "trace setting '" + setting + "' has a value that is neither a string nor null");
        };
    }

    /** Writes trace settings: {@code trace_level} always as a list, other settings with one value as a string. */
    private void replyTrace(HttpExchange exchange, Map<String, List<String>> settings) {
        JsonWriter json = context.buffers().writer();
        json.beginObject();
        for (Map.Entry<String, List<String>> entry : settings.entrySet()) {
            List<String> values = entry.getValue();
            json.name(entry.getKey());
            if (values.size() == 1 && !entry.getKey().equals("trace_level")) {
                json.value(values.get(0));
            } else {
                DocumentJsonWriter.write(values, json);
            }
        }
        json.endObject();
        RestManagement.reply(exchange, 200, json);
    }

    void logSettings(HttpExchange exchange) {
        replyLog(exchange, context.observation.logSettings());
    }

    void updateLogSettings(HttpExchange exchange) {
        exchange.require(Permission.CONFIGURE_OBSERVE, Caller.ALL);
        Map<String, Object> settings = new LinkedHashMap<>();
        JsonReader json = RestManagement.body(context, exchange);
        if (json != null) {
            json.beginObject();
            while (json.nextField()) {
                String setting = json.key();
                Object value = RestManagement.scalar(json);
                if (value == null) {
                    throw ServingException.invalidArgument("log setting '" + setting
                            + "' has a value that is neither a string, a number, true nor false");
                }
                settings.put(setting, value);
            }
            json.expectEnd();
        }
        replyLog(exchange, context.observation.updateLogSettings(settings));
    }

    private void replyLog(HttpExchange exchange, Map<String, Object> settings) {
        JsonWriter json = context.buffers().writer();
        DocumentJsonWriter.write(settings, json);
        RestManagement.reply(exchange, 200, json);
    }
}
