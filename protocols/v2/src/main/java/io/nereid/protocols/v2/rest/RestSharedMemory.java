// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.protocols.v2.memory.SharedRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.util.Base64;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** The REST handlers of Triton's shared memory extensions. Thread-safe. */
final class RestSharedMemory {
    private final CodecContext context;

    RestSharedMemory(CodecContext context) {
        this.context = context;
    }

    void status(HttpExchange exchange, String name) {
        JsonWriter json = context.buffers().writer();
        json.beginArray();
        for (SharedRegion.SystemRegion region : context.sharedMemory.status(name)) {
            json.beginObject().name("name").value(region.name()).name("key").value(region.key());
            json.name("offset")
                    .value(region.offset())
                    .name("byte_size")
                    .value(region.byteSize())
                    .endObject();
        }
        json.endArray();
        RestManagement.reply(exchange, 200, json);
    }

    void register(HttpExchange exchange, String name) {
        String key = null;
        long offset = 0;
        long byteSize = -1;
        JsonReader json = RestManagement.body(context, exchange);
        if (json != null) {
            json.beginObject();
            while (json.nextField()) {
                if (json.keyEquals("key")) {
                    key = json.readString();
                } else if (json.keyEquals("offset")) {
                    offset = json.readLong();
                } else if (json.keyEquals("byte_size")) {
                    byteSize = json.readLong();
                } else {
                    json.skipValue();
                }
            }
            json.expectEnd();
        }
        if (context.sharedMemory.enabled() && (key == null || byteSize < 0)) {
            throw ServingException.invalidArgument(
                    "shared memory region '" + name + "' has no '" + (key == null ? "key" : "byte_size")
                            + "' (expected a body with key, byte_size and, if not 0, offset)");
        }
        context.sharedMemory.register(name, key == null ? "" : key, offset, byteSize);
        done(exchange);
    }

    void unregister(HttpExchange exchange, String name) {
        context.sharedMemory.unregister(name);
        done(exchange);
    }

    void cudaStatus(HttpExchange exchange, String name) {
        JsonWriter json = context.buffers().writer();
        json.beginArray();
        for (SharedRegion.CudaRegion region : context.sharedMemory.cudaStatus(name)) {
            json.beginObject().name("name").value(region.name()).name("device_id");
            json.value(region.device())
                    .name("byte_size")
                    .value(region.byteSize())
                    .endObject();
        }
        json.endArray();
        RestManagement.reply(exchange, 200, json);
    }

    void cudaRegister(HttpExchange exchange, String name) {
        byte[] handle = null;
        long device = -1;
        long byteSize = -1;
        JsonReader json = context.sharedMemory.cudaEnabled() ? RestManagement.body(context, exchange) : null;
        if (json != null) {
            json.beginObject();
            while (json.nextField()) {
                if (json.keyEquals("raw_handle")) {
                    handle = handle(json);
                } else if (json.keyEquals("device_id")) {
                    device = json.readLong();
                } else if (json.keyEquals("byte_size")) {
                    byteSize = json.readLong();
                } else {
                    json.skipValue();
                }
            }
            json.expectEnd();
        }
        if (context.sharedMemory.cudaEnabled()) {
            String missing =
                    handle == null ? "raw_handle" : byteSize == -1 ? "byte_size" : device == -1 ? "device_id" : "";
            if (!missing.isEmpty()) {
                throw ServingException.invalidArgument(
                        "Shared memory register request has no '" + missing + "' field",
                        "expected: {\"raw_handle\":{\"b64\":…},\"device_id\":…,\"byte_size\":…}");
            }
        }
        answer(
                exchange,
                context.sharedMemory.registerCuda(name, handle == null ? new byte[0] : handle, device, byteSize));
    }

    /** The bytes of {@code {"b64": …}}; null without that member. */
    private static byte @Nullable [] handle(JsonReader json) {
        byte[] handle = null;
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("b64")) {
                try {
                    // Triton's C++ client breaks lines.
                    handle = Base64.getDecoder().decode(json.readString().replace("\n", ""));
                } catch (IllegalArgumentException e) {
                    throw ServingException.invalidArgument(
                            "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t",
                            "it is not base64: " + e.getMessage());
                }
            } else {
                json.skipValue();
            }
        }
        return handle;
    }

    void cudaUnregister(HttpExchange exchange, String name) {
        answer(exchange, context.sharedMemory.unregisterCuda(name));
    }

    private static void answer(HttpExchange exchange, CompletionStage<Void> stage) {
        stage.whenComplete((done, failure) -> {
            if (failure != null) {
                exchange.fail(RepositoryIndex.failure(failure));
            } else {
                done(exchange);
            }
        });
    }

    private static void done(HttpExchange exchange) {
        exchange.reply(new HttpReply(200, "", new String[0], new ResponseBody(new byte[0], 0)));
    }
}
