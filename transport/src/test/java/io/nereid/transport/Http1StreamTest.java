// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.exchange.AbstractHttpExchange;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/** Streamed responses over HTTP/1.x. */
class Http1StreamTest {
    private static final ByteBudget BUDGET = new ByteBudget(100 << 20);
    private static final Rig RIG = new Rig(o -> o.budget(BUDGET));
    private static final String PARK = "POST /park HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    private static final String OK = "GET /ok HTTP/1.1\r\nhost: x\r\n\r\n";

    @AfterAll
    static void stop() {
        RIG.close();
    }

    private static ResponseBody piece(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return new ResponseBody(bytes, bytes.length);
    }

    private static ResponseStream begin(String first) throws InterruptedException {
        return RIG.parkedExchange().stream(HttpReply.text(200, "text/event-stream", first));
    }

    /** One chunk's content; empty for the last one. */
    private static byte[] chunk(Rig.Raw c) throws IOException {
        int size = Integer.parseInt(c.line().strip(), 16);
        byte[] content = c.in.readNBytes(size);
        assertThat(c.line()).isEqualTo("\r\n");
        return content;
    }

    private static String text(Rig.Raw c) throws IOException {
        return new String(chunk(c), StandardCharsets.UTF_8);
    }

    @Test
    void everyPieceIsAChunkThatArrivesAtOnceAndTheConnectionGoesOn() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            ResponseStream stream = begin("a");
            Rig.Reply head = c.read(false);
            assertThat(head.status()).isEqualTo(200);
            assertThat(head.header("transfer-encoding")).isEqualTo("chunked");
            assertThat(head.header("content-length")).isNull();
            assertThat(head.header("content-type")).isEqualTo("text/event-stream");
            assertThat(text(c)).isEqualTo("a");
            assertThat(BUDGET.used()).as("the request's body is gone").isZero();
            stream.send(piece(""));
            stream.send(piece("bcd"));
            assertThat(text(c)).isEqualTo("bcd");
            stream.end();
            assertThat(chunk(c)).isEmpty();
            stream.send(piece("late"));
            stream.end();
            assertThat(c.ask(OK).status()).isEqualTo(200);
        }
    }

    @Test
    void largeTensorsAreSplicedIntoChunks() throws Exception {
        byte[] bytes = new byte[300_000];
        new Random(3).nextBytes(bytes);
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            ResponseStream stream = begin("");
            MemoryRegion region = MemoryRegion.copyOf(bytes, 0, bytes.length);
            stream.send(piece("<>").splice(Rig.tensor(region, 0, bytes.length), 1));
            stream.send(piece("").splice(Rig.tensor(MemoryRegion.copyOf(bytes, 0, 100), 0, 100), 0));
            stream.end();
            c.read(false);
            byte[] first = chunk(c);
            assertThat(first).hasSize(300_002).startsWith('<').endsWith('>');
            assertThat(java.util.Arrays.copyOfRange(first, 1, 300_001)).isEqualTo(bytes);
            assertThat(chunk(c)).isEqualTo(java.util.Arrays.copyOf(bytes, 100));
            assertThat(chunk(c)).isEmpty();
        }
    }

    @Test
    void piecesFromTheEventLoopKeepTheirOrderAndPipelinedRequestsWait() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send("GET /stream/50 HTTP/1.1\r\nhost: x\r\n\r\n" + OK);
            c.read(false);
            StringBuilder got = new StringBuilder();
            StringBuilder expected = new StringBuilder("<");
            for (String t = text(c); !t.isEmpty(); t = text(c)) {
                got.append(t);
            }
            for (int i = 0; i < 50; i++) {
                expected.append(i).append(',');
            }
            assertThat(got).hasToString(expected.toString());
            assertThat(c.read().text()).isEqualTo("{\"ok\":true}");
        }
    }

    @Test
    void anOldClientReadsToTheEndOfTheConnection() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send("GET /stream/2 HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
            Rig.Reply head = c.read(false);
            assertThat(head.header("transfer-encoding")).isNull();
            assertThat(head.header("connection")).isEqualTo("close");
            assertThat(c.in.readAllBytes()).asString().isEqualTo("<0,1,");
        }
    }

    @Test
    void aLeavingClientCancelsAndWhatIsStillSentIsDropped() throws Exception {
        long before = Rig.activeBuffers();
        ResponseStream stream;
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            stream = begin("a");
            c.read(false);
        }
        assertThat(RIG.event()).isEqualTo("cancel");
        MemoryRegion region = MemoryRegion.allocate(100_000);
        stream.send(piece("").splice(Rig.tensor(region, 0, 100_000), 0));
        stream.end();
        assertThat(stream.unsentBytes()).isZero();
        assertThat(Rig.activeBuffers()).isLessThanOrEqualTo(before + 2);
    }

    @Test
    void anAbortedReplyLacksItsLastChunk() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            ResponseStream stream = begin("a");
            c.read(false);
            assertThat(text(c)).isEqualTo("a");
            stream.abort();
            assertThat(c.closed()).isTrue();
        }
    }

    /** Pieces that wait for the event loop together are flushed with the last of them. */
    @Test
    void whatWaitsForTheEventLoopArrivesBeforeTheAbortAfterIt() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            HttpExchange parked = RIG.parkedExchange();
            CountDownLatch sent = new CountDownLatch(1);
            ((AbstractHttpExchange) parked).loop().execute(() -> {
                try {
                    assertThat(sent.await(10, TimeUnit.SECONDS)).isTrue();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            ResponseStream stream = parked.stream(HttpReply.text(200, "text/event-stream", "a"));
            stream.send(piece("b"));
            stream.abort();
            sent.countDown();
            c.read(false);
            assertThat(text(c)).isEqualTo("a");
            assertThat(text(c)).isEqualTo("b");
            assertThat(c.closed()).isTrue();
        }
    }

    @Test
    void aSecondReplyBreaksTheFirstOff() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            HttpExchange parked = RIG.parkedExchange();
            parked.stream(HttpReply.text(200, "text/plain", "a"));
            assertThatThrownBy(() -> parked.stream(HttpReply.text(200, "text/plain", "b")))
                    .isInstanceOf(IllegalStateException.class);
            parked.reply(HttpReply.json(500, "{}"));
            c.read(false);
            assertThat(text(c)).isEqualTo("a");
            assertThat(c.closed()).isTrue();
        }
    }

    @Test
    void unsentBytesAreCounted() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            c.send(PARK);
            ResponseStream stream = begin("");
            String text = "x".repeat(1 << 20);
            for (int i = 0; i < 32; i++) {
                stream.send(piece(text));
            }
            assertThat(stream.unsentBytes()).isGreaterThan(16 << 20);
            stream.end();
            CompletableFuture<Long> read = CompletableFuture.supplyAsync(
                    () -> {
                        try {
                            c.read(false);
                            long n = 0;
                            for (byte[] part = chunk(c); part.length > 0; part = chunk(c)) {
                                n += part.length;
                            }
                            return n;
                        } catch (IOException e) {
                            throw new java.io.UncheckedIOException(e);
                        }
                    },
                    task -> new Thread(task).start());
            assertThat(read.get(20, TimeUnit.SECONDS)).isEqualTo(32L << 20);
            assertThat(c.ask(OK).status()).isEqualTo(200);
            assertThat(stream.unsentBytes()).isZero();
        }
    }

    @Test
    void headersAreReported() throws Exception {
        try (Rig.Raw c = RIG.connect()) {
            assertThat(c.ask("GET /headers HTTP/1.1\r\nHost: x\r\nX-Two: b c\r\n\r\n")
                            .text())
                    .isEqualTo("host=x;x-two=b c;");
        }
    }
}
