// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpStream;
import io.nereid.tensor.MemoryRegion;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange without a socket; keeps its one reply. Confined to a test. */
final class Exchange implements HttpExchange {
    private final Map<String, String> query;
    private final Map<String, String> headers;
    private final List<String> parameters;
    private final MemoryRegion body;
    private @Nullable HttpReply reply;

    Exchange(String type, String body, Map<String, String> query, List<String> parameters) {
        this.headers = Map.of("content-type", type);
        this.query = query;
        this.parameters = parameters;
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        this.body = MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    int status() {
        return answer().status();
    }

    String text() {
        return new String(answer().content().text(), 0, answer().content().textLength(), StandardCharsets.UTF_8);
    }

    private HttpReply answer() {
        if (reply == null) {
            throw new AssertionError("no reply");
        }
        return reply;
    }

    @Override
    public String method() {
        return "POST";
    }

    @Override
    public String path() {
        return "/invocations";
    }

    @Override
    public String pathParameter(int index) {
        return parameters.get(index);
    }

    @Override
    public @Nullable String queryParameter(String name) {
        return query.get(name);
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
        return 0;
    }

    @Override
    public void onCancel(Runnable action) {}

    @Override
    public boolean inEventLoop() {
        return true;
    }

    @Override
    public HttpStream stream(HttpReply head) {
        throw new AssertionError("no replies in pieces here");
    }

    @Override
    public void headers(BiConsumer<String, String> each) {}

    @Override
    public void reply(HttpReply answer) {
        if (reply != null) {
            throw new AssertionError("two replies");
        }
        reply = answer;
        body.release();
    }
}
