// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The program with a heap of 512 MB, as in a small container, under large requests: it refuses some of them, goes on,
 * and holds nothing afterwards. As in the distribution, the JVM exits when the heap is exhausted.
 */
class SmallHeapTest {
    private static final int LARGE = 60_000_000;
    private static final Pattern HELD = Pattern.compile("(?m)^nereid_request_bytes_in_flight (\\S+)$");
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @TempDir
    static Path repository;

    private static ServerProcess server;

    @BeforeAll
    static void start() throws Exception {
        Files.createDirectories(repository.resolve("echo").resolve("1"));
        Files.writeString(
                repository.resolve("echo").resolve("config.pbtxt"), "backend: \"identity\" max_batch_size: 8");
        List<String> program = new ArrayList<>(ServerProcess.program());
        program.removeIf(argument -> argument.startsWith("-Dio.netty.leakDetection"));
        program.addAll(1, List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"));
        server = ServerProcess.serve(program, Map.of(), repository);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static String infer(String name, String shape, String data) {
        return "{\"inputs\":[{\"name\":\"" + name + "\",\"datatype\":\"FP32\",\"shape\":" + shape + ",\"data\":[" + data
                + "]}]}";
    }

    /** Posts to a path; returns the status, and 0 when the server closed the connection. */
    private static int post(String path, String head, byte[] repeated, int times, String tail) {
        long length = head.length() + (long) repeated.length * times + tail.length();
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            socket.setSoTimeout(60_000);
            CompletableFuture<Void> sent = CompletableFuture.runAsync(
                    () -> {
                        try {
                            OutputStream out = new BufferedOutputStream(socket.getOutputStream(), 1 << 16);
                            out.write(ascii(
                                    "POST " + path + " HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: "
                                            + length + "\r\n\r\n" + head));
                            for (int i = 0; i < times; i++) {
                                out.write(repeated);
                            }
                            out.write(ascii(tail));
                            out.flush();
                        } catch (IOException e) {
                            return; // refused before the end of the body
                        }
                    },
                    task -> new Thread(task).start());
            InputStream in = socket.getInputStream();
            byte[] start = in.readNBytes(12);
            sent.join();
            return start.length < 12 ? 0 : Integer.parseInt(new String(start, 9, 3, StandardCharsets.US_ASCII));
        } catch (IOException e) {
            return 0;
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static String get(String path) throws Exception {
        return CLIENT.send(HttpRequest.newBuilder(server.uri(path)).build(), BodyHandlers.ofString())
                .body();
    }

    /** Checks that the server serves and holds no bytes of requests. */
    private static void serves() throws Exception {
        long due = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        String page = get("/metrics");
        while (!held(page).equals("0.0") && !held(page).equals("0") && System.nanoTime() < due) {
            page = get("/metrics");
        }
        assertThat(held(page)).isIn("0", "0.0");
        String body = infer("INPUT0", "[1,2]", "1,2");
        assertThat(post("/v2/models/echo/infer", body, new byte[0], 0, "")).isEqualTo(200);
    }

    private static String held(String page) {
        Matcher held = HELD.matcher(page);
        assertThat(held.find()).isTrue();
        return held.group(1);
    }

    private static List<Integer> together(int clients, String head, String repeated, String tail) {
        byte[] block = ascii(repeated.repeat(10_000 / repeated.length()));
        List<CompletableFuture<Integer>> posts = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            CompletableFuture<Integer> status = new CompletableFuture<>();
            posts.add(status);
            Thread client = new Thread(
                    () -> status.complete(post("/v2/models/echo/infer", head, block, LARGE / block.length, tail)));
            client.setDaemon(true);
            client.start();
        }
        return posts.stream().map(CompletableFuture::join).toList();
    }

    @Test
    void longUnknownNamesAreRefused() throws Exception {
        String[] around = infer("@", "[1,1]", "1").split("@");
        for (int i = 0; i < 2; i++) {
            assertThat(together(4, around[0], "x", around[1]))
                    .allSatisfy(s -> assertThat(s).isIn(400, 429));
            serves();
            assertThat(together(1, around[0], "x", around[1])).containsExactly(400);
            serves();
        }
    }

    @Test
    void bodiesWhoseTensorsDoNotFitAreRefusedOneByOne() throws Exception {
        // two bytes of text become four of the tensor, and four of the response
        int elements = LARGE / 10_000 * 5000 + 1;
        String[] around = infer("INPUT0", "[1," + elements + "]", "@").split("@");
        for (int i = 0; i < 2; i++) {
            assertThat(together(8, around[0], "1,", "1" + around[1]))
                    .allSatisfy(s -> assertThat(s).isIn(200, 400, 429));
            serves();
        }
    }
}
