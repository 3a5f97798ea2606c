// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.fuzz.FuzzTarget;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A connection of HTTP/1.1: the responses are well formed, none is a 500, and they are the same wherever TCP cuts the bytes.
 * Confined to one thread.
 */
public final class Http1Target implements FuzzTarget {
    private static final String[] REQUESTS = {
        "GET /ok HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nContent-Type: text/plain\r\n\r\nhello world",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1f;x=y\r\n"
                + "0123456789012345678901234567890\r\n0\r\nTrailer: 1\r\n\r\n",
        "GET /items/a%20b/sub/c?x=1&q=%41 HTTP/1.1\r\nHost: a\r\nX-Test: 1\r\nConnection: keep-alive\r\n\r\n",
        "HEAD /large HTTP/1.0\r\nConnection: keep-alive\r\nAccept-Encoding: gzip;q=0.5\r\n\r\n",
        "POST /headers HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\n"
                + "Expect: 100-continue\r\n\r\nabc",
        "GET /headers HTTP/1.1\r\nHost: a.b:80\r\nX: \t1 \r\nConnection: close\r\n\r\n",
        "GET http://h:80/stream/abc?x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n",
        "GET /wrong?%22%0d HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "DELETE /any/x/y/../z HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
    };

    private final WireServer server;

    public Http1Target() {
        EchoCodec codec = new EchoCodec();
        server = new WireServer(codec.httpRoutes(), codec.grpcMethods());
    }

    @Override
    public void read(byte[] input) {
        byte[] whole = server.answers(List.of(input));
        RequestChecks.verify();
        if (isHttp2(whole)) {
            return;
        }
        for (Http1Responses.Response response : Http1Responses.read(whole)) {
            if (response.status() == 500) {
                throw new AssertionError("a request makes the server fail");
            }
        }
        byte[] cut = server.answers(WireServer.cut(input));
        if (!Arrays.equals(whole, cut)) {
            throw new AssertionError("the responses depend on where the bytes are cut; received whole:\n"
                    + new String(whole, StandardCharsets.ISO_8859_1)
                    + "\nin pieces:\n"
                    + new String(cut, StandardCharsets.ISO_8859_1));
        }
    }

    private static boolean isHttp2(byte[] out) {
        return out.length > 0 && out[0] == 0;
    }

    @Override
    public List<byte[]> seeds() {
        List<byte[]> seeds = new ArrayList<>();
        StringBuilder all = new StringBuilder();
        for (String request : REQUESTS) {
            seeds.add(request.getBytes(StandardCharsets.ISO_8859_1));
            all.append(request);
        }
        seeds.add(all.toString().getBytes(StandardCharsets.ISO_8859_1));
        return seeds;
    }
}
