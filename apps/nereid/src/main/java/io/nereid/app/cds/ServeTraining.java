// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.cds;

import io.nereid.base.Threads;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import picocli.CommandLine;

/**
 * Runs {@code serve} with one model and one request, and the commands that ask a server, in this process, so that an archive
 * has the classes of both. The server ends with the process. Confined to one thread.
 */
final class ServeTraining {
    /**
     * The first Java with ahead-of-time caches. A program that starts with one loads all its classes, so that those of commands would cost
     * a server a tenth of a second and 10 MB.
     */
    private static final int AHEAD_OF_TIME = 25;

    private static final int ATTEMPTS = 1_500;
    private static final int INTERVAL_MILLIS = 20;

    private final Function<String[], CommandLine> commands;
    private final int port;

    private ServeTraining(Function<String[], CommandLine> commands, int port) {
        this.commands = commands;
        this.port = port;
    }

    /**
     * Returns the exit status: 0 when the server answered.
     *
     * @param commands makes the program for a run with some arguments
     * @throws IOException when no port or no temporary folder can be had, or the server does not answer
     */
    static int run(Function<String[], CommandLine> commands) throws IOException, InterruptedException {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        ServeTraining training = new ServeTraining(commands, port);
        CompletableFuture<Integer> server = training.serve();
        if (!training.ready(server)) {
            return 1;
        }
        training.ask();
        int unused = execute(commands, List.of("version"));
        if (Runtime.version().feature() < AHEAD_OF_TIME) {
            String url = "http://127.0.0.1:" + port;
            unused = execute(commands, List.of("help", "serve"));
            unused = execute(commands, List.of("models", "--url", url));
            unused = execute(commands, List.of("health", "--url", url));
        }
        return 0;
    }

    private static int execute(Function<String[], CommandLine> commands, List<String> arguments) {
        String[] args = arguments.toArray(String[]::new);
        CommandLine program = commands.apply(args);
        program.setOut(new PrintWriter(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8));
        return program.execute(args);
    }

    private CompletableFuture<Integer> serve() throws IOException {
        List<String> arguments = new ArrayList<>(List.of("serve"));
        Path models = Path.of(System.getProperty("nereid.home", "."), "examples/models");
        if (Files.isDirectory(models.resolve("simple"))) {
            arguments.addAll(List.of(models.toString(), "--load-model", "simple"));
        } else {
            arguments.add(Files.createTempDirectory("nereid-training").toString());
        }
        arguments.addAll(List.of("--port", Integer.toString(port), "--host", "127.0.0.1"));
        arguments.addAll(List.of("--model-control-mode", "explicit", "--log-level", "SEVERE"));
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        Threads.named("serve")
                .newThread(() -> ended.complete(execute(commands, arguments)))
                .start();
        return ended;
    }

    private boolean ready(CompletableFuture<Integer> server) throws InterruptedException {
        boolean answers = false;
        CountDownLatch never = new CountDownLatch(1);
        for (int attempt = 0; attempt < ATTEMPTS && !server.isDone(); attempt++) {
            try {
                if (send("GET", "/v2/health/ready", "").startsWith("HTTP/1.1 200")) {
                    return true;
                }
                answers = true;
            } catch (IOException e) {
                // It does not listen yet.
            }
            boolean unused = never.await(INTERVAL_MILLIS, TimeUnit.MILLISECONDS);
        }
        // Where the engine of the example cannot run, the archive has everything else.
        return answers && !server.isDone();
    }

    private void ask() throws IOException {
        String ones = "[" + "1,".repeat(15) + "1]";
        String input = "\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + ones + "}";
        String unused = send("GET", "/metrics", "");
        unused = send("GET", "/v2/models/simple", "");
        unused = send(
                "POST",
                "/v2/models/simple/infer",
                "{\"inputs\":[{\"name\":\"INPUT0" + input + ",{\"name\":\"INPUT1" + input + "]}");
    }

    /**
     * Sends a request over a socket and returns the response. The classes of the Java runtime's HTTP client must not get into the archive: a
     * server that starts with an ahead-of-time cache loads all classes of it.
     */
    private String send(String method, String path, String body) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            String request =
                    method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                            + body.length() + "\r\n\r\n" + body;
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
