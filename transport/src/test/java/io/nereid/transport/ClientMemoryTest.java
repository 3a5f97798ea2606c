// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What clients can make the server hold by being slow, silent or greedy. */
@Timeout(60)
class ClientMemoryTest {
    private static final int MIB = 1 << 20;

    private static String head(String path, long length) {
        return "POST " + path + " HTTP/1.1\r\nhost: x\r\ncontent-length: " + length + "\r\n\r\n";
    }

    private static String get(String path) {
        return "GET " + path + " HTTP/1.1\r\nhost: x\r\n\r\n";
    }

    private static Rig.Reply echo(Rig rig, int size) throws IOException {
        try (Rig.Raw c = rig.connect()) {
            c.send(head("/echo", size));
            c.send(new byte[size]);
            return c.read();
        }
    }

    /** Waits until the event loop, of which there is one, has handled what was sent before. */
    private static void afterTheLoop(Rig rig) throws IOException {
        try (Rig.Raw c = rig.connect()) {
            for (int i = 0; i < 20; i++) {
                assertThat(c.ask(get("/ok")).status()).isEqualTo(200);
            }
        }
    }

    @Test
    void silentConnectionsThatDeclareLargeBodiesTakeNoMemory() throws IOException {
        ByteBudget budget = new ByteBudget(128 * MIB);
        List<Rig.Raw> silent = new ArrayList<>();
        try (Rig rig = new Rig(o -> o.budget(budget))) {
            assertThat(echo(rig, 8 * MIB).status()).isEqualTo(200);
            long pooled = MemoryRegion.pooledBytes();
            for (int i = 0; i < 16; i++) {
                silent.add(rig.connect().send(head("/echo", 67_108_864)));
            }
            afterTheLoop(rig);
            assertThat(budget.used()).isLessThan(2 * MIB);
            assertThat(MemoryRegion.pooledBytes() - pooled).isLessThanOrEqualTo(16 * MIB);
            assertThat(echo(rig, 32 * MIB).status()).isEqualTo(200);
        } finally {
            for (Rig.Raw c : silent) {
                c.close();
            }
        }
        Rig.released(budget);
    }

    @Test
    void chunkedBodiesAndBodiesOverHttp2AreCountedAsTheyArrive() throws Exception {
        ByteBudget budget = new ByteBudget(128 * MIB);
        try (Rig rig = new Rig(o -> o.budget(budget));
                Rig.Raw chunked = rig.connect();
                RawH2 h2 = new RawH2(rig.port, 65_535)) {
            chunked.send("POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3000000\r\nab");
            for (int i = 0; i < 16; i++) {
                h2.headers(
                        2 * i + 1,
                        false,
                        ":method",
                        "POST",
                        ":scheme",
                        "http",
                        ":path",
                        "/echo",
                        "content-length",
                        "67108864");
            }
            afterTheLoop(rig);
            assertThat(budget.used()).isLessThan(2 * MIB);
            assertThat(echo(rig, 32 * MIB).status()).isEqualTo(200);
        }
        Rig.released(budget);
    }

    @Test
    void prefixesOfLargeGrpcMessagesTakeNoMemory() throws Exception {
        ByteBudget budget = new ByteBudget(128 * MIB);
        try (Rig rig = new Rig(o -> o.budget(budget));
                RawH2 silent = new RawH2(rig.port, 65_535)) {
            for (int i = 0; i < 16; i++) {
                silent.call(2 * i + 1, "/t.T/Unary").data(2 * i + 1, false, new byte[] {0, 4, 0, 0, 0});
            }
            afterTheLoop(rig);
            assertThat(budget.used()).isLessThan(2 * MIB);
            assertThat(echo(rig, 32 * MIB).status()).isEqualTo(200);
        }
        Rig.released(budget);
    }

    @Test
    void aSilentBodyIsCut() throws Exception {
        try (Rig rig = new Rig(o -> o.requestTimeout(Duration.ofMillis(400)));
                Rig.Raw plain = rig.connect();
                Rig.Raw chunked = rig.connect();
                RawH2 h2 = new RawH2(rig.port, 65_535)) {
            // at 64 KiB/s the declared lengths would take a quarter of an hour
            plain.send(head("/echo", 67_108_864)).send(new byte[1000]);
            chunked.send("POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3000000\r\nab");
            h2.headers(1, false, ":method", "POST", ":scheme", "http", ":path", "/echo", "content-length", "67108864");
            assertThat(plain.read().status()).isEqualTo(408);
            assertThat(chunked.read().status()).isEqualTo(408);
            assertThat(h2.decode(h2.next(RawH2.HEADERS)).status()).hasToString("408");
        }
    }

    @Test
    void aSilentGrpcMessageIsCut() throws Exception {
        try (Rig rig = new Rig(o -> o.requestTimeout(Duration.ofMillis(400)));
                RawH2 client = new RawH2(rig.port, 65_535)) {
            client.call(1, "/t.T/Unary").data(1, false, new byte[] {0, 4, 0, 0, 0});
            assertThat(client.decode(client.next(RawH2.HEADERS)).get("grpc-status"))
                    .hasToString("4");
            // a stream's message is due, the pause before it is not
            client.call(3, "/t.T/Chat").data(3, false, new byte[] {0, 0, 0, 0, 1, 7});
            assertThat(client.next(RawH2.DATA).payload()).containsExactly(0, 0, 0, 0, 1, 7);
            client.call(5, "/t.T/Unary");
            RawH2.Frame end = client.next(RawH2.HEADERS);
            assertThat(end.stream()).isEqualTo(5);
            assertThat(client.decode(end).get("grpc-status")).hasToString("4");
            client.data(3, false, new byte[] {0, 4, 0, 0, 0});
            end = client.next(RawH2.HEADERS);
            assertThat(end.stream()).isEqualTo(3);
            assertThat(client.decode(end).get("grpc-status")).hasToString("4");
        }
    }

    @Test
    void aTrickleIsCutHoweverLongTheBodyIsSaidToBe() throws Exception {
        try (Rig rig = new Rig(o -> o.requestTimeout(Duration.ofMillis(400)));
                Rig.Raw slow = rig.connect()) {
            slow.send(head("/echo", 67_108_864));
            slow.socket.setSoTimeout(20);
            Rig.Reply reply = null;
            for (int i = 0; i < 1000 && reply == null; i++) {
                slow.send("x");
                try {
                    reply = slow.read();
                } catch (java.net.SocketTimeoutException e) {
                    assertThat(i).as("bytes accepted").isLessThan(900);
                }
            }
            assertThat(reply).isNotNull();
            assertThat(reply.status()).isEqualTo(408);
        }
    }

    @Test
    void aShortBudgetCutsTheSlowBodiesOfTheAddressThatHoldsMost() throws Exception {
        ByteBudget budget = new ByteBudget(8 * MIB);
        try (Rig rig = new Rig(o -> o.budget(budget).maxBodyBytes(4 * MIB));
                Rig.Raw one = rig.connect();
                Socket first = from("127.0.0.2", rig.port);
                Socket second = from("127.0.0.2", rig.port)) {
            one.send(head("/echo", 2 * MIB)).send(new byte[MIB]);
            for (Socket greedy : List.of(first, second)) {
                greedy.getOutputStream().write(head("/echo", 4 * MIB).getBytes(StandardCharsets.US_ASCII));
                greedy.getOutputStream().write(new byte[3 * MIB]);
            }
            // refused until the greedy ones are known to be slow, and then served
            long due = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            Rig.Reply reply = echo(rig, 3 * MIB);
            while (reply.status() == 429 && System.nanoTime() < due) {
                reply = echo(rig, 3 * MIB);
            }
            assertThat(reply.status()).isEqualTo(200);
            assertThat(new String(first.getInputStream().readNBytes(12), StandardCharsets.US_ASCII)
                            + new String(second.getInputStream().readNBytes(12), StandardCharsets.US_ASCII))
                    .contains("HTTP/1.1 429");
            one.send(new byte[MIB]);
            assertThat(one.read().status()).isEqualTo(200);
        }
        Rig.released(budget);
    }

    private static Socket from(String address, int port) throws IOException {
        Socket socket = new Socket();
        socket.bind(new InetSocketAddress(address, 0));
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        socket.setSoTimeout(20_000);
        return socket;
    }

    @Test
    void pipelinedRequestsWaitUntilTheirClientTakesTheAnswers() throws Exception {
        ByteBudget budget = new ByteBudget(64 * MIB);
        int requests = 3000;
        try (Rig rig = new Rig(o -> o.budget(budget));
                Rig.Raw client = rig.connect()) {
            Thread sender = new Thread(() -> {
                try {
                    client.send(get("/text/60000").repeat(requests));
                } catch (IOException e) {
                    rig.events.add(e.toString());
                }
            });
            sender.start();
            long pooled = MemoryRegion.pooledBytes();
            afterTheLoop(rig);
            // what fits into the socket's buffers, and a megabyte
            assertThat(rig.server.stats().exchanges()).isLessThan(500);
            assertThat(MemoryRegion.pooledBytes() - pooled).isLessThanOrEqualTo(32 * MIB);
            assertThat(budget.used()).as("unsent answers are counted").isGreaterThan(MIB / 2);
            for (int i = 0; i < requests; i++) {
                assertThat(client.read().body()).as("answer %d", i).hasSize(60_000);
            }
            sender.join();
            assertThat(rig.events).isEmpty();
        }
        Rig.released(budget);
    }

    @Test
    void aWindowOfZeroDoesNotCollectAnswersWithoutEnd() throws Exception {
        ByteBudget budget = new ByteBudget(16 * MIB);
        try (Rig rig = new Rig(o -> o.budget(budget).maxBodyBytes(MIB).maxMessageBytes(MIB));
                RawH2 client = new RawH2(rig.port, 0)) {
            for (int i = 0; i < 900; i++) {
                client.get(2 * i + 1, "/text/60000");
            }
            RawH2.Frame refused = client.next(RawH2.RESET);
            assertThat(refused.payload()).containsExactly(0, 0, 0, 7); // REFUSED_STREAM
            afterTheLoop(rig);
            assertThat(budget.used()).isBetween(4L * MIB, 10L * MIB);
            assertThat(echo(rig, MIB).status()).isEqualTo(200);
        }
        Rig.released(budget);
    }

    @Test
    void aClientThatTakesNoAnswersLosesItsConnection() throws Exception {
        ByteBudget budget = new ByteBudget(16 * MIB);
        try (Rig rig = new Rig(o -> o.budget(budget).idleTimeout(Duration.ofMillis(400)));
                RawH2 client = new RawH2(rig.port, 0)) {
            client.get(1, "/text/60000").get(3, "/text/60000");
            // pings, which are answered, do not count
            boolean open = true;
            long due = System.nanoTime() + Duration.ofSeconds(10).toNanos();
            while (open && System.nanoTime() < due) {
                try {
                    client.send(RawH2.PING, 0, 0, new byte[8]).next(RawH2.PING);
                } catch (IOException e) {
                    open = false;
                }
            }
            assertThat(open).isFalse();
        }
        Rig.released(budget);
    }

    @Test
    void aResponseThatIsTakenInTimeIsComplete() throws Exception {
        ByteBudget budget = new ByteBudget(64 * MIB);
        try (Rig rig = new Rig(o -> o.budget(budget))) {
            for (int size : new int[] {1, 65_536, 65_537, 262_144, 262_145, 5 * MIB, 40 * MIB}) {
                assertThat(echo(rig, size).body()).hasSize(size);
            }
        }
        Rig.released(budget);
    }
}
