// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpStream;
import io.nereid.tensor.MemoryRegion;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange without a socket; keeps its one reply. Confined to a test. */
final class FakeExchange implements HttpExchange {
    final Map<String, String> headers = new TreeMap<>();
    private final String method;
    private final String path;
    private final MemoryRegion body;
    private @Nullable HttpReply reply;

    FakeExchange(String method, String path, String body) {
        this.method = method;
        this.path = path;
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        this.body = MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    /** Status and body of the reply. */
    String answer() {
        HttpReply r = reply;
        return r == null
                ? "none"
                : r.status() + " "
                        + new String(r.content().text(), 0, r.content().textLength(), StandardCharsets.UTF_8);
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
    public String query() {
        return method.equals("GET") ? "a=b" : "";
    }

    @Override
    public String pathParameter(int index) {
        throw new AssertionError("nobody asks");
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
    public void reply(HttpReply answer) {
        if (reply != null) {
            throw new AssertionError("two replies");
        }
        reply = answer;
        body.release();
    }

    @Override
    public HttpStream stream(HttpReply head) {
        throw new AssertionError("no replies in pieces here");
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        headers.forEach(each);
    }
}
