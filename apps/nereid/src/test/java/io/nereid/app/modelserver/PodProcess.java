// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Threads;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.standard.StandardPlan;
import io.nereid.control.kubernetes.standard.StandardPlanner;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The container that is planned for a service with Nereid's engine, as a process of this machine: with its command and
 * arguments, but a folder of this machine for /mnt/models, and free ports. Confined to the test's thread.
 */
final class PodProcess implements AutoCloseable {
    private static final Pattern ADDRESS = Pattern.compile("listening on http://localhost:(\\d+)");
    private static final Pattern OTHER = Pattern.compile("^ {15}localhost:(\\d+)");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private final Process process;
    private final List<String> output = new CopyOnWriteArrayList<>();
    private final CompletableFuture<Integer> port = new CompletableFuture<>();
    private final CompletableFuture<Integer> grpcPort = new CompletableFuture<>();

    private PodProcess(Process process) {
        this.process = process;
        Threads.named("output").newThread(this::read).start();
    }

    /** The objects that are planned for a service, whose model has this block in YAML's flow style. */
    static StandardPlan plan(String model, String more) {
        List<ServingRuntime> runtimes = new ArrayList<>(KserveCatalog.runtimes());
        BuiltInRuntimes.ofEngine("nereid:1").forEach(one -> runtimes.add(ServingRuntime.read(one)));
        ObjectNode service = ManifestReader.parse(
                        "{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: iris, namespace:"
                                + " team-a, uid: u, generation: 1}, spec: {predictor: {model: {" + model + "}" + more
                                + "}}}",
                        "service")
                .get(0);
        return StandardPlanner.plan(
                service,
                new RuntimeCatalog(
                        List.of(),
                        runtimes,
                        KserveCatalog.storageContainers(),
                        InferenceServiceConfig.defaults(),
                        RuntimeCatalog.Gateway.UNKNOWN,
                        ServingEngine.NEREID),
                new ObservedCluster(
                        Map.of(),
                        List.of(),
                        JsonNodeFactory.instance.objectNode(),
                        secret -> null,
                        account -> null,
                        map -> null),
                Instant.EPOCH);
    }

    /** Starts the container of a service for files in a folder. */
    static PodProcess start(String model, String more, Path folder) throws IOException {
        JsonNode container = plan(model, more).objects().stream()
                .filter(one -> one.path("kind").asText().equals("Deployment"))
                .findFirst()
                .orElseThrow()
                .at("/spec/template/spec/containers/0");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 24) {
            command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"));
        }
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        List<String> program = new ArrayList<>();
        container.path("command").forEach(one -> program.add(one.asText()));
        if (!program.equals(List.of("nereid", "serve"))) {
            throw new AssertionError("the command is " + program);
        }
        command.addAll(List.of("io.nereid.app.Main", "serve"));
        for (JsonNode one : container.path("args")) {
            String argument =
                    one.asText().replace("/mnt/models", folder.toAbsolutePath().toString());
            command.add(argument.replaceFirst("^--(http|grpc)_port=.*", "--$1_port=0"));
        }
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment()
                .put("XDG_CACHE_HOME", folder.resolveSibling("cache").toString());
        for (JsonNode one : container.path("env")) {
            if (one.has("value")) {
                builder.environment()
                        .put(one.path("name").asText(), one.path("value").asText());
            }
        }
        return new PodProcess(builder.start());
    }

    private void read() {
        try (BufferedReader lines = process.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                output.add(line);
                Matcher address = ADDRESS.matcher(line);
                if (address.find()) {
                    port.complete(Integer.valueOf(address.group(1)));
                }
                Matcher other = OTHER.matcher(line);
                if (other.find()) {
                    grpcPort.complete(Integer.valueOf(other.group(1)));
                }
            }
        } catch (IOException e) {
            output.add("(" + e + ")");
        }
        port.completeExceptionally(new IOException("the server ended: " + output));
    }

    int port() throws Exception {
        return port.get(120, TimeUnit.SECONDS);
    }

    int grpcPort() throws Exception {
        port();
        return grpcPort.get(10, TimeUnit.SECONDS);
    }

    List<String> output() {
        return output;
    }

    /** Waits for the end of the process; its exit code. */
    int ended() throws Exception {
        if (!process.waitFor(120, TimeUnit.SECONDS)) {
            throw new AssertionError("the process runs: " + output);
        }
        return process.exitValue();
    }

    void terminate() {
        process.toHandle().destroy();
    }

    boolean alive() {
        return process.isAlive();
    }

    HttpResponse<String> get(String path) throws Exception {
        return HTTP.send(HttpRequest.newBuilder(uri(path)).build(), HttpResponse.BodyHandlers.ofString());
    }

    HttpResponse<String> post(String path, String body, String... headers) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(uri(path)).POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    JsonNode json(HttpResponse<String> response) throws IOException {
        return JSON.readTree(response.body());
    }

    private URI uri(String path) throws Exception {
        return URI.create("http://127.0.0.1:" + port() + path);
    }

    @Override
    public void close() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor(10, TimeUnit.SECONDS);
    }
}
