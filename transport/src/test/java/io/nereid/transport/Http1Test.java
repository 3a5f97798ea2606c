// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.server.Server;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class Http1Test {
    private static final Rig RIG = new Rig();
    private static final String HOST = "host: x\r\n";

    @AfterAll
    static void stop() {
        RIG.close();
    }

    private static String get(String path) {
        return "GET " + path + " HTTP/1.1\r\n" + HOST + "\r\n";
    }

    private static String post(String path, String headers, String body) {
        return "POST " + path + " HTTP/1.1\r\n" + HOST + headers + "content-length: " + body.length() + "\r\n\r\n"
                + body;
    }

    @Test
    void aReplyCarriesStatusTypeLengthAndDate() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply r = c.ask(get("/ok"));
            assertThat(r.status()).isEqualTo(200);
            assertThat(r.text()).isEqualTo("{\"ok\":true}");
            assertThat(r.header("content-type")).isEqualTo("application/json");
            assertThat(r.header("x-content-type-options")).isEqualTo("nosniff");
            assertThat(r.header("date")).endsWith("GMT");
            assertThat(r.header("connection")).isNull();
        }
    }

    @Test
    void pipelinedRequestsAreAnsweredInOrder() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            StringBuilder all = new StringBuilder();
            for (int i = 0; i < 50; i++) {
                all.append(i % 2 == 0 ? get("/text/" + i) : post("/echo-elsewhere", "", "x".repeat(i)));
            }
            c.send(all.toString());
            for (int i = 0; i < 50; i++) {
                assertThat(c.read().body()).as("answer %d", i).hasSize(i);
            }
        }
    }

    @Test
    void bytesMayComeOneByOne() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            for (byte b : post("/echo", "", "hello").getBytes(StandardCharsets.US_ASCII)) {
                c.send(new byte[] {b});
            }
            assertThat(c.read().text()).isEqualTo("hello");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 1000, 5000, 70_000, 1_100_000, 5_000_000})
    void bodiesOfAnySizeComeBackAsTheyWent(int size) throws IOException {
        byte[] body = new byte[size];
        new Random(size).nextBytes(body);
        try (Rig.Raw c = RIG.connect()) {
            for (String path : List.of("/echo", "/echo-elsewhere")) {
                c.send("POST " + path + " HTTP/1.1\r\n" + HOST + "content-length: " + size + "\r\n\r\n");
                c.send(body);
                assertThat(c.read().body()).isEqualTo(body);
            }
        }
    }

    @Test
    void textAndTensorsAreGatheredInOrder() throws IOException {
        byte[] body = new byte[20_000];
        new Random(7).nextBytes(body);
        try (Rig.Raw c = RIG.connect()) {
            c.send("POST /parts HTTP/1.1\r\n" + HOST + "content-length: 20000\r\n\r\n")
                    .send(body);
            Rig.Reply r = c.read();
            assertThat(r.header("x-more")).isEqualTo("yes");
            ByteArrayOutputStream expected = new ByteArrayOutputStream();
            expected.write('<');
            expected.write(body, 0, 100);
            expected.write('|');
            expected.write(body, 100, 19_900);
            expected.write('>');
            assertThat(r.body()).isEqualTo(expected.toByteArray());
        }
    }

    @Test
    void chunkedBodiesAreJoined() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            String head = "POST /echo HTTP/1.1\r\n" + HOST + "transfer-encoding: chunked\r\n\r\n";
            assertThat(c.ask(head + "5\r\nhello\r\n6;ext=\"1\"\r\n world\r\n0\r\nx-trailer: 1\r\n\r\n" + get("/ok"))
                            .text())
                    .isEqualTo("hello world");
            assertThat(c.read().status()).isEqualTo(200);
            assertThat(c.ask(head + "0\r\n\r\n").body()).isEmpty();
        }
    }

    @Test
    void http10ClosesUnlessAskedToKeepAlive() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply kept = c.ask("GET /ok HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
            assertThat(kept.header("connection")).isEqualTo("keep-alive");
            Rig.Reply last = c.ask("GET /ok HTTP/1.0\r\n\r\n");
            assertThat(last.header("connection")).isEqualTo("close");
            assertThat(c.closed()).isTrue();
        }
    }

    @Test
    void connectionCloseIsObeyed() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply r = c.ask("GET /ok HTTP/1.1\r\n" + HOST + "Connection: foo, Close\r\n\r\n");
            assertThat(r.header("connection")).isEqualTo("close");
            assertThat(c.closed()).isTrue();
        }
    }

    @Test
    void headDescribesWhatGetWouldSend() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply r = c.send("HEAD /ok HTTP/1.1\r\n" + HOST + "\r\n").read(false);
            assertThat(r.header("content-length")).isEqualTo("11");
            assertThat(c.ask(get("/ok")).text()).isEqualTo("{\"ok\":true}");
        }
    }

    @Test
    void unknownPathsAre404AndWrongVerbs405() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply r = c.ask(get("/nope"));
            assertThat(r.status()).isEqualTo(404);
            assertThat(r.text()).isEqualTo("{\"error\":\"Not Found\"}");
            r = c.ask(post("/ok", "", "body"));
            assertThat(r.status()).isEqualTo(405);
            assertThat(r.text()).isEqualTo("{\"error\":\"Method Not Allowed\"}");
            assertThat(r.header("allow")).isEqualTo("GET, HEAD");
            r = c.ask("OPTIONS /ok HTTP/1.1\r\n" + HOST + "\r\n");
            assertThat(r.status()).isEqualTo(204);
            assertThat(r.header("allow")).isEqualTo("GET, HEAD");
            assertThat(r.header("access-control-allow-origin")).isNull();
            assertThat(c.ask("OPTIONS * HTTP/1.1\r\n" + HOST + "\r\n").status()).isEqualTo(404);
            assertThat(c.ask(get("/ok")).status()).isEqualTo(200);
        }
    }

    @Test
    void placeholdersAreDecodedAndBadEscapesRejected() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            assertThat(c.ask(get("/items/a%20b/sub/%C3%A9%2Fz")).text()).isEqualTo("a b|é/z");
            assertThat(c.ask(get("/items/a%2/sub/b")).status()).isEqualTo(400);
            assertThat(c.ask(get("/items/%ff/sub/b")).status()).isEqualTo(400);
            assertThat(c.ask(get("/items//sub/b")).status()).isEqualTo(404);
            assertThat(c.ask(get("/query?a=1&q=x+%26y&q=2")).text()).isEqualTo("x &y");
            assertThat(c.ask(get("/query?a=1")).text()).isEqualTo("null");
            assertThat(c.ask(get("http://other/query?q=1")).text()).isEqualTo("1");
        }
    }

    @Test
    void headersAreFoundInAnyCaseAndAreNotThoseOfTheRequestBefore() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            for (String v : List.of("a", "bb", "a", "a", "c")) {
                assertThat(c.ask("GET /header HTTP/1.1\r\n" + HOST + "X-Test:  " + v + " \r\n\r\n")
                                .text())
                        .isEqualTo(v);
            }
            assertThat(c.ask(get("/header")).text()).isEqualTo("null");
        }
    }

    @Test
    void aClientThatExpectsContinueGets100Continue() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            c.send("POST /echo HTTP/1.1\r\n" + HOST + "expect: 100-continue\r\ncontent-length: 3\r\n\r\n");
            assertThat(c.line()).isEqualTo("HTTP/1.1 100 Continue\r\n");
            assertThat(c.line()).isEqualTo("\r\n");
            assertThat(c.ask("abc").text()).isEqualTo("abc");
            assertThat(c.ask("POST /echo HTTP/1.1\r\n" + HOST + "expect: magic\r\ncontent-length: 3\r\n\r\n")
                            .status())
                    .isEqualTo(417);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc",
                "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3, 3\r\n\r\nabc",
                "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: +3\r\n\r\nabc",
                "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -3\r\n\r\nabc",
                "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length:\r\n\r\n",
                "POST /echo HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
                "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
                "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
                "GET /ok HTTP/1.1\nhost: x\n\n",
                "GET /ok HTTP/1.1\r\nhost: x\nfoo: bar\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost: x\rfoo: bar\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost : x\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost: x\r\n folded\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost: x\r\nbad name: 1\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost: x\r\n: 1\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost: x\r\na: \0\r\n\r\n",
                "GET /ok HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
                "GET /ok HTTP/1.1\r\n\r\n",
                "GET  /ok HTTP/1.1\r\nhost: x\r\n\r\n",
                "GET /ok  HTTP/1.1\r\nhost: x\r\n\r\n",
                "GET /ok\r\nhost: x\r\n\r\n",
                "GET /ok HTTP/1.1 \r\nhost: x\r\n\r\n",
                "GET /o\u00e9 HTTP/1.1\r\nhost: x\r\n\r\n",
                "G\u0001T /ok HTTP/1.1\r\nhost: x\r\n\r\n"
            })
    void malformedRequestsGet400AndAClosedConnection(String request) throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply r = c.ask(request);
            assertThat(r.status()).isEqualTo(400);
            assertThat(r.text()).startsWith("{\"error\":\"").endsWith("\"}");
            assertThat(r.header("connection")).isEqualTo("close");
            assertThat(c.closed()).isTrue();
        }
    }

    @Test
    void unknownVersionsAndCodingsAreRejected() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            assertThat(c.ask("GET /ok HTTP/2.0\r\n" + HOST + "\r\n").status()).isEqualTo(505);
        }
        try (Rig.Raw c = RIG.connect()) {
            assertThat(c.ask("POST /echo HTTP/1.1\r\n" + HOST + "transfer-encoding: gzip, chunked\r\n\r\n")
                            .status())
                    .isEqualTo(501);
        }
    }

    @Test
    void headsAndBodiesOverTheirLimitsAreRejected() throws IOException {
        try (Rig rig = new Rig(o -> o.maxHeadBytes(1000).maxBodyBytes(2000))) {
            try (Rig.Raw c = rig.connect()) {
                assertThat(c.ask("GET /" + "x".repeat(2000) + " HTTP/1.1\r\n").status())
                        .isEqualTo(414);
            }
            try (Rig.Raw c = rig.connect()) {
                assertThat(c.ask("GET /ok HTTP/1.1\r\n" + HOST + "a: " + "x".repeat(2000) + "\r\n\r\n")
                                .status())
                        .isEqualTo(431);
            }
            try (Rig.Raw c = rig.connect()) {
                c.send("POST /echo HTTP/1.1\r\n" + HOST + "content-length: 2000\r\n\r\n" + "x".repeat(2000));
                assertThat(c.read().body()).hasSize(2000);
                Rig.Reply r = c.ask("POST /echo HTTP/1.1\r\n" + HOST + "content-length: 2001\r\n\r\n");
                assertThat(r.status()).isEqualTo(413);
                assertThat(r.text()).contains("2001").contains("2000");
            }
            try (Rig.Raw c = rig.connect()) {
                c.send("POST /echo HTTP/1.1\r\n" + HOST + "transfer-encoding: chunked\r\n\r\n7d1\r\n"
                        + "x".repeat(2001));
                assertThat(c.read().status()).isEqualTo(413);
            }
            assertThat(rig.server.stats().rejected()).isEqualTo(4);
        }
    }

    @Test
    void bodiesBeyondTheBudgetAreRejectedBeforeTheyAreRead() throws Exception {
        ByteBudget budget = new ByteBudget(10_000);
        try (Rig rig = new Rig(o -> o.budget(budget));
                Rig.Raw first = rig.connect();
                Rig.Raw second = rig.connect()) {
            first.send("POST /park HTTP/1.1\r\n" + HOST + "content-length: 9000\r\n\r\n" + "x".repeat(9000));
            HttpExchange parked = rig.parkedExchange();
            assertThat(budget.used()).isEqualTo(9000);
            Rig.Reply r = second.ask("POST /park HTTP/1.1\r\n" + HOST + "content-length: 2000\r\n\r\n");
            assertThat(r.status()).isEqualTo(429);
            assertThat(second.closed()).isTrue();
            parked.reply(HttpReply.json(200, "{}"));
            assertThat(first.read().status()).isEqualTo(200);
            Rig.released(budget);
        }
    }

    @Test
    void compressedBodiesAreInflatedWithinTheLimit() throws IOException {
        byte[] plain = "compress me ".repeat(5000).getBytes(StandardCharsets.US_ASCII);
        ByteArrayOutputStream gzip = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(gzip)) {
            out.write(plain);
        }
        ByteArrayOutputStream deflate = new ByteArrayOutputStream();
        try (DeflaterOutputStream out = new DeflaterOutputStream(deflate)) {
            out.write(plain);
        }
        ByteBudget budget = new ByteBudget(1 << 20);
        try (Rig rig = new Rig(o -> o.maxBodyBytes(60_000).budget(budget))) {
            try (Rig.Raw c = rig.connect()) {
                for (int round = 0; round < 2; round++) {
                    c.send(encoded("gzip", gzip.toByteArray()));
                    assertThat(c.read().body()).isEqualTo(plain);
                    c.send(encoded("deflate", deflate.toByteArray()));
                    assertThat(c.read().body()).isEqualTo(plain);
                }
                c.send(encoded("gzip", plain));
                assertThat(c.read().status()).isEqualTo(400);
                byte[] cut = java.util.Arrays.copyOf(gzip.toByteArray(), gzip.size() - 9);
                c.send(encoded("gzip", cut));
                assertThat(c.read().status()).isEqualTo(400);
                byte[] wrong = gzip.toByteArray();
                wrong[wrong.length - 6] ^= 1;
                c.send(encoded("gzip", wrong));
                assertThat(c.read().status()).isEqualTo(400);
                c.send(encoded("br", plain));
                Rig.Reply r = c.read();
                assertThat(r.status()).isEqualTo(501);
                assertThat(r.text()).isEqualTo("{\"error\":\"Unsupported compression type\"}");
                assertThat(r.header("accept-encoding")).isEqualTo("gzip, deflate");
            }
            ByteArrayOutputStream bomb = new ByteArrayOutputStream();
            try (GZIPOutputStream out = new GZIPOutputStream(bomb)) {
                out.write(new byte[60_001]);
            }
            try (Rig.Raw c = rig.connect()) {
                c.send(encoded("gzip", bomb.toByteArray()));
                assertThat(c.read().status()).isEqualTo(413);
            }
            Rig.released(budget);
        }
    }

    private static byte[] encoded(String encoding, byte[] body) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(("POST /echo HTTP/1.1\r\n" + HOST + "content-encoding: " + encoding + "\r\ncontent-length: "
                        + body.length + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
        out.write(body);
        return out.toByteArray();
    }

    @Test
    void largeTextsAreCompressedForWhoAsks() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            String head = "GET /text/5000 HTTP/1.1\r\n" + HOST + "accept-encoding: ";
            Rig.Reply r = c.ask(head + "gzip;q=0.5, br\r\n\r\n");
            assertThat(r.header("content-encoding")).isEqualTo("gzip");
            assertThat(new GZIPInputStream(new ByteArrayInputStream(r.body())).readAllBytes())
                    .hasSize(5000);
            assertThat(c.ask(head + "deflate, gzip;q=0.5\r\n\r\n").header("content-encoding"))
                    .isEqualTo("deflate");
            assertThat(c.ask(head + "gzip;q=0\r\n\r\n").header("content-encoding"))
                    .isNull();
            assertThat(c.ask(get("/text/5000")).body()).hasSize(5000);
            assertThat(c.ask("GET /text/100 HTTP/1.1\r\n" + HOST + "accept-encoding: gzip\r\n\r\n")
                            .body())
                    .hasSize(100);
        }
    }

    @Test
    void anExceptionOfAHandlerIsReportedWithAnIdAndWithoutDetails() throws IOException {
        try (Rig.Raw c = RIG.connect()) {
            Rig.Reply r = c.ask(get("/throw"));
            assertThat(r.status()).isEqualTo(500);
            assertThat(r.text()).contains("error id").doesNotContain("secret").doesNotContain("Exception");
            assertThat(c.ask(get("/twice")).text()).isEqualTo("1");
            assertThat(c.ask(get("/ok")).status()).isEqualTo(200);
        }
    }

    @Test
    void aClientThatLeavesCancelsItsExchange() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(post("/park", "", "abc"));
            HttpExchange parked = RIG.parkedExchange();
            c.close();
            assertThat(RIG.event()).isEqualTo("cancel");
            parked.reply(HttpReply.json(200, "{}"));
        }
    }

    @Test
    void anExchangeThatIsAnsweredIsNotCancelled() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(post("/park", "", "abc"));
            RIG.parkedExchange().reply(HttpReply.json(200, "{}"));
            assertThat(c.read().status()).isEqualTo(200);
        }
        try (Rig.Raw c = RIG.connect()) {
            assertThat(c.ask(get("/ok")).status()).isEqualTo(200);
        }
        assertThat(RIG.events).isEmpty();
    }

    @Test
    void requestsThatDoNotArriveAndIdleConnectionsAreEnded() throws IOException {
        try (Rig rig = new Rig(o -> o.requestTimeout(Duration.ofMillis(200)).idleTimeout(Duration.ofMillis(200)))) {
            try (Rig.Raw c = rig.connect()) {
                assertThat(c.ask("GET /ok HTTP/1.1\r\nho").status()).isEqualTo(408);
                assertThat(c.closed()).isTrue();
            }
            try (Rig.Raw c = rig.connect()) {
                assertThat(c.ask("POST /echo HTTP/1.1\r\n" + HOST + "content-length: 10\r\n\r\nabc")
                                .status())
                        .isEqualTo(408);
            }
            try (Rig.Raw c = rig.connect()) {
                assertThat(c.ask(get("/ok")).status()).isEqualTo(200);
                assertThat(c.closed()).isTrue();
            }
        }
    }

    @Test
    void aClientThatTakesItsAnswerSlowlyIsServedAndOneThatTakesNothingIsNot() throws Exception {
        try (Rig rig = new Rig(o -> o.idleTimeout(Duration.ofMillis(300)))) {
            byte[] body = new byte[20_000_000];
            String head = "POST /echo HTTP/1.1\r\n" + HOST + "content-length: " + body.length + "\r\n\r\n";
            try (Rig.Raw slow = rig.connect();
                    Rig.Raw stuck = rig.connect()) {
                slow.send(head).send(body);
                stuck.send(head).send(body);
                int got = 0;
                CountDownLatch never = new CountDownLatch(1);
                while (got < body.length) { // two seconds and more in all, many times the timeout
                    assertThat(never.await(20, TimeUnit.MILLISECONDS)).isFalse();
                    got += slow.in.readNBytes(200_000).length;
                }
                assertThat(got).isGreaterThanOrEqualTo(body.length);
                int stuckGot = 0;
                try {
                    stuckGot = stuck.in.readAllBytes().length;
                } catch (java.net.SocketException e) {
                    assertThat(e).hasMessageContaining("reset");
                }
                assertThat(stuckGot).isLessThan(body.length);
            }
        }
    }

    @Test
    void aMetricsAddressServesMetricsAlone() throws IOException {
        Rig rig = new Rig();
        ServerOptions options = ServerOptions.builder()
                .listen("127.0.0.1", 0, ServerOptions.Purpose.METRICS)
                .nativeTransport(false)
                .build();
        try (rig;
                Server server = new Server(options, List.of(rig));
                Rig.Raw c = new Rig.Raw(server.start().get(0).getPort())) {
            assertThat(c.ask(get("/metrics")).text()).isEqualTo("up 1\n");
            assertThat(c.ask(get("/ok")).status()).isEqualTo(404);
        }
    }

    @Test
    void aPortInUseIsNamedWithWhatToDo() {
        ServerOptions options =
                ServerOptions.builder().listen("127.0.0.1", RIG.port).build();
        try (Server second = new Server(options, List.of(RIG))) {
            assertThatThrownBy(second::start).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                assertThat(e.getMessage()).contains("127.0.0.1:" + RIG.port);
                assertThat(e.remedy()).contains("choose another");
            });
        }
    }

    @Test
    void theAccessLogReceivesEveryExchange() throws Exception {
        BlockingQueue<AccessLog.Entry> entries = new LinkedBlockingQueue<>();
        try (Rig rig = new Rig(o -> o.accessLog(entries::add));
                Rig.Raw c = rig.connect()) {
            c.ask(post("/echo", "x-request-id: r1\r\n", "hello"));
            AccessLog.Entry e = java.util.Objects.requireNonNull(entries.poll(5, TimeUnit.SECONDS));
            assertThat(e.protocol()).isEqualTo("HTTP/1.1");
            assertThat(List.of(
                            e.method(),
                            e.path(),
                            "" + e.status(),
                            "" + e.bytesIn(),
                            "" + e.bytesOut(),
                            "" + e.requestId()))
                    .containsExactly("POST", "/echo", "200", "5", "5", "r1");
            assertThat(e.nanos()).isPositive();
            c.ask("nonsense\r\n\r\n");
            assertThat(java.util.Objects.requireNonNull(entries.poll(5, TimeUnit.SECONDS))
                            .status())
                    .isEqualTo(400);
        }
    }

    @Test
    void theJdkClientIsServed() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpResponse<String> r = client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + RIG.port + "/echo"))
                        .POST(HttpRequest.BodyPublishers.ofString("from the JDK"))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(r.body()).isEqualTo("from the JDK");
    }

    @Test
    void draining() throws Exception {
        try (Rig rig = new Rig();
                Rig.Raw idle = rig.connect();
                Rig.Raw busy = rig.connect()) {
            assertThat(idle.ask(get("/ok")).header("connection")).isNull();
            rig.server.announceDrain();
            try (Rig.Raw late = rig.connect()) {
                assertThat(late.ask(get("/ok")).header("connection")).isEqualTo("close");
            }
            busy.send(get("/park"));
            HttpExchange parked = rig.parkedExchange();
            List<Boolean> results = new ArrayList<>();
            java.util.concurrent.Future<Boolean> drained =
                    rig.other.submit(() -> rig.server.drain(Duration.ofSeconds(10)));
            assertThat(idle.closed()).isTrue();
            assertThatThrownBy(rig::connect).isInstanceOf(IOException.class);
            parked.reply(HttpReply.json(200, "{}"));
            assertThat(busy.read().header("connection")).isEqualTo("close");
            results.add(drained.get(10, TimeUnit.SECONDS));
            assertThat(results).containsExactly(true);
        }
    }

    @Test
    void allMemoryComesBack() throws Exception {
        long before = Rig.activeBuffers();
        ByteBudget budget = new ByteBudget(1 << 30);
        try (Rig rig = new Rig(o -> o.budget(budget))) {
            byte[] body = new byte[300_000];
            for (int i = 0; i < 20; i++) {
                try (Rig.Raw c = rig.connect()) {
                    c.send("POST /parts HTTP/1.1\r\n" + HOST + "content-length: 300000\r\n\r\n")
                            .send(body);
                    assertThat(c.read().body()).hasSize(300_003);
                    c.send("POST /echo HTTP/1.1\r\n" + HOST + "transfer-encoding: chunked\r\n\r\n493e0\r\n")
                            .send(body);
                    assertThat(c.ask("\r\n0\r\n\r\n").body()).hasSize(300_000);
                    c.send("POST /echo HTTP/1.1\r\n" + HOST + "content-length: 300000\r\n\r\nabc"); // never finished
                }
                try (Rig.Raw c = rig.connect()) {
                    c.send(post("/park", "", "abc"));
                    HttpExchange parked = rig.parkedExchange();
                    c.close();
                    assertThat(rig.event()).isEqualTo("cancel");
                    parked.reply(HttpReply.json(200, "{}"));
                }
            }
        }
        Rig.released(budget);
        assertThat(Rig.activeBuffers()).isLessThanOrEqualTo(before);
    }
}
