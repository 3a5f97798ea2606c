// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.tensor.MemoryRegion;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** One exchange in memory. Confined to one thread. */
public final class FakeExchange extends InMemoryExchange {
    List<String> pathParameters = List.of();
    public int status;
    public String contentType = "";
    public byte[] reply = {};

    public FakeExchange(String method, String path, byte[] body) {
        super(method, path, List.of(), MemoryRegion.copyOf(body, 0, body.length));
    }

    public FakeExchange header(String name, Object value) {
        headers.put(name.toLowerCase(Locale.ROOT), value.toString());
        return this;
    }

    private final Map<String, String> query = new TreeMap<>();

    /** Adds a query parameter. */
    public FakeExchange query(String name, String value) {
        query.put(name, value);
        return this;
    }

    @Override
    public String queryParameter(String name) {
        return query.get(name);
    }

    @Override
    public String pathParameter(int index) {
        return pathParameters.get(index);
    }

    /** The pieces sent of a streamed response. */
    public final List<String> pieces = new ArrayList<>();

    public boolean ended;
    public boolean aborted;
    public long unsent;

    @Override
    public ResponseStream stream(HttpReply head) {
        ResponseBody first = head.content();
        reply(new HttpReply(head.status(), head.contentType(), head.headers(), new ResponseBody(new byte[0], 0)));
        ResponseStream stream = new ResponseStream() {
            @Override
            public void send(ResponseBody piece) {
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
    public void reply(HttpReply made) {
        super.reply(made);
        status = made.status();
        contentType = made.contentType();
        reply = Wire.bytes(made.content());
    }

    @Override
    public String text() {
        return new String(reply, StandardCharsets.UTF_8);
    }
}
