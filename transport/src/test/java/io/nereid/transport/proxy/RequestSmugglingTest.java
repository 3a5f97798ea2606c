// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.access.Operation;
import io.nereid.transport.EventLoops;
import io.nereid.transport.RawHttp2;
import io.nereid.transport.Rig;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.server.Server;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The published shapes of request smuggling, as bytes over sockets: sent to the server itself, and through the proxy to
 * a child that records what it receives. A shape is either refused, and then nothing reaches the child, or it is one
 * request, and then the child receives exactly this request with an unambiguous length.
 */
class RequestSmugglingTest {
    /** What a request tries to hide behind another one. */
    private static final String HIDDEN = "GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n";

    private static final String POST = "POST /echo HTTP/1.1\r\nhost: x\r\n";
    private static final String GET = "GET /ok HTTP/1.1\r\nhost: x\r\n";
    private static final String CHUNKED = POST + "transfer-encoding: chunked\r\n\r\n";

    private static final Rig RIG = new Rig(o -> o.maxBodyBytes(1 << 20));
    private static final BlockingQueue<String> GRPC_CALLS = new LinkedBlockingQueue<>();
    private static final Server GRPC_CHILD = new Server(
            ServerOptions.builder().listen("127.0.0.1", 0).eventLoops(1).build(), List.of(new ProtocolCodec() {
                @Override
                public String name() {
                    return "child";
                }

                @Override
                public List<HttpRoute> httpRoutes() {
                    return List.of();
                }

                @Override
                public List<GrpcMethod> grpcMethods() {
                    return List.of(new GrpcMethod("/*", GrpcMethod.Kind.BIDI_STREAMING, Operation.INFERENCE, call -> {
                        GRPC_CALLS.add(call.path());
                        return new Rig.Quiet(RIG) {
                            @Override
                            public void onHalfClose() {
                                call.close(ErrorCode.OK, null);
                            }
                        };
                    }));
                }
            }));
    private static final int GRPC_CHILD_PORT = GRPC_CHILD.start().get(0).getPort();
    private static final RecordingChild CHILD = new RecordingChild();
    private static final EventLoops LOOPS = new EventLoops(1, true);
    private static final PooledUpstreamClient RELAY = new PooledUpstreamClient(new PooledUpstreamClient.Options(
            // one connection, so that the child records requests in the order in which they were forwarded
            LOOPS, Duration.ofSeconds(5), Duration.ofSeconds(30), 1, Clock.system(), PooledUpstreamClient.Trust.JVM));
    private static final ForwardOptions TERMS = new ForwardOptions(Duration.ofSeconds(20), 1 << 20, List.of());
    private static final Server GATEWAY = new Server(
            ServerOptions.builder()
                    .listen("127.0.0.1", 0)
                    .loops(LOOPS)
                    .maxBodyBytes(1 << 20)
                    .build(),
            List.of(new ProtocolCodec() {
                @Override
                public String name() {
                    return "gateway";
                }

                @Override
                public List<HttpRoute> httpRoutes() {
                    return List.of(new HttpRoute(
                            HttpRoute.ANY,
                            "/{rest...}",
                            Operation.INFERENCE,
                            x -> RELAY.forward(
                                    x, new UpstreamClient.Address("127.0.0.1", CHILD.port()), x.path(), TERMS)));
                }

                @Override
                public List<GrpcMethod> grpcMethods() {
                    return List.of(new GrpcMethod(
                            "/*",
                            GrpcMethod.Kind.BIDI_STREAMING,
                            Operation.INFERENCE,
                            call -> RELAY.forward(
                                    call, new UpstreamClient.Address("127.0.0.1", GRPC_CHILD_PORT), TERMS)));
                }
            }));
    private static final int GATEWAY_PORT = GATEWAY.start().get(0).getPort();

    private static int probes;

    @AfterAll
    static void stop() {
        GATEWAY.close();
        RELAY.close();
        LOOPS.close();
        CHILD.close();
        GRPC_CHILD.close();
        RIG.close();
    }

    /**
     * A shape over HTTP/1.1.
     *
     * @param body null when the request is refused, else the body that the handler gets
     */
    private record Shape(
            String name, String bytes, @Nullable String body) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static Shape refused(String name, String bytes) {
        return new Shape(name, bytes, null);
    }

    private static Shape taken(String name, String bytes, String body) {
        return new Shape(name, bytes, body);
    }

    static Stream<Shape> http1Shapes() {
        List<Shape> all = new ArrayList<>();
        // two lengths
        String end = "0\r\n\r\n";
        all.add(refused(
                "CL.TE",
                POST + "content-length: " + (5 + HIDDEN.length()) + "\r\ntransfer-encoding: chunked\r\n\r\n" + end
                        + HIDDEN));
        all.add(refused(
                "TE.CL",
                POST + "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n" + Integer.toHexString(HIDDEN.length())
                        + "\r\n" + HIDDEN + "\r\n" + end));
        all.add(refused(
                "TE.CL with a length of 0",
                POST + "transfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n" + end + HIDDEN));
        all.add(refused(
                "TE in HTTP/1.0", "POST /echo HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + end));
        all.add(refused(
                "TE in HTTP/1.0 that stays open",
                "POST /echo HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\ncontent-length: 5\r\n"
                        + "transfer-encoding: chunked\r\n\r\n" + end + HIDDEN));
        // transfer-encoding that one reader takes and another one does not, with a length beside it for that one
        for (String obfuscated : new String[] {
            "transfer-encoding: chunked\r\ntransfer-encoding: identity",
            "transfer-encoding: identity\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ntransfer-encoding: x",
            "transfer-encoding: xchunked",
            "transfer-encoding: chunkedx",
            "transfer-encoding: x chunked",
            "transfer-encoding: chunked, identity",
            "transfer-encoding: identity, chunked",
            "transfer-encoding: gzip, chunked",
            "transfer-encoding: chunked, chunked",
            "transfer-encoding: ,chunked",
            "transfer-encoding: chunked,",
            "transfer-encoding: chunked;q=1",
            "transfer-encoding: \"chunked\"",
            "transfer-encoding: 'chunked'",
            "transfer-encoding: identity",
            "transfer-encoding:",
            "transfer-encoding : chunked",
            "transfer-encoding\t: chunked",
            "transfer-encoding\0: chunked",
            "transfer-encoding\r: chunked",
            "transfer-encoding\n : chunked",
            "transfer-encoding\u00a0: chunked",
            "transfer-encoding: \u000bchunked",
            "transfer-encoding: \u000cchunked",
            "transfer-encoding: chunked\u000b",
            "transfer-encoding: chunked\0",
            "transfer-encoding: chunked\u00ff",
            "transfer-encoding: \u00a0chunked",
            "transfer-encoding: \rchunked",
            "transfer-encoding: \nchunked",
            "transfer-encoding:\r\n chunked",
            "transfer-encoding: x\r\n chunked",
            "transfer-encoding: chunked\r\n x",
            " transfer-encoding: chunked",
            "\ttransfer-encoding: chunked",
            "x: x\ntransfer-encoding: chunked",
            "x: x\rtransfer-encoding: chunked",
            "x: x\r\n\ttransfer-encoding: chunked",
            "\u000btransfer-encoding: chunked",
            "transfer\u00adencoding: chunked\r\ntransfer-encoding: chunked",
            ": chunked\r\ntransfer-encoding: chunked",
            "transfer-encoding chunked",
            "transfer-encoding: chunked\r\nx",
        }) {
            String name = "TE.TE " + obfuscated;
            all.add(refused(
                    name,
                    POST + "content-length: " + (5 + HIDDEN.length()) + "\r\n" + obfuscated + "\r\n\r\n" + end
                            + HIDDEN));
            all.add(refused(name + " alone", POST + obfuscated + "\r\n\r\n" + end + HIDDEN));
        }
        // transfer-encoding in forms that every reader has to take
        for (String plain : new String[] {
            "Transfer-Encoding: chunked",
            "transfer-encoding: CHUNKED",
            "tRANSFER-eNCODING:chunked",
            "transfer-encoding:\t chunked \t",
            "connection: transfer-encoding\r\ntransfer-encoding: chunked",
        }) {
            all.add(taken("chunked as " + plain, POST + plain + "\r\n\r\n3\r\nabc\r\n" + end, "abc"));
        }
        // names that gateways of scripting languages map to the same variable
        all.add(taken(
                "transfer_encoding beside a length",
                POST + "content-length: 3\r\ntransfer_encoding: chunked\r\n\r\nabc",
                "abc"));
        all.add(taken(
                "content_length beside a length", POST + "content-length: 3\r\ncontent_length: 30\r\n\r\nabc", "abc"));
        // lengths
        for (String length : new String[] {
            "content-length: 3\r\ncontent-length: 3",
            "content-length: 3\r\ncontent-length: 30",
            "content-length: 0\r\ncontent-length: 3",
            "content-length: 3, 3",
            "content-length: 3,30",
            "content-length: 3,",
            "content-length: +3",
            "content-length: -3",
            "content-length: -0",
            "content-length: 0x3",
            "content-length: 3 3",
            "content-length: 3.0",
            "content-length: 3e0",
            "content-length: 1_0",
            "content-length: 3;",
            "content-length: \"3\"",
            "content-length: \u00b3",
            "content-length: 3\u000b",
            "content-length: 3\0",
            "content-length: 3\u00a0",
            "content-length: 18446744073709551619",
            "content-length: 340282366920938463463374607431768211459",
            "content-length:",
            "content-length: three",
            "content-length : 3",
            "content-length\t: 3",
            "content-length\0: 3",
            "content-length: 3\r\n 0",
            "content-length:\r\n 3",
            "content-length: 3\ncontent-length: 0",
            "x: y\r\n content-length: 3",
        }) {
            all.add(refused("length as " + length, POST + length + "\r\n\r\nabc" + HIDDEN));
        }
        all.add(refused("a length of 2^32 + 3", POST + "content-length: 4294967299\r\n\r\nabc" + HIDDEN));
        all.add(taken("a length with leading zeros", POST + "content-length: 0003\r\n\r\nabc", "abc"));
        all.add(taken(
                "a length named by connection",
                POST + "connection: content-length\r\ncontent-length: 3\r\n\r\nabc",
                "abc"));
        all.add(taken("CL.0", POST + "content-length: " + HIDDEN.length() + "\r\n\r\n" + HIDDEN, HIDDEN));
        all.add(taken("0.CL", GET + "content-length: " + HIDDEN.length() + "\r\n\r\n" + HIDDEN, HIDDEN));
        all.add(taken(
                "0.CL with an expectation",
                GET + "expect: 100-continue\r\ncontent-length: " + HIDDEN.length() + "\r\n\r\n" + HIDDEN,
                HIDDEN));
        all.add(refused(
                "an expectation with a prefix",
                POST + "expect: y 100-continue\r\ncontent-length: " + HIDDEN.length() + "\r\n\r\n" + HIDDEN));
        all.add(taken(
                "a body of HEAD",
                "HEAD /ok HTTP/1.1\r\nhost: x\r\ncontent-length: " + HIDDEN.length() + "\r\n\r\n" + HIDDEN,
                HIDDEN));
        // chunks
        for (String chunks : new String[] {
            "3\nabc\r\n" + end,
            "3\rabc\r\n" + end,
            "3\r\nabc\n" + end,
            "3\r\nabc\r" + end,
            "3\r\nabc" + end,
            "3\r\nabcd\r\n" + end,
            "3\r\nab\r\n" + end,
            "3;x\nabc\r\n" + end,
            "3;x\rabc\r\n" + end,
            "3;x\r abc\r\n" + end,
            "3;x\0\r\nabc\r\n" + end,
            "3;x=\"\n\"\r\nabc\r\n" + end,
            "3 x\r\nabc\r\n" + end,
            "3 3\r\nabc\r\n" + end,
            "3\t0\r\nabc\r\n" + end,
            " 3\r\nabc\r\n" + end,
            "\r\n3\r\nabc\r\n" + end,
            "+3\r\nabc\r\n" + end,
            "-3\r\nabc\r\n" + end,
            "0x3\r\nabc\r\n" + end,
            "3h\r\nabc\r\n" + end,
            "3,3\r\nabc\r\n" + end,
            "3.0\r\nabc\r\n" + end,
            "1_0\r\nabc\r\n" + end,
            "\u00b3\r\nabc\r\n" + end,
            "10000000000000003\r\nabc\r\n" + end,
            "ffffffffffffffff\r\nabc\r\n" + end,
            "fffffffffffffffd\r\nabc\r\n" + end,
            "100000003\r\nabc\r\n" + end,
            "0000000000000000003\r\nabc\r\n" + end,
            ";x\r\nabc\r\n" + end,
            "\r\nabc\r\n" + end,
            "x\r\nabc\r\n" + end,
            "3\r\nabc\r\n0\n\n",
            "3\r\nabc\r\n0\r\n\n",
            "3\r\nabc\r\n0\r\n\rx",
            "3\r\nabc\r\n0\rx",
            "3\r\nabc\r\n0\n\r\n",
            "3\r\nabc\r\n0\r\nx: y\n\r\n",
            "3\r\nabc\r\n0\r\nx: y\r\r\n\r\n",
            "3\r\nabc\r\n0\r\nx: \0\r\n\r\n",
            "3\r\nabc\r\n0\r\nx\r\n\r\n",
            "3\r\nabc\r\n0\r\nx y: z\r\n\r\n",
            "3\r\nabc\r\n0\r\n x: y\r\n\r\n",
            "3\r\nabc\r\n0\r\nx: y\r\n z\r\n\r\n",
            "3\r\nabc\r\n0\r\nx : y\r\n\r\n",
            "3\r\nabc\r\n0\r\n: y\r\n\r\n",
            "3\r\nabc\r\n0\r\nGET /hidden HTTP/1.1\r\nhost: x\r\n\r\n",
        }) {
            all.add(refused("chunks " + chunks, CHUNKED + chunks + HIDDEN));
        }
        all.add(taken("a chunk extension", CHUNKED + "3;x=\"y z\";v\r\nabc\r\n" + end, "abc"));
        all.add(taken("white space before a chunk extension", CHUNKED + "3 ;x\r\nabc\r\n0 \r\n\r\n", "abc"));
        all.add(taken(
                "a request within a chunk",
                CHUNKED + Integer.toHexString(HIDDEN.length()) + "\r\n" + HIDDEN + "\r\n" + end,
                HIDDEN));
        all.add(taken(
                "lengths in trailers",
                CHUNKED + "3\r\nabc\r\n0\r\ncontent-length: 30\r\ntransfer-encoding: chunked\r\nhost: y\r\n\r\n",
                "abc"));
        // lines and names
        for (String bytes : new String[] {
            "GET /ok HTTP/1.1\nhost: x\n\n",
            "GET /ok HTTP/1.1\r\nhost: x\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\nx: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\rx: y\r\n\r\n",
            "GET /ok HTTP/1.1\rhost: x\r\n\r\n",
            "GET /ok\rHTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /ok\u000bHTTP/1.1\r\nhost: x\r\n\r\n",
            "GET\t/ok\tHTTP/1.1\r\nhost: x\r\n\r\n",
            "GET  /ok HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /ok  HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/1.1 \r\nhost: x\r\n\r\n",
            " GET /ok HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/1.1 HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/1.1\r\n host: x\r\n\r\n",
            "GET /ok HTTP/1.1\r\n\thost: x\r\nhost: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\n y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx: y\r\n\tz\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx : y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx y: z\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx\0: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx(: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\n\u00e9: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\n: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\n:path: /hidden\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx: a\u007fb\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx: a\u001bb\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nx: a\r\n\r\r\n",
            "GET /o\0k HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /o\u007fk HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /o\u00e9k HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET ok HTTP/1.1\r\nhost: x\r\n\r\n",
            "G(T /ok HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /ok\r\n\r\n",
            "GET /ok HTTP/1.\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/1.10\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/01.1\r\nhost: x\r\n\r\n",
            "GET /ok http/1.1\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/2.0\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/1.1\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\r\nHost: y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x/hidden\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x@y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x\\y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x?y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: x#y\r\n\r\n",
            "GET /ok HTTP/1.1\r\nhost: \u00e9\r\n\r\n",
            "GET http://x\\y/ok HTTP/1.1\r\nhost: x\r\n\r\n",
        }) {
            all.add(refused("head " + bytes, bytes + HIDDEN));
        }
        all.add(taken(
                "an upgrade to HTTP/2",
                GET + "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n",
                ""));
        all.add(taken("a target in absolute form", "GET http://x/ok HTTP/1.1\r\nhost: y\r\n\r\n", ""));
        return all.stream();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("http1Shapes")
    void theServerRefusesAShapeOrTakesItAsOneRequest(Shape shape) throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            c.send(shape.bytes);
            if (shape.body == null) {
                Rig.Reply reply = c.read();
                assertThat(reply.status()).as(reply.text()).isIn(400, 413, 417, 501, 505);
                assertThat(reply.header("connection")).isEqualTo("close");
                assertThat(c.closed()).isTrue();
                return;
            }
            boolean head = shape.bytes.startsWith("HEAD");
            Rig.Reply reply = c.read(!head);
            if (reply.status() == 100) {
                reply = c.read();
            }
            assertThat(reply.status()).isEqualTo(200);
            if (shape.bytes.startsWith("POST")) {
                assertThat(reply.text()).isEqualTo(shape.body);
            }
            // nothing of it was taken for a second request
            assertThat(c.ask("GET /text/7 HTTP/1.1\r\nhost: x\r\n\r\n").text()).isEqualTo("aaaaaaa");
        }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("http1Shapes")
    void aChildReceivesARefusedShapeNotAtAllAndOneThatIsTakenUnambiguously(Shape shape) throws Exception {
        try (Rig.Raw c = new Rig.Raw(GATEWAY_PORT)) {
            c.send(shape.bytes);
            boolean head = shape.bytes.startsWith("HEAD");
            Rig.Reply reply = c.read(!head);
            if (shape.body == null) {
                assertThat(reply.status()).as(reply.text()).isIn(400, 413, 417, 501, 505);
                assertThat(c.closed()).isTrue();
            } else {
                if (reply.status() == 100) {
                    reply = c.read();
                }
                assertThat(reply.status()).isEqualTo(200);
            }
        }
        String probe = "/probe/" + probes++;
        try (Rig.Raw c = new Rig.Raw(GATEWAY_PORT)) {
            assertThat(c.ask("GET " + probe + " HTTP/1.1\r\nhost: x\r\n\r\n").text())
                    .isEqualTo("child");
        }
        List<RecordingChild.Request> received = CHILD.before(probe);
        if (shape.body == null) {
            assertThat(received).isEmpty();
            return;
        }
        assertThat(received).hasSize(1);
        String method = shape.bytes.substring(0, shape.bytes.indexOf(' '));
        String path = method.equals("POST") ? "/echo" : "/ok";
        assertThat(received.get(0).line()).isEqualTo(method + " " + path + " HTTP/1.1");
        assertThat(received.get(0).body()).isEqualTo(shape.body);
        unambiguous(received.get(0));
    }

    private static void unambiguous(RecordingChild.Request received) {
        String head = received.head();
        assertThat(head.replace("\r\n", "").chars().allMatch(c -> c >= ' ' && c != 127 || c == '\t'))
                .as(head)
                .isTrue();
        assertThat(received.count("content-length")).isLessThanOrEqualTo(1);
        assertThat(received.count("host")).isEqualTo(1);
        for (String name : new String[] {
            "transfer-encoding", "transfer_encoding", "content_length", "connection", "upgrade", "http2-settings", "te"
        }) {
            assertThat(received.count(name)).as(name).isZero();
        }
        assertThat(head.toLowerCase(Locale.ROOT)).contains("\r\nhost: x\r\n");
    }

    /**
     * A shape over HTTP/2: the fields of the request, its body, and its trailers.
     *
     * @param body null for none: HEADERS end the stream
     */
    private record Shape2(
            String name, List<String> fields, @Nullable String body, List<String> trailers) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static final List<String> USUAL = List.of(
            ":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/echo", "content-type", "text/plain");

    private static Shape2 with(String name, String value) {
        List<String> fields = new ArrayList<>(USUAL);
        fields.add(name);
        fields.add(value);
        return new Shape2(name + ": " + value, fields, "abc", List.of());
    }

    private static Shape2 changed(String name, String value) {
        List<String> fields = new ArrayList<>(USUAL);
        fields.set(fields.indexOf(name) + 1, value);
        return new Shape2(name + " " + value, fields, "abc", List.of());
    }

    private static Shape2 without(String name) {
        List<String> fields = new ArrayList<>(USUAL);
        int at = fields.indexOf(name);
        fields.remove(at);
        fields.remove(at);
        return new Shape2("no " + name, fields, "abc", List.of());
    }

    private static Shape2 trailer(String name, String value) {
        return new Shape2("trailer " + name + ": " + value, USUAL, "abc", List.of(name, value));
    }

    static Stream<Shape2> http2Shapes() {
        List<Shape2> all = new ArrayList<>();
        String more = "\r\n\r\n" + HIDDEN;
        // values
        for (String value : new String[] {
            "a\r\nx: y",
            "a\r\ntransfer-encoding: chunked",
            "a" + more,
            "a\nb",
            "a\rb",
            "\r",
            "\n",
            "a\r",
            "a\n",
            "a\0b",
            "\0",
            "a\u0001b",
            "a\u001bb",
            "a\u007fb",
            " a",
            "a ",
            "\ta",
            "a\t",
            " ",
        }) {
            all.add(with("x", value));
            all.add(trailer("x", value));
        }
        all.add(with("host", "x\r\ntransfer-encoding: chunked"));
        all.add(with("cookie", "a=b\r\nx: y"));
        // names
        for (String name : new String[] {
            "x\r\ny",
            "x: y\r\nz",
            "x\n",
            "x\r",
            "x\0",
            "x y",
            " x",
            "x ",
            "x:",
            "x:y",
            "X",
            "xY",
            "x\u007f",
            "\u00e9",
            "x(",
            "",
            "transfer-encoding: chunked\r\nx",
            "content-length\0",
            ":",
            ":x",
            ":path ",
            ":path\r\n",
            ":status",
            ":protocol",
        }) {
            all.add(with(name, "y"));
            all.add(trailer(name, "y"));
        }
        // pseudo-headers
        for (String method : new String[] {
            "GET /hidden HTTP/1.1\r\nhost: x" + more,
            "GET /",
            "GE T",
            "G\rT",
            "G\nT",
            "G\0T",
            " GET",
            "GET ",
            "G(T",
            "G:T",
            "\u00e9",
            ""
        }) {
            all.add(changed(":method", method));
        }
        for (String path : new String[] {
            "/echo HTTP/1.1\r\nhost: x" + more,
            "/e cho",
            "/echo\r\nx: y",
            "/e\rcho",
            "/e\ncho",
            "/e\0cho",
            "/e\tcho",
            "/e\u007fcho",
            "/\u00e9",
            " /echo",
            "/echo ",
            "echo",
            "*",
            "http://x/echo",
            "@y/echo",
            "?q",
            ""
        }) {
            all.add(changed(":path", path));
        }
        for (String authority : new String[] {
            "x\r\nx: y",
            "x" + more,
            "x\rx",
            "x\nx",
            "x\0",
            "x y",
            " x",
            "x ",
            "x\t",
            "u@x",
            "u:p@x",
            "x/y",
            "x?y",
            "x#y",
            "x\\y",
            "\u00e9",
            "x\u007f",
            "x\"",
            "<x>",
            ""
        }) {
            all.add(changed(":authority", authority));
        }
        for (String scheme : new String[] {
            "http://x/hidden HTTP/1.1\r\nhost: x" + more,
            "ht tp",
            "http\r\n",
            "http\0",
            "http:",
            "1http",
            " http",
            "\u00e9",
            ""
        }) {
            all.add(changed(":scheme", scheme));
        }
        for (String name : new String[] {":method", ":path", ":scheme"}) {
            all.add(without(name));
        }
        for (int i = 0; i < 8; i += 2) {
            List<String> twice = new ArrayList<>(USUAL.subList(0, 8));
            twice.add(USUAL.get(i));
            twice.add(USUAL.get(i + 1));
            all.add(new Shape2("repeated " + USUAL.get(i), twice, "abc", List.of()));
            List<String> late = new ArrayList<>(USUAL);
            late.remove(i);
            late.remove(i);
            late.add(USUAL.get(i));
            late.add(USUAL.get(i + 1));
            all.add(new Shape2("late " + USUAL.get(i), late, "abc", List.of()));
            all.add(trailer(USUAL.get(i), USUAL.get(i + 1)));
        }
        all.add(with("host", "y"));
        all.add(with("host", ""));
        all.add(new Shape2(
                "two host fields",
                List.of(":method", "POST", ":scheme", "http", ":path", "/echo", "host", "x", "host", "x"),
                "abc",
                List.of()));
        all.add(new Shape2(
                "a host field with a path",
                List.of(":method", "POST", ":scheme", "http", ":path", "/echo", "host", "x/y"),
                "abc",
                List.of()));
        all.add(changed(":method", "CONNECT"));
        all.add(new Shape2("CONNECT without authority", List.of(":method", "CONNECT"), "abc", List.of()));
        all.add(new Shape2("CONNECT", List.of(":method", "CONNECT", ":authority", "x:1"), "abc", List.of()));
        all.add(new Shape2(
                "extended CONNECT",
                List.of(
                        ":method",
                        "CONNECT",
                        ":protocol",
                        "websocket",
                        ":scheme",
                        "http",
                        ":authority",
                        "x",
                        ":path",
                        "/echo"),
                "abc",
                List.of()));
        // fields of the connection
        String chunks = "3\r\nabc\r\n0\r\n\r\n" + HIDDEN;
        for (String[] field : new String[][] {
            {"transfer-encoding", "chunked"},
            {"transfer-encoding", "identity"},
            {"connection", "close"},
            {"connection", "keep-alive"},
            {"connection", "x"},
            {"connection", "transfer-encoding"},
            {"keep-alive", "timeout=5"},
            {"proxy-connection", "close"},
            {"upgrade", "h2c"},
            {"te", "gzip"},
            {"te", "trailers, gzip"},
            {"te", "chunked"},
        }) {
            Shape2 shape = with(field[0], field[1]);
            all.add(new Shape2("H2.TE " + shape.name, shape.fields, chunks, List.of()));
            all.add(trailer(field[0], field[1]));
        }
        // lengths
        for (String length : new String[] {
            "0", "2", "4", "99", "+3", "-3", "0x3", "3 3", "3, 4", "3;", "three", "", "18446744073709551619"
        }) {
            Shape2 shape = with("content-length", length);
            all.add(new Shape2("H2.CL " + length, shape.fields, "abc", List.of()));
        }
        all.add(new Shape2("H2.CL without a body", with("content-length", "3").fields, null, List.of()));
        all.add(new Shape2("H2.CL cut off by trailers", with("content-length", "4").fields, "abc", List.of("x", "y")));
        List<String> two = new ArrayList<>(with("content-length", "3").fields);
        two.add("content-length");
        two.add("4");
        all.add(new Shape2("H2.CL twice", two, "abc", List.of()));
        return all.stream();
    }

    private static void send(RawHttp2 c, int stream, Shape2 shape, List<String> fields) throws IOException {
        c.headers(stream, shape.body == null, fields.toArray(String[]::new));
        if (shape.body != null) {
            c.data(stream, shape.trailers.isEmpty(), shape.body);
            if (!shape.trailers.isEmpty()) {
                c.headers(stream, true, shape.trailers.toArray(String[]::new));
            }
        }
    }

    /** Checks that the stream is reset, and that the connection still serves. */
    private static void isReset(int port, Shape2 shape, List<String> fields, String path) throws Exception {
        try (RawHttp2 c = new RawHttp2(port)) {
            send(c, 1, shape, fields);
            RawHttp2.Outcome outcome = c.outcome(1);
            assertThat(outcome.what()).as(shape.name + outcome).isEqualTo("reset");
            assertThat(outcome.error()).as(shape.name + outcome).isEqualTo(1); // PROTOCOL_ERROR
            assertThat(outcome.status()).as(shape.name + outcome).isIn("", "400");
            c.headers(3, true, ":method", "GET", ":scheme", "http", ":authority", "x", ":path", path);
            assertThat(c.outcome(3).status()).isEqualTo("200");
        }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("http2Shapes")
    void theServerResetsAMalformedRequestOverHttp2(Shape2 shape) throws Exception {
        isReset(RIG.port, shape, shape.fields, "/ok");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("http2Shapes")
    void aChildReceivesNothingOfAMalformedRequestOverHttp2(Shape2 shape) throws Exception {
        String probe = "/probe/" + probes++;
        isReset(GATEWAY_PORT, shape, shape.fields, probe);
        assertThat(CHILD.before(probe)).isEmpty();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("http2Shapes")
    void aChildReceivesNothingOfAMalformedGrpcCall(Shape2 shape) throws Exception {
        List<String> fields = new ArrayList<>(shape.fields);
        fields.replaceAll(f -> f.equals("/echo") ? "/t.T/Unary" : f.equals("text/plain") ? "application/grpc" : f);
        String probe = "/probe/" + probes++;
        isReset(GATEWAY_PORT, shape, fields, probe);
        assertThat(CHILD.before(probe)).isEmpty();
        // the gateway has one connection to the child, so that the child receives what was forwarded before this call
        try (RawHttp2 c = new RawHttp2(GATEWAY_PORT)) {
            String[] call = {
                ":method",
                "POST",
                ":scheme",
                "http",
                ":authority",
                "x",
                ":path",
                probe,
                "content-type",
                "application/grpc"
            };
            c.headers(1, true, call);
            assertThat(c.outcome(1).status()).isEqualTo("200");
        }
        List<String> calls = new ArrayList<>();
        String next = GRPC_CALLS.poll(10, TimeUnit.SECONDS);
        while (next != null && !next.equals(probe)) {
            calls.add(next);
            next = GRPC_CALLS.poll(10, TimeUnit.SECONDS);
        }
        assertThat(next).isEqualTo(probe);
        // a call is forwarded with its head; what is wrong after it cancels it
        if (shape.trailers.isEmpty() && !shape.name.startsWith("H2.CL")) {
            assertThat(calls).isEmpty();
        }
    }
}
