// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import io.nereid.transport.Rig;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** A server in a process of its own that may open few files. Confined to one thread. */
final class ServerProcess implements AutoCloseable {
    final int port;

    /** The bound on connections that the server has. */
    final int most;

    private final Process process;
    private final Path log;

    ServerProcess(int files, boolean epoll, int maxConnections, Path log) throws IOException {
        this.log = log;
        List<String> command = new ArrayList<>(List.of("bash", "-c", "ulimit -n " + files + " && exec \"$@\"", "bash"));
        command.addAll(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-cp",
                System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                ServerProcess.class.getName(),
                Boolean.toString(epoll),
                Integer.toString(maxConnections)));
        process = new ProcessBuilder(command).redirectError(log.toFile()).start();
        BufferedReader out =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII));
        String line = Objects.requireNonNull(out.readLine(), () -> "the server did not start: " + log());
        port = Integer.parseInt(line.split(" ", -1)[0]);
        most = Integer.parseInt(line.split(" ", -1)[1]);
    }

    /** What the process has logged. */
    String log() {
        try {
            return Files.readString(log);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    public static void main(String[] args) throws IOException {
        boolean epoll = Boolean.parseBoolean(args[0]);
        int most = Integer.parseInt(args[1]);
        try (Rig rig = new Rig(o -> o.nativeTransport(epoll).maxConnections(most))) {
            System.out.println(rig.port + " " + rig.server.maxConnections());
            System.out.flush();
            while (System.in.read() >= 0) {
                // until the parent ends
            }
        }
    }
}
