// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Threads;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** {@code nereid serve} as a process of its own, on a free port. Confined to the test's thread. */
final class ServeProcess implements AutoCloseable {
    private static final int SECONDS = 120;
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    final int port;
    final List<String> output = new CopyOnWriteArrayList<>();

    private final CountDownLatch never = new CountDownLatch(1);
    private final Process process;

    /** @param cache a directory for what the process keeps */
    ServeProcess(Path cache, String... options) throws IOException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 24) {
            command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"));
        }
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        command.addAll(List.of("io.nereid.app.Main", "serve", "--port=" + port));
        command.addAll(List.of(options));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("XDG_CACHE_HOME", cache.toString());
        process = builder.start();
        Threads.named("output").newThread(this::read).start();
    }

    private void read() {
        try (BufferedReader lines = process.inputReader()) {
            lines.lines().forEach(output::add);
        } catch (IOException e) {
            output.add("(" + e + ")");
        }
    }

    /** Waits until a line is printed. */
    void until(Predicate<String> line) throws InterruptedException {
        for (int i = 0; i < SECONDS * 20; i++) {
            if (output.stream().anyMatch(line)) {
                return;
            }
            assertThat(never.await(50, TimeUnit.MILLISECONDS)).isFalse();
        }
        throw new AssertionError("the line did not come: " + output);
    }

    /** Waits until the start is reported. */
    ServeProcess listening() throws InterruptedException {
        until(line -> line.contains("listening on http://127.0.0.1:" + port));
        return this;
    }

    /** Waits for the end of the process, and returns its exit status. */
    int ended() throws InterruptedException {
        assertThat(process.waitFor(SECONDS, TimeUnit.SECONDS)).isTrue();
        return process.exitValue();
    }

    /** Whether a connection can be made. */
    boolean open() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 2000);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return HTTP.send(request(path).build(), HttpResponse.BodyHandlers.ofString());
    }

    HttpResponse<String> post(String path, String body) throws IOException, InterruptedException {
        return HTTP.send(json(path, body), HttpResponse.BodyHandlers.ofString());
    }

    /** Sends a request without waiting for its answer. */
    CompletableFuture<HttpResponse<String>> postAsync(String path, String body) {
        return HTTP.sendAsync(json(path, body), HttpResponse.BodyHandlers.ofString());
    }

    private HttpRequest json(String path, String body) {
        return request(path)
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }
}
