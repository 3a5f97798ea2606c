// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpStream;
import io.nereid.tensor.MemoryRegion;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange without a socket; keeps its one reply. Confined to a test. */
final class FakeExchange implements HttpExchange {
    private final String method;
    private final String path;
    private final List<String> parameters;
    private final MemoryRegion body;
    private @Nullable HttpReply reply;

    FakeExchange(String method, String path, List<String> parameters, String body) {
        this.method = method;
        this.path = path;
        this.parameters = parameters;
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        this.body = MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    private final Map<String, String> headers = new TreeMap<>();

    /** With a request header. */
    FakeExchange header(String name, String value) {
        headers.put(name, value);
        return this;
    }

    /** A header of the reply, or null. */
    @Nullable String replyHeader(String name) {
        if (reply != null) {
            for (int i = 0; i < reply.headers().length; i += 2) {
                if (reply.headers()[i].equals(name)) {
                    return reply.headers()[i + 1];
                }
            }
        }
        return null;
    }

    HttpReply answer() {
        if (reply == null) {
            throw new AssertionError("no reply");
        }
        return reply;
    }

    int status() {
        if (reply == null) {
            throw new AssertionError("no reply");
        }
        return reply.status();
    }

    String text() {
        if (reply == null) {
            throw new AssertionError("no reply");
        }
        return new String(reply.content().text(), 0, reply.content().textLength(), StandardCharsets.UTF_8);
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
        return parameters.get(index);
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
    public void headers(BiConsumer<String, String> each) {
        headers.forEach(each);
    }

    @Override
    public void reply(HttpReply answer) {
        if (reply != null) {
            throw new AssertionError("two replies");
        }
        reply = answer;
        body.release();
    }
}
