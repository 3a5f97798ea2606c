// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Work that would hold up an event loop waits for an executor, which runs in these tests when the test says so: what is
 * answered before was not done on the event loop.
 */
@Timeout(60)
class EventLoopWorkTest {
    private static final int MIB = 1 << 20;

    private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
    private final ByteBudget budget = new ByteBudget(1024L * MIB);

    private Rig rig() {
        return new Rig(o -> o.budget(budget).maxBodyBytes(80 * MIB).codecExecutor(tasks::add));
    }

    private void runNext() throws InterruptedException {
        Runnable task = tasks.poll(10, TimeUnit.SECONDS);
        assertThat(task).as("a task for the executor").isNotNull();
        task.run();
    }

    private static byte[] gzip(byte[] bytes) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (GZIPOutputStream zip = new GZIPOutputStream(out)) {
            zip.write(bytes);
        }
        return out.toByteArray();
    }

    private static Rig.Raw post(Rig rig, byte[] zipped) throws IOException {
        return rig.connect()
                .send("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: " + zipped.length
                        + "\r\n\r\n")
                .send(zipped);
    }

    private static void healthy(Rig rig) throws IOException {
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n").status()).isEqualTo(200);
            byte[] small = gzip("hello".getBytes(StandardCharsets.UTF_8));
            try (Rig.Raw zipped = post(rig, small)) {
                assertThat(zipped.read().text()).isEqualTo("hello");
            }
        }
    }

    @Test
    void bombsAreNotDecompressedOnTheEventLoop() throws Exception {
        byte[] bomb = gzip(new byte[64 * MIB]);
        assertThat(bomb).hasSizeLessThan(70_000);
        List<Rig.Raw> clients = new ArrayList<>();
        try (Rig rig = rig()) {
            for (int i = 0; i < 8; i++) {
                clients.add(post(rig, bomb));
            }
            healthy(rig);
            assertThat(rig.server.stats().exchanges()).isEqualTo(2);
            assertThat(budget.used()).isLessThan(2 * MIB);
            clients.get(7).close();
            for (int i = 0; i < 8; i++) {
                healthy(rig);
                runNext();
            }
            assertThat(tasks).isEmpty();
            for (Rig.Raw client : clients.subList(0, 7)) {
                assertThat(client.read().body()).hasSize(64 * MIB);
                client.close();
            }
        }
        Rig.released(budget);
    }

    @Test
    void aSmallBodyThatBecomesLargeIsDecompressedElsewhereToo() throws Exception {
        byte[] bomb = gzip(new byte[MIB]);
        assertThat(bomb).hasSizeLessThan(2000);
        try (Rig rig = rig();
                Rig.Raw client = post(rig, bomb)) {
            healthy(rig);
            assertThat(rig.server.stats().exchanges()).isEqualTo(2);
            runNext();
            assertThat(client.read().body()).hasSize(MIB);
            // the next request of the connection is found behind the body
            assertThat(client.ask("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n").status())
                    .isEqualTo(200);
        }
        Rig.released(budget);
    }

    @Test
    void bodiesOverHttp2AreDecompressedElsewhere() throws Exception {
        byte[] bomb = gzip(new byte[MIB]);
        try (Rig rig = rig();
                RawH2 h2 = new RawH2(rig.port, 2 * MIB)) {
            for (int stream = 1; stream <= 3; stream += 2) {
                h2.headers(
                        stream,
                        false,
                        ":method",
                        "POST",
                        ":scheme",
                        "http",
                        ":path",
                        "/park",
                        "content-encoding",
                        "gzip");
                h2.data(stream, true, bomb);
            }
            healthy(rig);
            h2.send(RawH2.RESET, 0, 3, new byte[] {0, 0, 0, 8});
            runNext();
            HttpExchange parked = rig.parkedExchange();
            assertThat(parked.body().size()).isEqualTo(MIB);
            parked.reply(HttpReply.json(200, "{}"));
            healthy(rig);
            runNext();
            healthy(rig);
            assertThat(rig.parked).isEmpty();
        }
        Rig.released(budget);
    }

    private static byte[] message(byte[] bytes, boolean compressed) {
        return ByteBuffer.allocate(5 + bytes.length)
                .put((byte) (compressed ? 1 : 0))
                .putInt(bytes.length)
                .put(bytes)
                .array();
    }

    @Test
    void grpcMessagesAreDecompressedElsewhereAndStayInOrder() throws Exception {
        byte[] bomb = gzip(new byte[MIB]);
        try (Rig rig = rig();
                RawH2 h2 = new RawH2(rig.port, 65_535)) {
            h2.headers(
                    1,
                    false,
                    ":method",
                    "POST",
                    ":scheme",
                    "http",
                    ":path",
                    "/t.T/ParkStream",
                    "content-type",
                    "application/grpc",
                    "grpc-encoding",
                    "gzip");
            h2.data(1, false, message(bomb, true))
                    .data(1, false, message(new byte[7], false))
                    .data(1, false, message(bomb, true))
                    .data(1, true, message(new byte[8], false));
            healthy(rig);
            assertThat(rig.events).isEmpty();
            runNext();
            assertThat(rig.event()).isEqualTo("message " + MIB);
            assertThat(rig.event()).isEqualTo("message 7");
            healthy(rig);
            assertThat(rig.events).isEmpty();
            runNext();
            assertThat(rig.event()).isEqualTo("message " + MIB);
            assertThat(rig.event()).isEqualTo("message 8");
            assertThat(rig.event()).isEqualTo("half-close");
        }
        Rig.released(budget);
    }

    @Test
    void aLargeResponseIsCompressedElsewhere() throws Exception {
        try (Rig rig = rig();
                Rig.Raw client = rig.connect()) {
            client.send("GET /text/60000 HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n");
            client.send("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n");
            healthy(rig);
            runNext();
            Rig.Reply reply = client.read();
            assertThat(reply.header("content-encoding")).isEqualTo("gzip");
            assertThat(new GZIPInputStream(new ByteArrayInputStream(reply.body())).readAllBytes())
                    .hasSize(60_000);
            assertThat(client.read().text()).isEqualTo("{\"ok\":true}");
        }
    }
}
