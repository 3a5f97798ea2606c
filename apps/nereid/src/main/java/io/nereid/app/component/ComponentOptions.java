// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.access.AccessControl;
import io.nereid.app.access.AccessFlags;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.process.Logging;
import io.nereid.app.process.Termination;
import io.nereid.app.process.TerminationLog;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.SizeConverter;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Component;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options of a component's process, with the names that KServe gives to arguments. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class ComponentOptions {
    private static final Duration FOR_EVER = Duration.ZERO;

    @Option(
            names = "--model_name",
            paramLabel = "NAME",
            defaultValue = "model",
            description = "Name of the model that clients use (default: ${DEFAULT-VALUE}).")
    String modelName;

    @Option(
            names = "--predictor_host",
            paramLabel = "HOST",
            required = true,
            description = "The predictor: a host, with its port unless that is 80, or a URL.")
    String predictorHost;

    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description = "A directory or file with what the component needs; may be repeated.")
    List<Path> directories = new ArrayList<>();

    @Option(
            names = "--config",
            paramLabel = "JSON",
            defaultValue = "{}",
            description = "Settings of the component: an object of texts (default: none).")
    String config;

    @Option(
            names = "--workers",
            paramLabel = "N",
            defaultValue = "0",
            description = "Most requests at once; 0 for no limit (default: ${DEFAULT-VALUE}).")
    int workers;

    @Option(
            names = "--host",
            defaultValue = "127.0.0.1",
            description = "Address to listen on (default: ${DEFAULT-VALUE}).")
    String host;

    @Option(
            names = "--http_port",
            paramLabel = "PORT",
            defaultValue = "8080",
            description =
                    "Port of requests: HTTP/1.1, HTTP/2 and gRPC; 0 for any free port (default: ${DEFAULT-VALUE}).")
    int httpPort;

    @Option(
            names = "--grpc_port",
            paramLabel = "PORT",
            description = "A second port for all of them; 0 for any free port (default: none).")
    @Nullable Integer grpcPort;

    @Option(
            converter = DurationConverter.class,
            names = "--grace-period",
            paramLabel = "TIME",
            defaultValue = "0s",
            description = "How long it serves as before after SIGTERM (default: ${DEFAULT-VALUE}).")
    String gracePeriod;

    @Option(
            converter = DurationConverter.class,
            names = "--drain-timeout",
            paramLabel = "TIME",
            defaultValue = "30s",
            description = "The longest time from SIGTERM to the end (default: ${DEFAULT-VALUE}).")
    String drainTimeout;

    @Option(
            converter = SizeConverter.class,
            names = "--max-request-bytes",
            paramLabel = "SIZE",
            defaultValue = "64MiB",
            description = "Largest body of a request or gRPC message (default: ${DEFAULT-VALUE}).")
    String maxRequestBytes;

    @Option(
            names = "--log-format",
            paramLabel = "FORMAT",
            defaultValue = "TEXT",
            description = "Format of the log: text or json (default: ${DEFAULT-VALUE}).")
    Logging.Format logFormat = Logging.Format.TEXT;

    @Mixin
    AccessFlags accessFlags;

    /** The files, as artifacts that are there. */
    List<Artifact> artifacts() {
        return directories.stream()
                .map(one -> one.toAbsolutePath().normalize().toString())
                .map(path -> new Artifact(path, path, null, Map.of(), null, null))
                .toList();
    }

    /** The settings. */
    Map<String, String> settings() {
        JsonNode tree;
        try {
            tree = new ObjectMapper().readTree(config);
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("--config is not JSON: " + e.getOriginalMessage());
        }
        if (!tree.isObject()) {
            throw ServingException.invalidArgument("--config is " + config + " (expected: an object of texts)");
        }
        Map<String, String> settings = new LinkedHashMap<>();
        tree.properties().forEach(entry -> {
            if (!entry.getValue().isTextual()) {
                throw ServingException.invalidArgument(
                        "--config: " + entry.getKey() + " is " + entry.getValue() + " (expected: a text)",
                        "write it in quotation marks");
            }
            settings.put(entry.getKey(), entry.getValue().asText());
        });
        return settings;
    }

    /**
     * Runs a component until the process receives a signal to end, or the component ends.
     *
     * @return the exit code
     * @throws ServingException FAILED_PRECONDITION when the component cannot run; the reason is in the termination log
     */
    int run(Component component, Workload.Form form) throws InterruptedException {
        Duration grace = Units.duration(gracePeriod);
        Duration limit = Units.duration(drainTimeout);
        int most = (int) Math.min(Integer.MAX_VALUE - 1024, Units.bytes(maxRequestBytes));
        Logging.configure(logFormat, Level.INFO);
        ServerOptions.Builder listen = ServerOptions.builder()
                .listen(host, httpPort)
                .corsOrigins(accessFlags.corsOrigins)
                .maxBodyBytes(most)
                .maxMessageBytes(most);
        if (grpcPort != null) {
            listen.listen(host, grpcPort);
        }
        ComponentServer server = new ComponentServer(
                workload(component, form),
                predictorHost,
                listen,
                new AccessControl(accessFlags.options(Set.of(), List.of(), List.of(), Clock.system())),
                directory(component),
                System.out::println);
        PrintStream out = System.out;
        List<InetSocketAddress> addresses = server.start();
        out.println("nereid: " + component.text() + " of " + modelName + " listening on http://" + host + ":"
                + addresses.get(0).getPort()
                + (addresses.size() > 1 ? " and port " + addresses.get(1).getPort() : "") + ", predictor at "
                + predictorHost);
        out.flush();
        CompletableFuture<Failure> failed = server.failed().toCompletableFuture();
        Termination termination = Termination.install(() -> {
            if (failed.isDone()) {
                return false;
            }
            boolean drained = server.stop(grace, limit);
            // A shutdown hook closes the log, perhaps before this one: hence standard error.
            System.err.println(
                    drained ? "nereid: stopped" : "nereid: stopped; some requests were aborted at the time limit");
            System.err.flush();
            return drained;
        });
        var unused = CompletableFuture.anyOf(failed, termination.ended()).join();
        Failure failure = failed.isDone() ? failed.join() : null;
        if (failure != null) {
            server.close();
            TerminationLog.write(null, failure.message());
            throw ServingException.of(ErrorCode.FAILED_PRECONDITION, failure.message());
        }
        return termination.await();
    }

    private Workload workload(Component component, Workload.Form form) {
        return new Workload(
                "default",
                modelName,
                component,
                modelName + "-" + component.text(),
                modelName,
                form,
                new Workload.Scaling(1, 1, "concurrency", null, "none", Map.of()),
                Math.max(0, workers),
                FOR_EVER,
                null,
                null,
                Map.of(),
                Map.of());
    }

    /** A directory of this process's own, since several may run as one user. */
    private static Path directory(Component component) {
        try {
            Path parent = CacheDirectory.directory().resolve("components");
            Files.createDirectories(parent);
            return Files.createTempDirectory(parent, component.text());
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot create a directory for the " + component.text() + ": " + e.getMessage(),
                    "set XDG_CACHE_HOME to a directory that can be written",
                    e);
        }
    }
}
