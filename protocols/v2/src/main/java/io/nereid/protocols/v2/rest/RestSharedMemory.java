// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.SharedMemoryManager;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;

/** The REST handlers of Triton's shared memory extensions. CUDA shared memory is not supported. Thread-safe. */
public final class RestSharedMemory {
    private final CodecContext context;

    RestSharedMemory(CodecContext context) {
        this.context = context;
    }

    void status(HttpExchange exchange, String name) {
        JsonWriter json = context.buffers().writer();
        json.beginArray();
        for (SharedMemoryManager.Region region : context.sharedMemory.status(name)) {
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

    void cudaStatus(HttpExchange exchange) {
        JsonWriter json = context.buffers().writer();
        json.beginArray().endArray();
        RestManagement.reply(exchange, 200, json);
    }

    void cudaStatus(HttpExchange exchange, String name) {
        throw unknownCudaRegion(name);
    }

    public static ServingException unknownCudaRegion(String name) {
        return ServingException.of(ErrorCode.NOT_FOUND, "Unable to find cuda shared memory region: '" + name + "'");
    }

    void cudaRegister(HttpExchange exchange, String name) {
        throw noCuda(name);
    }

    public static ServingException noCuda(String name) {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "failed to register CUDA shared memory region: '" + name + "', GPUs not supported",
                "register system shared memory, or send tensors in the binary data format");
    }

    /** Succeeds, as no CUDA region is ever registered. */
    void cudaUnregister(HttpExchange exchange) {
        done(exchange);
    }

    private static void done(HttpExchange exchange) {
        exchange.reply(new HttpReply(200, "", new String[0], new ResponseBody(new byte[0], 0)));
    }
}
