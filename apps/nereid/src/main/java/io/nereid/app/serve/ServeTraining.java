// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.process.Logging;
import io.nereid.app.process.ProgramVersion;
import io.nereid.base.Clock;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.repository.RepositorySource;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.logging.Level;

/**
 * Starts a server that serves one request, so that an archive of its classes can be made. Confined to one thread.
 */
public final class ServeTraining {
    private ServeTraining() {}

    /** Returns the exit status. */
    public static int run() throws Exception {
        Logging logging = Logging.configure(Logging.Format.TEXT, Level.OFF);
        Path home = Path.of(System.getProperty("nereid.home", "."));
        Path models = home.resolve("examples/models");
        if (!Files.isDirectory(models)) {
            models = Files.createTempDirectory("nereid-training");
        }
        NereidServer server = new NereidServer(
                EngineOptions.builder(List.of(models))
                        .repository(RepositorySource.Options.DEFAULT
                                .withMode(RepositorySource.Mode.EXPLICIT)
                                .withStartModels(List.of("simple")))
                        .deviceThreads(1)
                        .loadThreads(1)
                        .scratch(CacheDirectory.directory())
                        .build(),
                ServerOptions.builder().listen("127.0.0.1", 0),
                new ByteBudget(1 << 20),
                V2Options.defaults(ProgramVersion.number(), 1 << 20),
                v1 -> {},
                TraceOptions.OFF,
                logging,
                new AccessControl(AccessOptions.none(Clock.system())),
                new NereidServer.ClientRules(true, null),
                null);
        InetSocketAddress address = server.listen().get(0);
        server.load().toCompletableFuture().get();
        new StartupReport(
                        server.engine(),
                        new PrintWriter(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8),
                        false)
                .print("127.0.0.1", List.of(address), false, false);
        String base = "http://127.0.0.1:" + address.getPort();
        HttpClient client = HttpClient.newHttpClient();
        String ones = "[" + "1,".repeat(15) + "1]";
        String input = "{\"name\":\"INPUT%d\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + ones + "}";
        String body = "{\"inputs\":[" + String.format(Locale.ROOT, input, 0) + ","
                + String.format(Locale.ROOT, input, 1) + "]}";
        for (String path : List.of("/v2/health/ready", "/metrics", "/v2/models/simple")) {
            client.send(HttpRequest.newBuilder(URI.create(base + path)).build(), BodyHandlers.ofString());
        }
        client.send(
                HttpRequest.newBuilder(URI.create(base + "/v2/models/simple/infer"))
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                BodyHandlers.ofString());
        server.stop(Duration.ofSeconds(1));
        return 0;
    }
}
