// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.cds;

import io.nereid.app.config.ServeConfiguration;
import io.nereid.app.connection.NoTls;
import io.nereid.base.Threads;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;

/**
 * Runs {@code serve} with one model and one request, and the commands that ask a server, in this process, so that an archive
 * has the classes of both. The server ends with the process. Confined to one thread.
 */
final class ServeTraining {
    private static final int ATTEMPTS = 1_500;
    private static final int INTERVAL_MILLIS = 20;

    private final CommandLine program;
    private final String url;

    private ServeTraining(CommandLine program, int port) {
        this.program = program;
        this.url = "http://127.0.0.1:" + port;
    }

    /**
     * Returns the exit status: 0 when the server answered.
     *
     * @param program the program with all its commands
     * @throws IOException when no port or no temporary folder can be had, or the server does not answer
     */
    static int run(CommandLine program) throws IOException, InterruptedException {
        program.setOut(new PrintWriter(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8));
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        ServeTraining training = new ServeTraining(program, port);
        CompletableFuture<Integer> server = training.serve(port);
        HttpClient client = HttpClient.newBuilder().sslContext(NoTls.context()).build();
        if (!training.ready(client, server)) {
            return 1;
        }
        training.ask(client);
        for (List<String> command : List.of(
                List.of("version"),
                List.of("help"),
                List.of("help", "serve"),
                List.of("models", "--url", training.url),
                List.of("health", "--url", training.url),
                List.of("infer", "simple", "--input", "INPUT0=1..16", "--input", "INPUT1=1..16", "--url", training.url),
                // Wrong on purpose: the messages about wrong command lines have classes too.
                List.of("modles"))) {
            int unused = program.execute(command.toArray(String[]::new));
        }
        return 0;
    }

    private CompletableFuture<Integer> serve(int port) throws IOException {
        List<String> arguments = new ArrayList<>();
        Path models = Path.of(System.getProperty("nereid.home", "."), "examples/models");
        if (Files.isDirectory(models.resolve("simple"))) {
            arguments.addAll(List.of(models.toString(), "--load-model", "simple"));
        } else {
            arguments.add(Files.createTempDirectory("nereid-training").toString());
        }
        arguments.addAll(List.of("--port", Integer.toString(port), "--host", "127.0.0.1"));
        arguments.addAll(List.of("--model-control-mode", "explicit", "--log-level", "SEVERE"));
        CommandLine serve = Objects.requireNonNull(program.getSubcommands().get("serve"));
        ServeConfiguration configuration = ServeConfiguration.of(() -> serve, arguments, Map.of());
        List<String> all = new ArrayList<>(List.of("serve"));
        all.addAll(configuration.arguments());
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        Threads.named("serve")
                .newThread(() -> ended.complete(program.execute(all.toArray(String[]::new))))
                .start();
        return ended;
    }

    private boolean ready(HttpClient client, CompletableFuture<Integer> server)
            throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(url + "/v2/health/ready")).build();
        boolean answers = false;
        CountDownLatch never = new CountDownLatch(1);
        for (int attempt = 0; attempt < ATTEMPTS && !server.isDone(); attempt++) {
            try {
                int status = client.send(request, BodyHandlers.ofString()).statusCode();
                if (status == 200) {
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

    private void ask(HttpClient client) throws IOException, InterruptedException {
        String ones = "[" + "1,".repeat(15) + "1]";
        String input = "{\"name\":\"INPUT%d\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + ones + "}";
        String body = "{\"inputs\":[" + String.format(Locale.ROOT, input, 0) + ","
                + String.format(Locale.ROOT, input, 1) + "]}";
        for (String path : List.of("/metrics", "/v2/models/simple")) {
            client.send(HttpRequest.newBuilder(URI.create(url + path)).build(), BodyHandlers.ofString());
        }
        client.send(
                HttpRequest.newBuilder(URI.create(url + "/v2/models/simple/infer"))
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                BodyHandlers.ofString());
    }
}
