// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Operation;
import io.nereid.transport.EventLoops;
import io.nereid.transport.RawHttp2;
import io.nereid.transport.Rig;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.server.Server;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A client, the proxy, and an upstream server that responds with the bytes of a test. */
class PooledUpstreamClientTest {
    /** Another server: one script per connection, in the order in which they come. */
    private static final class Far implements AutoCloseable {
        interface Script {
            void run(Socket socket, Far far) throws IOException;
        }

        final ServerSocket listener;
        final BlockingQueue<Script> scripts = new LinkedBlockingQueue<>();
        final BlockingQueue<String> heads = new LinkedBlockingQueue<>();
        final BlockingQueue<byte[]> bodies = new LinkedBlockingQueue<>();
        final BlockingQueue<String> events = new LinkedBlockingQueue<>();
        final AtomicInteger connections = new AtomicInteger();
        final ExecutorService threads = Threads.pool("test-far", 16);

        Far() {
            try {
                listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
            threads.execute(() -> {
                while (!listener.isClosed()) {
                    try {
                        Socket socket = listener.accept();
                        connections.incrementAndGet();
                        threads.execute(() -> serve(socket));
                    } catch (IOException e) {
                        return;
                    }
                }
            });
        }

        private void serve(Socket socket) {
            try (socket) {
                java.util.Objects.requireNonNull(scripts.poll(10, TimeUnit.SECONDS))
                        .run(socket, this);
            } catch (IOException | InterruptedException e) {
                events.add("broken " + e.getMessage());
            }
        }

        /** Reads a request; false at the end of the input. */
        boolean read(Socket socket) throws IOException {
            InputStream in = socket.getInputStream();
            ByteArrayOutputStream head = new ByteArrayOutputStream();
            while (!head.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
                int c = in.read();
                if (c < 0) {
                    events.add("closed");
                    return false;
                }
                head.write(c);
            }
            String text = head.toString(StandardCharsets.ISO_8859_1);
            heads.add(text);
            int at = text.toLowerCase(java.util.Locale.ROOT).indexOf("content-length: ");
            int length = at < 0 ? 0 : Integer.parseInt(text.substring(at + 16, text.indexOf('\r', at)));
            bodies.add(in.readNBytes(length));
            return true;
        }

        static void write(Socket socket, String latin1) throws IOException {
            socket.getOutputStream().write(latin1.getBytes(StandardCharsets.ISO_8859_1));
            socket.getOutputStream().flush();
        }

        /** Sends this response to every request of a connection. */
        void answers(String latin1) {
            scripts.add((socket, far) -> {
                while (far.read(socket)) {
                    write(socket, latin1);
                }
            });
        }

        /** Sends this response to one request of a connection, then closes. */
        void answersOnce(String latin1) {
            scripts.add((socket, far) -> {
                far.read(socket);
                write(socket, latin1);
            });
        }

        /** Reads one request and does not respond until the other side closes. */
        void answersOnceNever() {
            scripts.add((socket, far) -> {
                far.read(socket);
                far.read(socket);
            });
        }

        @Override
        public void close() {
            try {
                listener.close();
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
            threads.shutdownNow();
            try {
                // until then the system may still accept
                assertThat(threads.awaitTermination(10, TimeUnit.SECONDS)).isTrue();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private final EventLoops loops = new EventLoops(1, true);
    private final PooledUpstreamClient relay = new PooledUpstreamClient(new PooledUpstreamClient.Options(
            loops, Duration.ofSeconds(5), Duration.ofSeconds(30), 4, Clock.system(), PooledUpstreamClient.Trust.JVM));
    private final Far far = new Far();
    private ForwardOptions terms =
            new ForwardOptions(Duration.ofSeconds(20), 1 << 20, List.of(new UpstreamClient.Header("X-Added", "by us")));
    private final Server near = new Server(
            ServerOptions.builder().listen("127.0.0.1", 0).loops(loops).build(), List.of(new ProtocolCodec() {
                @Override
                public String name() {
                    return "near";
                }

                @Override
                public List<HttpRoute> httpRoutes() {
                    return List.of(new HttpRoute(
                            HttpRoute.ANY,
                            "/{rest...}",
                            Operation.INFERENCE,
                            x -> relay.forward(
                                    x,
                                    new UpstreamClient.Address("127.0.0.1", far.listener.getLocalPort()),
                                    x.path() + "?far=1",
                                    terms)));
                }
            }));
    private final int port = near.start().get(0).getPort();

    @AfterEach
    void stop() {
        near.close();
        relay.close();
        loops.close();
        far.close();
    }

    private static String get(String path, String... headers) {
        return "GET " + path + " HTTP/1.1\r\nhost: near.example\r\n" + String.join("", headers) + "\r\n";
    }

    private static String post(String body) {
        return "POST /x HTTP/1.1\r\nhost: near.example\r\ncontent-length: " + body.length() + "\r\n\r\n" + body;
    }

    private static String ok(String body) {
        return "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: " + body.length() + "\r\n\r\n" + body;
    }

    private static String head(Far far) throws InterruptedException {
        return java.util.Objects.requireNonNull(far.heads.poll(10, TimeUnit.SECONDS));
    }

    /** The body of a chunked response; the part received, with a mark, if it is truncated. */
    private static String chunked(Rig.Raw c) throws IOException {
        StringBuilder body = new StringBuilder();
        while (true) {
            String line = c.line();
            if (line.isEmpty()) {
                return body + "<broken>";
            }
            int n = Integer.parseInt(line.strip(), 16);
            if (n == 0) {
                c.line();
                return body.toString();
            }
            body.append(new String(c.in.readNBytes(n), StandardCharsets.ISO_8859_1));
            c.line();
        }
    }

    @Test
    void requestsGoOnOverKeptConnectionsWithTheirHeaders() throws Exception {
        far.answers("HTTP/1.1 201 Made\r\nContent-Type: a/b\r\nX-One: 1\r\nx-one: 2\r\nDate: then\r\nServer: far\r\n"
                + "Connection: X-Hop, keep-alive\r\nX-Hop: 3\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: no\r\n"
                + "content-length: 2\r\n\r\nhi");
        try (Rig.Raw c = new Rig.Raw(port)) {
            for (int i = 0; i < 3; i++) {
                Rig.Reply r =
                        c.ask("POST /p%20q HTTP/1.1\r\nhost: near.example\r\ntraceparent: 00-ab\r\nte: trailers\r\n"
                                + "connection: x-mine\r\nx-mine: 1\r\nx-added: by them\r\nx-forwarded-proto: https\r\n"
                                + "proxy-authorization: a\r\nupgrade: h2c\r\ncontent-length: 3\r\n\r\nabc");
                assertThat(r.status()).isEqualTo(201);
                assertThat(r.text()).isEqualTo("hi");
                assertThat(r.head())
                        .contains(
                                "content-type: a/b\r\n",
                                "x-one: 1\r\nx-one: 2\r\n",
                                "date: then\r\n",
                                "server: far\r\n")
                        .doesNotContain("x-hop", "keep-alive", "proxy-", "GMT");
                assertThat(head(far).toLowerCase(java.util.Locale.ROOT))
                        .startsWith("post /p%20q?far=1 http/1.1\r\n")
                        .contains(
                                "host: near.example\r\n",
                                "traceparent: 00-ab\r\n",
                                "x-added: by us\r\n",
                                "x-forwarded-for: 127.0.0.1\r\n",
                                "x-forwarded-proto: https\r\n",
                                "x-forwarded-host: near.example\r\n",
                                "content-length: 3\r\n")
                        .doesNotContain("x-mine", "te:", "proxy-", "upgrade", "by them", "connection");
                assertThat(far.bodies.remove()).asString().isEqualTo("abc");
            }
        }
        assertThat(far.connections).hasValue(1);
    }

    @Test
    void largeBodiesGoBothWaysUnchanged() throws Exception {
        String body = "0123456789abcdef".repeat(1 << 16);
        far.answers(ok(body));
        try (Rig.Raw c = new Rig.Raw(port)) {
            for (int i = 0; i < 3; i++) {
                c.send(post(body));
                assertThat(c.read().header("transfer-encoding")).isEqualTo("chunked");
                assertThat(chunked(c)).isEqualTo(body);
                assertThat(far.bodies.remove()).asString().isEqualTo(body);
            }
        }
        assertThat(far.connections).hasValue(1);
    }

    @Test
    void chunksAndBodiesUntilTheEndOfTheConnectionAreRelayed() throws Exception {
        far.answersOnce("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
                + "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: gzip\r\n\r\n"
                + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: 1\r\n\r\n");
        far.answersOnce("HTTP/1.1 200 OK\r\n\r\nuntil the end");
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(get("/1"));
            assertThat(r.head()).contains("content-encoding: gzip").doesNotContain("link");
            assertThat(chunked(c)).isEqualTo("abcde");
            c.send(get("/2")).read();
            assertThat(chunked(c)).isEqualTo("until the end");
        }
    }

    @Test
    void answersWithoutABodyHaveNone() throws Exception {
        far.scripts.add((socket, f) -> {
            f.read(socket);
            Far.write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 12345\r\n\r\n");
            f.read(socket);
            Far.write(socket, "HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n");
            f.read(socket);
            Far.write(socket, "HTTP/1.1 304 Not Modified\r\netag: q\r\ncontent-length: 77\r\n\r\n");
            f.read(socket);
            Far.write(socket, ok("last"));
        });
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.send("HEAD /x HTTP/1.1\r\nhost: x\r\n\r\n").read(false);
            assertThat(r.header("content-length")).isEqualTo("12345");
            r = c.ask(get("/204"));
            assertThat(r.status()).isEqualTo(204);
            assertThat(r.header("content-length")).isNull();
            r = c.send(get("/304")).read(false);
            assertThat(r.status()).isEqualTo(304);
            assertThat(r.header("content-length")).isEqualTo("77");
            assertThat(c.ask(get("/last")).text()).isEqualTo("last");
        }
        assertThat(far.connections).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "HTTP/1.1 2", "garbage\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"})
    void malformedResponsesAreUnavailable(String bytes) throws Exception {
        far.answersOnce(bytes);
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(post("abc"));
            assertThat(r.status()).isEqualTo(503);
            assertThat(r.text()).contains("lost before the response");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "content-length: 3\r\ncontent-length: 3",
                "content-length: 3\r\ncontent-length: 30",
                "content-length: 3, 3",
                "content-length: +3",
                "content-length: -3",
                "content-length: 3 3",
                "content-length: 0x3",
                "content-length: 3\r\ntransfer-encoding: chunked",
                "transfer-encoding: chunked, identity",
                "content-length: 3\r\nx\0: z",
                "content-length: 3\r\n: z",
                "content-length: 3\r\nx",
                "content-length: 3\r\nx: a\rb",
                "content-length: 3\r\nx: a\0b",
                "content-length: 3\r\nx: a\nb: c\r\n d"
            })
    void responsesWithAnAmbiguousLengthOrMalformedHeadersAreUnavailable(String headers) throws Exception {
        far.answersOnce("HTTP/1.1 200 OK\r\n" + headers + "\r\n\r\nabc");
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(post("abc"));
            assertThat(r.status()).as(r.head()).isEqualTo(503);
            assertThat(r.text()).contains("lost before the response");
        }
    }

    @Test
    void controlCharactersOfAResponseDoNotReachTheClient() throws Exception {
        far.answersOnce("HTTP/1.1 200 O\u001bK\r\ncontent-length: 3\r\nx: a\u001bb\r\n\r\nabc");
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(get("/"));
            assertThat(r.head().replace("\r\n", "")).matches("[\\x20-\\x7e]*");
        }
    }

    @Test
    void cookiesThatHttp2SplitsAreOneHeader() throws Exception {
        far.answers(ok("abc"));
        try (RawHttp2 c = new RawHttp2(port)) {
            c.headers(
                    1,
                    true,
                    ":method",
                    "GET",
                    ":scheme",
                    "http",
                    ":authority",
                    "near.example",
                    ":path",
                    "/",
                    "cookie",
                    "a=b",
                    "cookie",
                    "c=d");
            assertThat(c.outcome(1).body()).isEqualTo("abc");
        }
        assertThat(head(far)).contains("\r\ncookie: a=b; c=d\r\n");
    }

    @Test
    void theHostOfATargetInAbsoluteFormGoesOn() throws Exception {
        far.answers(ok("abc"));
        try (Rig.Raw c = new Rig.Raw(port)) {
            c.ask("GET http://named.example/x HTTP/1.1\r\nhost: other.example\r\n\r\n");
        }
        assertThat(head(far))
                .contains("\r\nhost: named.example\r\n")
                .contains("\r\nx-forwarded-host: named.example\r\n")
                .doesNotContain("other");
    }

    @Test
    void headersThatCouldBeginAnotherOneAreNotSent() {
        for (UpstreamClient.Header header : List.of(
                new UpstreamClient.Header("x\r\ny", "z"),
                new UpstreamClient.Header("x: y\r\nz", "z"),
                new UpstreamClient.Header("x y", "z"),
                new UpstreamClient.Header("", "z"))) {
            assertThat(relay.send("GET", url("/"), List.of(header), new byte[0], terms))
                    .as(header.name())
                    .failsWithin(Duration.ofSeconds(10))
                    .withThrowableThat()
                    .havingCause()
                    .withMessageContaining("is not a valid header name");
        }
        assertThat(relay.send("GET / HTTP/1.1\r\nx: y\r\n\r\nGET", url("/"), List.of(), new byte[0], terms))
                .failsWithin(Duration.ofSeconds(10))
                .withThrowableThat()
                .havingCause()
                .withMessageContaining("is not a valid method");
        assertThat(far.heads).isEmpty();
    }

    @Test
    void headersWithoutEndAreUnavailable() throws Exception {
        far.answersOnce("HTTP/1.1 200 OK\r\nx: " + "y".repeat(300_000) + "\r\n\r\n");
        try (Rig.Raw c = new Rig.Raw(port)) {
            assertThat(c.ask(get("/")).status()).isEqualTo(503);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n8\r\nab",
                "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
                "content-length: 100000\r\n\r\nhalf"
            })
    void anAnswerThatBreaksOffBreaksOffForTheClientToo(String rest) throws Exception {
        far.answersOnce("HTTP/1.1 200 OK\r\n" + rest);
        try (Rig.Raw c = new Rig.Raw(port)) {
            c.send(get("/"));
            assertThat(c.read().status()).isEqualTo(200);
            assertThat(chunked(c)).startsWith("half").endsWith("<broken>");
        }
    }

    @Test
    void aShortAnswerThatBreaksOffIsUnavailable() throws Exception {
        far.answersOnce("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(get("/"));
            assertThat(r.status()).isEqualTo(503);
            assertThat(r.text()).contains("lost within the response");
        }
    }

    @Test
    void aKeptConnectionThatTurnsOutDeadIsReplacedOnceForWhatMayBeRepeated() throws Exception {
        for (int i = 0; i < 2; i++) {
            far.scripts.add((socket, f) -> {
                f.read(socket);
                Far.write(socket, ok("first"));
                f.read(socket); // and no answer to that
            });
        }
        far.answers(ok("second"));
        try (Rig.Raw c = new Rig.Raw(port)) {
            assertThat(c.ask(post("a")).text()).isEqualTo("first");
            Rig.Reply r = c.ask(post("b"));
            assertThat(r.status()).isEqualTo(503);
            assertThat(c.ask(get("/")).text()).isEqualTo("first");
            assertThat(c.ask(get("/")).text()).isEqualTo("second");
        }
        assertThat(far.connections).hasValue(3);
    }

    @Test
    void aServerThatIsNotThereIsUnavailable() throws Exception {
        far.close();
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(get("/"));
            assertThat(r.status()).isEqualTo(503);
            assertThat(r.text()).contains("cannot connect to 127.0.0.1:");
        }
    }

    @Test
    void noAnswerInTimeIsTheDeadlineAndEndsTheRequest() throws Exception {
        terms = new ForwardOptions(Duration.ofMillis(150), 1 << 20, List.of());
        far.answersOnceNever();
        try (Rig.Raw c = new Rig.Raw(port)) {
            Rig.Reply r = c.ask(get("/"));
            assertThat(r.status()).isEqualTo(504);
            assertThat(r.text()).contains("after 150 ms");
        }
        assertThat(far.events.poll(10, TimeUnit.SECONDS)).isNotNull();
    }

    @Test
    void aClientThatGoesEndsTheRequest() throws Exception {
        far.answersOnceNever();
        try (Rig.Raw c = new Rig.Raw(port)) {
            c.send(post("abc"));
            head(far);
        }
        assertThat(far.events.poll(10, TimeUnit.SECONDS)).isNotNull();
    }

    @Test
    void aSlowClientHoldsTheOtherServerBack() throws Exception {
        AtomicInteger megabytes = new AtomicInteger();
        far.scripts.add((socket, f) -> {
            f.read(socket);
            Far.write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 209715200\r\n\r\n");
            byte[] piece = new byte[1 << 20];
            for (int i = 0; i < 200; i++) {
                socket.getOutputStream().write(piece);
                megabytes.incrementAndGet();
            }
        });
        try (Rig.Raw c = new Rig.Raw(port)) {
            c.send(get("/")).read();
            int before = -1;
            while (megabytes.get() != before) {
                before = megabytes.get();
                far.events.poll(300, TimeUnit.MILLISECONDS);
            }
            assertThat(before).isLessThan(100);
            long total = 0;
            for (String line = c.line(); !line.equals("0\r\n"); line = c.line()) {
                int n = Integer.parseInt(line.strip(), 16);
                c.in.skipNBytes(n);
                total += n;
                c.line();
            }
            assertThat(total).isEqualTo(200L << 20);
        }
    }

    @Test
    void moreRequestsThanConnectionsWaitInLine() throws Exception {
        for (int i = 0; i < 4; i++) {
            far.answers(ok("done"));
        }
        {
            java.util.List<java.util.concurrent.CompletableFuture<UpstreamResponse>> all = new java.util.ArrayList<>();
            for (int i = 0; i < 100; i++) {
                all.add(relay.send("GET", url("/" + i), List.of(), new byte[0], terms)
                        .toCompletableFuture());
            }
            for (var one : all) {
                UpstreamResponse a = one.get(10, TimeUnit.SECONDS);
                assertThat(a.status()).isEqualTo(200);
                a.body().release();
            }
        }
        assertThat(far.connections.get()).isLessThanOrEqualTo(4);
    }

    private String url(String path) {
        return "http://localhost:" + far.listener.getLocalPort() + path;
    }

    @Test
    void wholeRequestsAreSentAndAnswersGathered() throws Exception {
        far.answers("HTTP/1.1 302 Found\r\nLocation: /else\r\ncontent-length: 4\r\n\r\ngone");
        UpstreamResponse a = relay.send(
                        "POST",
                        url("/p?q=1"),
                        List.of(new UpstreamClient.Header("ce-id", "7")),
                        "body".getBytes(StandardCharsets.US_ASCII),
                        terms)
                .toCompletableFuture()
                .get(10, TimeUnit.SECONDS);
        assertThat(a.status()).isEqualTo(302);
        assertThat(a.headers()).contains(new UpstreamClient.Header("location", "/else"));
        assertThat(a.body().size()).isEqualTo(4);
        a.body().release();
        assertThat(head(far)).startsWith("POST /p?q=1 HTTP/1.1\r\n").contains("ce-id: 7", "host: localhost:");
        assertThat(far.bodies.remove()).asString().isEqualTo("body");
    }

    private ErrorCode codeOf(String url) {
        try {
            relay.send("GET", url, List.of(), new byte[0], terms)
                    .toCompletableFuture()
                    .join()
                    .body()
                    .release();
            return ErrorCode.OK;
        } catch (CompletionException e) {
            return ((ServingException) e.getCause()).code();
        }
    }

    @Test
    void invalidTargetsAndUrlsAreRejectedWithAReason() {
        assertThat(codeOf("no url")).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(codeOf("ftp://x/y")).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(codeOf("http://does-not-exist.invalid/")).isEqualTo(ErrorCode.UNAVAILABLE);
        far.answersOnce(ok("x".repeat(2 << 20)));
        assertThat(codeOf(url("/"))).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        far.scripts.add((socket, f) -> Far.write(socket, "this is not TLS at all\r\n"));
        assertThat(codeOf("https://localhost:" + far.listener.getLocalPort() + "/"))
                .isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void nothingIsKeptOfWhatWentWellNorOfWhatBrokeOff() throws Exception {
        long before = Rig.activeBuffers();
        String body = "x".repeat(200_000);
        for (int i = 0; i < 10; i++) {
            far.answersOnce(ok(body).replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"));
            far.answersOnce("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
            far.answersOnce("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + "y".repeat(30_000));
            far.answersOnce("garbage\r\n\r\n");
            far.answersOnceNever();
            try (Rig.Raw c = new Rig.Raw(port)) {
                c.send(post(body)).read();
                assertThat(chunked(c)).isEqualTo(body);
                assertThat(c.ask(post(body)).status()).isEqualTo(503);
                c.send(post(body)).read();
                assertThat(chunked(c)).endsWith("<broken>");
            }
            try (Rig.Raw c = new Rig.Raw(port)) {
                assertThat(c.ask(post(body)).status()).isEqualTo(503);
                far.bodies.clear();
                far.heads.clear();
                far.events.clear();
                c.send(post(body));
                head(far);
            }
            assertThat(far.events.poll(10, TimeUnit.SECONDS)).isNotNull();
        }
        stop();
        assertThat(Rig.activeBuffers()).isLessThanOrEqualTo(before);
    }
}
