// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.tensor.MemoryRegion;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** One exchange in memory. Confined to one thread. */
final class FakeExchange implements HttpExchange {
    final String method;
    final String path;
    final MemoryRegion body;
    final Map<String, String> headers = new HashMap<>();
    List<String> pathParameters = List.of();

    @Nullable Runnable onCancel;

    int status;
    String contentType = "";
    final Map<String, String> replyHeaders = new HashMap<>();
    byte[] reply = {};

    FakeExchange(String method, String path, byte[] body) {
        this.method = method;
        this.path = path;
        this.body = MemoryRegion.copyOf(body, 0, body.length);
    }

    FakeExchange header(String name, Object value) {
        headers.put(name.toLowerCase(Locale.ROOT), value.toString());
        return this;
    }

    @Override
    public String method() {
        return method;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public String pathParameter(int index) {
        return pathParameters.get(index);
    }

    @Override
    public @Nullable String queryParameter(String name) {
        return null;
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return headers.get(lowerCaseName);
    }

    @Override
    public MemoryRegion body() {
        return body;
    }

    @Override
    public long arrivedNanos() {
        return 1_000;
    }

    @Override
    public void onCancel(Runnable action) {
        onCancel = action;
    }

    @Override
    public boolean inEventLoop() {
        return true;
    }

    @Override
    public void reply(HttpReply reply) {
        if (status != 0) {
            throw new AssertionError("a second reply");
        }
        status = reply.status();
        contentType = reply.contentType();
        for (int i = 0; i < reply.headers().length; i += 2) {
            replyHeaders.put(reply.headers()[i], reply.headers()[i + 1]);
        }
        this.reply = Wire.bytes(reply.content());
        body.release();
    }

    String text() {
        return new String(reply, java.nio.charset.StandardCharsets.UTF_8);
    }
}
