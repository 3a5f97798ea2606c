// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.nereid.tensor.ByteBudget;
import io.nereid.transport.EventLoops;
import io.nereid.transport.Rig;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.codec.BodyReceiveAllocator;
import io.nereid.transport.server.Server;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Bytes that no client should send, and bytes cut where no client cuts them. Every case is made from a seed that is
 * part of the message when it fails.
 */
class FuzzTest {
    private static final EventLoops LOOPS = new EventLoops(1, true);
    private static final long SEED = 20260321L;
    private static final int CASES = 4_000;
    private static final ByteBudget BUDGET = new ByteBudget(1 << 20);
    private static final Rig RIG =
            new Rig(o -> o.budget(BUDGET).maxBodyBytes(10_000).maxMessageBytes(10_000));
    private static final String[] REQUESTS = {
        "GET /ok HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nContent-Type: text/plain\r\n\r\nhello world",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1f;x=y\r\n"
                + "0123456789012345678901234567890\r\n0\r\nTrailer: 1\r\n\r\n",
        "GET /items/a%20b/sub/c?x=1&y=%41 HTTP/1.1\r\nHost: a\r\nX-Test: 1\r\nConnection: keep-alive\r\n\r\n",
        "HEAD /text/2000 HTTP/1.0\r\nConnection: keep-alive\r\nAccept-Encoding: gzip;q=0.5\r\n\r\n",
        "POST /echo HTTP/1.1\r\n"
                + "Host: a\r\n"
                + "Content-Length: 3\r\n"
                + "Content-Encoding: gzip\r\n"
                + "Expect: 100-continue\r\n\r\n"
                + "abc",
    };

    private final AtomicInteger complaints = new AtomicInteger();
    private final Logger logger = Logger.getLogger("io.nereid.transport");
    private final Handler listener = new Handler() {
        @Override
        public void publish(LogRecord entry) {
            if (entry.getLevel().intValue() >= Level.SEVERE.intValue()) {
                complaints.incrementAndGet();
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    @BeforeEach
    void listen() {
        logger.addHandler(listener);
    }

    @AfterEach
    void listenNoMore() {
        logger.removeHandler(listener);
        assertThat(complaints).hasValue(0);
    }

    @AfterAll
    static void stop() {
        RIG.close();
        LOOPS.close();
    }

    private static EmbeddedChannel connection() {
        ServerContext context = new ServerContext(RIG.options, Runnable::run);
        CompiledRoutes site = new CompiledRoutes(context, LOOPS, RIG.httpRoutes(), RIG.grpcMethods(), "");
        EmbeddedChannel channel = new EmbeddedChannel();
        channel.pipeline()
                .addLast(Server.pipelineHead(
                        context,
                        channel,
                        new VirtualHostResolver(site, VirtualHosts.NONE),
                        new BodyReceiveAllocator()));
        return channel;
    }

    /** The response of the server to bytes that arrive in pieces. */
    private static byte[] answers(List<byte[]> pieces) {
        EmbeddedChannel channel = connection();
        List<ByteBuf> sent = new ArrayList<>();
        for (byte[] piece : pieces) {
            if (!channel.isOpen()) {
                break;
            }
            ByteBuf in = Unpooled.directBuffer(piece.length).writeBytes(piece);
            sent.add(in);
            channel.writeInbound(in);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        channel.runPendingTasks();
        ByteBuf part;
        while ((part = channel.readOutbound()) != null) {
            byte[] b = new byte[part.readableBytes()];
            part.readBytes(b);
            part.release();
            out.writeBytes(b);
        }
        if (channel.pipeline().firstContext() != null) {
            channel.pipeline().firstContext().close();
        }
        channel.finishAndReleaseAll();
        for (ByteBuf in : sent) {
            assertThat(in.refCnt()).isZero();
        }
        Rig.released(BUDGET);
        return out.toByteArray();
    }

    private static List<byte[]> cut(byte[] bytes, Random random) {
        List<byte[]> pieces = new ArrayList<>();
        int at = 0;
        int most = Math.max(bytes.length / 12, 1 + random.nextInt(random.nextBoolean() ? 8 : 400));
        while (at < bytes.length) {
            int n = Math.min(bytes.length - at, 1 + random.nextInt(most));
            pieces.add(java.util.Arrays.copyOfRange(bytes, at, at + n));
            at += n;
        }
        return pieces;
    }

    private static byte[] mutate(byte[] bytes, Random random, int from) {
        byte[] b = bytes.clone();
        for (int n = 1 + random.nextInt(3); n > 0 && b.length > from + 1; n--) {
            int at = from + random.nextInt(b.length - from);
            switch (random.nextInt(5)) {
                case 0 -> b[at] = (byte) random.nextInt(256);
                case 1 -> b[at] = (byte) "\r\n :;,\0\t09afHT/%".charAt(random.nextInt(16));
                case 2 -> b[at] ^= (byte) (1 << random.nextInt(8));
                case 3 -> { // drop some bytes
                    int length = Math.min(b.length - at, 1 + random.nextInt(4));
                    byte[] c = new byte[b.length - length];
                    System.arraycopy(b, 0, c, 0, at);
                    System.arraycopy(b, at + length, c, at, b.length - at - length);
                    b = c;
                }
                default -> { // repeat some bytes
                    int length = Math.min(b.length - at, 1 + random.nextInt(30));
                    byte[] c = new byte[b.length + length];
                    System.arraycopy(b, 0, c, 0, at + length);
                    System.arraycopy(b, at, c, at + length, b.length - at);
                    b = c;
                }
            }
        }
        return b;
    }

    private static byte[] bytes(String latin1) {
        return latin1.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String withoutDates(byte[] answers) {
        return new String(answers, StandardCharsets.ISO_8859_1).replaceAll("date: [^\r]*", "date");
    }

    @Test
    void mutatedRequestsNeverBreakTheServer() {
        for (int i = 0; i < CASES; i++) {
            Random random = new Random(SEED + i);
            StringBuilder requests = new StringBuilder();
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                requests.append(REQUESTS[random.nextInt(REQUESTS.length)]);
            }
            byte[] input = mutate(bytes(requests.toString()), random, 0);
            String out = new String(answers(cut(input, random)), StandardCharsets.ISO_8859_1);
            assertThat(out).as("seed %d", SEED + i).doesNotContain("HTTP/1.1 500");
            if (!out.isEmpty() && !out.startsWith("\0")) {
                assertThat(out).as("seed %d", SEED + i).startsWith("HTTP/1.1 ");
            }
        }
    }

    @Test
    void whereRequestsAreCutDoesNotMatter() {
        for (int i = 0; i < 2000; i++) {
            Random random = new Random(SEED + i);
            StringBuilder requests = new StringBuilder();
            for (int n = 1 + random.nextInt(4); n > 0; n--) {
                requests.append(REQUESTS[random.nextInt(REQUESTS.length - 1)]);
            }
            byte[] input = bytes(requests.toString());
            if (random.nextBoolean()) {
                input = mutate(input, random, 0);
            }
            String whole = withoutDates(answers(List.of(input)));
            String cut = withoutDates(answers(cut(input, random)));
            assertThat(cut).as("seed %d", SEED + i).isEqualTo(whole);
        }
    }

    private static byte[] frame(int type, int flags, int stream, byte[] payload) {
        byte[] f = new byte[9 + payload.length];
        f[0] = (byte) (payload.length >> 16);
        f[1] = (byte) (payload.length >> 8);
        f[2] = (byte) payload.length;
        f[3] = (byte) type;
        f[4] = (byte) flags;
        f[8] = (byte) stream;
        System.arraycopy(payload, 0, f, 9, payload.length);
        return f;
    }

    private static byte[] opening(String method, String... more) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        out.writeBytes(frame(4, 0, 0, new byte[0]));
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        List<String> headers = new ArrayList<>(List.of(
                ":method", "POST", ":scheme", "http", ":path", "/t.T/" + method, "content-type", "application/grpc"));
        headers.addAll(List.of(more));
        for (int i = 0; i < headers.size(); i++) {
            if (i % 2 == 0) {
                block.write(0);
            }
            block.write(headers.get(i).length());
            block.writeBytes(bytes(headers.get(i)));
        }
        out.writeBytes(frame(1, 4, 1, block.toByteArray()));
        return out.toByteArray();
    }

    private static byte[] message(byte[] content) {
        byte[] m = new byte[5 + content.length];
        m[3] = (byte) (content.length >> 8);
        m[4] = (byte) content.length;
        System.arraycopy(content, 0, m, 5, content.length);
        return m;
    }

    private static byte[] dataOf(byte[] frames, int from) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int at = from;
        while (at + 9 <= frames.length) {
            int length = (frames[at] & 255) << 16 | (frames[at + 1] & 255) << 8 | frames[at + 2] & 255;
            if (frames[at + 3] == 0) {
                out.write(frames, at + 9, length);
            }
            at += 9 + length;
        }
        return out.toByteArray();
    }

    @Test
    void whereMessagesAreCutIntoFramesAndReadsDoesNotMatter() {
        for (int i = 0; i < 1000; i++) {
            Random random = new Random(SEED + i);
            ByteArrayOutputStream messages = new ByteArrayOutputStream();
            for (int n = random.nextInt(6); n >= 0; n--) {
                byte[] content = new byte[random.nextInt(random.nextBoolean() ? 5 : 3000)];
                random.nextBytes(content);
                messages.writeBytes(message(content));
            }
            ByteArrayOutputStream input = new ByteArrayOutputStream();
            input.writeBytes(opening("Chat"));
            for (byte[] piece : cut(messages.toByteArray(), random)) {
                input.writeBytes(frame(0, 0, 1, piece));
            }
            input.writeBytes(frame(0, 1, 1, new byte[0]));
            assertThat(dataOf(answers(cut(input.toByteArray(), random)), 0))
                    .as("seed %d", SEED + i)
                    .isEqualTo(messages.toByteArray());
        }
    }

    @Test
    void mutatedMessagesNeverBreakTheServer() {
        String[] methods = {"Unary", "Sum", "Chat"};
        for (int k = 0; k < CASES * 2 / 3; k++) {
            long seed = SEED + k;
            Random random = new Random(seed);
            String method = methods[random.nextInt(methods.length)];
            byte[] opening = random.nextInt(4) == 0
                    ? opening(method, "grpc-encoding", "gzip", "grpc-timeout", "1S")
                    : opening(method);
            ByteArrayOutputStream messages = new ByteArrayOutputStream();
            for (int n = random.nextInt(3); n >= 0; n--) {
                messages.writeBytes(message(new byte[random.nextInt(300)]));
            }
            byte[] mutated = mutate(messages.toByteArray(), random, 0);
            ByteArrayOutputStream input = new ByteArrayOutputStream();
            input.writeBytes(opening);
            for (byte[] piece : cut(mutated, random)) {
                input.writeBytes(frame(0, 0, 1, piece));
            }
            input.writeBytes(frame(0, 1, 1, new byte[0]));
            byte[] all = input.toByteArray();
            if (random.nextInt(3) == 0) {
                all = mutate(all, random, 24); // frames and header blocks too
            }
            List<byte[]> pieces = cut(all, random);
            assertThatCode(() -> answers(pieces)).as("seed %d", seed).doesNotThrowAnyException();
        }
    }
}
