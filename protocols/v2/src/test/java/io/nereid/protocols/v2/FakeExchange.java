// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.endpoint.Content;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpStream;
import io.nereid.tensor.MemoryRegion;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiConsumer;
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
    public void headers(BiConsumer<String, String> each) {
        headers.forEach(each);
    }

    /** What was sent of a reply in pieces, piece by piece. */
    final List<String> pieces = new ArrayList<>();

    boolean ended;
    boolean aborted;
    long unsent;

    @Override
    public HttpStream stream(HttpReply head) {
        Content first = head.content();
        reply(new HttpReply(head.status(), head.contentType(), head.headers(), new Content(new byte[0], 0)));
        HttpStream stream = new HttpStream() {
            @Override
            public void send(Content piece) {
                if (ended || aborted) {
                    throw new AssertionError("a piece after the end");
                }
                pieces.add(new String(Wire.bytes(piece), java.nio.charset.StandardCharsets.UTF_8));
            }

            @Override
            public void end() {
                ended = true;
            }

            @Override
            public void abort() {
                aborted = true;
            }

            @Override
            public long unsentBytes() {
                return unsent;
            }
        };
        if (first.length() > 0) {
            stream.send(first);
        }
        return stream;
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
