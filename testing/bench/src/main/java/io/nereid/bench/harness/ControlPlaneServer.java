// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** A server with the control plane, and a client of its two ports. Confined to one thread. */
public final class ControlPlaneServer implements AutoCloseable {
    private static final String SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
    /** The Ready condition of a service that is ready, as the API writes it. */
    private static final String READY = "\"status\":\"True\",\"type\":\"Ready\"";

    private static final String PRESENT = "\"totalCopies\":1";

    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final ServerProcess server;
    private final String control;

    private ControlPlaneServer(ServerProcess server, int control) {
        this.server = server;
        this.control = "http://127.0.0.1:" + control;
    }

    /** Starts a server with its resources in a directory, which may hold those of an earlier server. */
    public static ControlPlaneServer start(BenchmarkSettings setting, String directory) throws IOException {
        int control = ServerProcess.freePort();
        return new ControlPlaneServer(
                ServerProcess.nereid(
                        setting.distribution(),
                        setting.directory("none"),
                        setting.scratch(),
                        "--control",
                        "--control-port=" + control,
                        "--control-directory=" + setting.directory(directory),
                        "--model-cache=" + setting.directory(directory + "-cache")),
                control);
    }

    public ServerProcess server() {
        return server;
    }

    /**
     * Creates an InferenceService of a model.
     *
     * @param predictor further fields of the predictor, each followed by a comma
     */
    public void apply(String name, String format, Path model, String predictor)
            throws IOException, InterruptedException {
        String service = "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\","
                + "\"metadata\":{\"name\":\"" + name + "\",\"namespace\":\"default\"},\"spec\":{\"predictor\":{"
                + predictor
                + "\"model\":{\"modelFormat\":{\"name\":\"" + format
                + "\"},\"protocolVersion\":\"v2\",\"storageUri\":\"file://" + model.toAbsolutePath() + "\"}}}}";
        HttpResponse<String> created = http.send(
                HttpRequest.newBuilder(URI.create(control + SERVICES))
                        .header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(service))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        if (created.statusCode() != 201) {
            throw new IOException("the InferenceService was rejected: " + created.body());
        }
    }

    /** Returns the number of ready services, by their status. */
    public int ready() throws IOException, InterruptedException {
        return count(services(), READY);
    }

    /** Returns the number of services with a replica, by their status. */
    public int present() throws IOException, InterruptedException {
        return count(services(), PRESENT);
    }

    private String services() throws IOException, InterruptedException {
        return get(control + SERVICES);
    }

    /** Returns the response body of a GET request to the server. */
    public String page(String path) throws IOException, InterruptedException {
        return get(server.url(path));
    }

    private String get(String url) throws IOException, InterruptedException {
        HttpResponse<String> reply =
                http.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
        if (reply.statusCode() != 200) {
            throw new IOException(url + " answered " + reply.statusCode() + ": " + reply.body());
        }
        return reply.body();
    }

    /** Whether a service's model is ready, by a request through the gateway. */
    public boolean answers(String name) throws IOException, InterruptedException {
        HttpRequest ready = HttpRequest.newBuilder(
                        URI.create(server.url("/serving/default/" + name + "/v2/models/" + name + "/ready")))
                .build();
        return http.send(ready, HttpResponse.BodyHandlers.discarding()).statusCode() == 200;
    }

    /** Sends a request to a service through the gateway. Returns the latency in nanoseconds. */
    public long infer(String name, String body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(
                        URI.create(server.url("/serving/default/" + name + "/v2/models/" + name + "/infer")))
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        long from = System.nanoTime();
        HttpResponse<String> reply = http.send(request, HttpResponse.BodyHandlers.ofString());
        long nanos = System.nanoTime() - from;
        if (reply.statusCode() != 200) {
            throw new IOException("'" + name + "' answered " + reply.statusCode() + ": " + reply.body());
        }
        return nanos;
    }

    /** A condition to wait for. */
    @FunctionalInterface
    public interface Condition {
        boolean holds() throws IOException, InterruptedException;
    }

    /** Waits until a condition holds; polls at an interval in milliseconds. */
    public static void await(String what, double seconds, long millis, Condition condition)
            throws IOException, InterruptedException {
        long due = System.nanoTime() + (long) (seconds * 1e9);
        while (!condition.holds()) {
            if (System.nanoTime() - due > 0) {
                throw new IOException("not within " + seconds + " s: " + what);
            }
            pause(millis);
        }
    }

    public static void pause(long millis) {
        long until = System.nanoTime() + millis * 1_000_000;
        while (System.nanoTime() - until < 0) {
            LockSupport.parkNanos(until - System.nanoTime());
        }
    }

    private static int count(String text, String part) {
        int count = 0;
        for (int at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length())) {
            count++;
        }
        return count;
    }

    @Override
    public void close() {
        server.close();
    }
}
