// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The program in a child process, on a free port. Confined to the test's thread, except for the output lines. */
final class ServerProcess implements AutoCloseable {
    private static final Pattern ADDRESS = Pattern.compile("listening on https?://127\\.0\\.0\\.1:(\\d+)");

    private final Process process;
    private final Thread reader;
    private final List<String> output = new CopyOnWriteArrayList<>();
    private final CompletableFuture<Integer> port = new CompletableFuture<>();

    private ServerProcess(Process process) {
        this.process = process;
        this.reader = new Thread(this::read, "server output");
        reader.setDaemon(true);
        reader.start();
    }

    /** Waits until the models are loaded. */
    static ServerProcess serve(Path repository, String... options) throws Exception {
        return serve(Map.of(), repository, options);
    }

    /** As {@link #serve(Path, String...)}, with variables of the environment. */
    static ServerProcess serve(Map<String, String> environment, Path repository, String... options) throws Exception {
        return serve(program(), environment, repository, options);
    }

    /** As {@link #serve(Map, Path, String...)}, with another command line up to the main class. */
    static ServerProcess serve(
            List<String> program, Map<String, String> environment, Path repository, String... options)
            throws Exception {
        List<String> command = new ArrayList<>(program);
        command.addAll(List.of("serve", repository.toString(), "--port", "0"));
        command.addAll(List.of(options));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        ServerProcess server = new ServerProcess(builder.start());
        try {
            server.port.get(60, TimeUnit.SECONDS);
        } catch (Exception e) {
            server.close();
            fail("the server did not start: " + server.output, e);
        }
        return server;
    }

    /** The command line up to the main class: this test's class path, in a JVM like this one. */
    static List<String> program() {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 24) {
            command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"));
        }
        command.addAll(List.of("-Dio.netty.leakDetection.level=paranoid", "-XX:TieredStopAtLevel=1"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "io.nereid.app.Main"));
        return command;
    }

    private void read() {
        try (BufferedReader lines = process.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                output.add(line);
                Matcher address = ADDRESS.matcher(line);
                if (address.find()) {
                    port.complete(Integer.valueOf(address.group(1)));
                }
            }
        } catch (IOException e) {
            output.add("(" + e + ")");
        }
        port.completeExceptionally(new UncheckedIOException(new IOException("the server exited")));
    }

    int port() {
        return port.join();
    }

    long pid() {
        return process.pid();
    }

    URI uri(String path) {
        return URI.create("http://127.0.0.1:" + port() + path);
    }

    List<String> output() {
        return output;
    }

    /** SIGTERM; unlike {@link Process#destroy} it leaves the output open. */
    void terminate() {
        assertThat(process.toHandle().destroy()).isTrue();
    }

    /** Waits up to a number of seconds until the process has ended and its output is read. Returns whether it has. */
    boolean ended(long seconds) throws InterruptedException {
        if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
            return false;
        }
        reader.join(TimeUnit.SECONDS.toMillis(seconds));
        return true;
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
