// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.tensor.NettyBuffers;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ResponseBody;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** A minimal transport for contents and routes. Immutable. */
public final class Wire {
    private Wire() {}

    /** The bytes of a content, which is used up. */
    public static byte[] bytes(ResponseBody content) {
        return InMemoryExchange.bytes(content);
    }

    /** Sends an exchange to the route that matches it, failing as transport does. */
    public static FakeExchange send(V2Codec codec, FakeExchange exchange) {
        HttpRoute best = null;
        for (HttpRoute route : codec.httpRoutes()) {
            List<String> found = match(route, exchange);
            if (found != null && (best == null || found.size() < exchange.pathParameters.size())) {
                best = route;
                exchange.pathParameters = found;
            }
        }
        if (best == null) {
            throw new AssertionError("no route for " + exchange.method() + " " + exchange.path());
        }
        try {
            best.handler().handle(exchange);
        } catch (RuntimeException e) {
            exchange.fail(io.nereid.base.ServingException.from(e));
        }
        return exchange;
    }

    private static List<String> match(HttpRoute route, FakeExchange exchange) {
        String[] want = route.template().split("/", -1);
        String[] got = exchange.path().split("/", -1);
        if (!route.method().equals(exchange.method()) || want.length != got.length) {
            return null;
        }
        List<String> found = new ArrayList<>();
        for (int i = 0; i < want.length; i++) {
            if (want[i].startsWith("{")) {
                found.add(java.net.URLDecoder.decode(got[i], StandardCharsets.UTF_8));
            } else if (!want[i].equals(got[i])) {
                return null;
            }
        }
        return found;
    }

    public static byte[] hex(String text) {
        return HexFormat.of().parseHex(text.replace(" ", ""));
    }

    public static byte[] join(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    public static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Pooled buffers in use, once this thread has given its cached ones back. */
    public static long pooledBuffers() {
        var allocator = NettyBuffers.allocator();
        // The first trim keeps what was used since the last one.
        allocator.trimCurrentThreadCache();
        allocator.trimCurrentThreadCache();
        long active = 0;
        for (var arena : allocator.metric().directArenas()) {
            active += arena.numActiveAllocations();
        }
        return active;
    }
}
