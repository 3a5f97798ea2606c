// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadPoolExecutor;

/** The model servers of a pool's pods, over the model repository API of Open Inference. Thread-safe. */
final class HttpPoolServers implements PoolServers, AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration CONNECT = Duration.ofSeconds(5);
    private static final Duration SHORT = Duration.ofSeconds(10);

    /** A model may have to be fetched from a slow store. */
    private static final Duration LOAD = Duration.ofMinutes(10);

    private static final Duration UNLOAD = Duration.ofMinutes(6);
    private static final int UNAVAILABLE = 503;

    private final ThreadPoolExecutor threads = Threads.pool("pool-servers", 2);
    private final HttpClient client = HttpClient.newBuilder()
            .executor(threads)
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(CONNECT)
            .build();
    private final Shared shared;

    /** The key of a pod's pool. */
    @FunctionalInterface
    interface Shared {
        String key(Holder pod);
    }

    HttpPoolServers(Shared shared) {
        this.shared = shared;
    }

    @Override
    public CompletionStage<Set<String>> loaded(Holder pod) {
        return send(pod, "/v2/repository/index", "{\"ready\":true}", SHORT).thenApply(answer -> {
            Set<String> names = new HashSet<>();
            try {
                for (JsonNode model : JSON.readTree(answer)) {
                    names.add(model.path("name").asText());
                }
            } catch (JsonProcessingException e) {
                throw ServingException.wrap(
                        ErrorCode.UNAVAILABLE, "pod " + pod.name() + " did not answer with JSON", e);
            }
            return names;
        });
    }

    @Override
    public CompletionStage<Void> load(Holder pod, String model, String uri) {
        ObjectNode request = JSON.createObjectNode();
        request.putObject("parameters").put("storage_uri", uri);
        return send(pod, "/v2/repository/models/" + model + "/load", request.toString(), LOAD)
                .thenApply(answer -> null);
    }

    @Override
    public CompletionStage<Void> unload(Holder pod, String model) {
        return send(pod, "/v2/repository/models/" + model + "/unload", "{}", UNLOAD)
                .thenApply(answer -> null);
    }

    private CompletableFuture<String> send(Holder pod, String path, String body, Duration limit) {
        String host = pod.address().indexOf(':') < 0 ? pod.address() : "[" + pod.address() + "]";
        HttpRequest request;
        try {
            request = HttpRequest.newBuilder(URI.create("http://" + host + ":" + pod.httpPort() + path))
                    .timeout(limit)
                    .header("content-type", "application/json")
                    .header("x-api-key", shared.key(pod))
                    .POST(HttpRequest.BodyPublishers.ofString(body))
                    .build();
        } catch (RuntimeException e) {
            return CompletableFuture.failedFuture(ServingException.from(e));
        }
        return client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).handle((response, failure) -> {
            if (failure != null) {
                Throwable cause = failure instanceof CompletionException && failure.getCause() != null
                        ? failure.getCause()
                        : failure;
                throw ServingException.wrap(
                        ErrorCode.UNAVAILABLE, "pod " + pod.name() + " does not answer: " + cause, cause);
            }
            if (response.statusCode() / 100 != 2) {
                throw ServingException.of(
                        response.statusCode() == UNAVAILABLE ? ErrorCode.UNAVAILABLE : ErrorCode.FAILED_PRECONDITION,
                        error(response.body()));
            }
            return response.body();
        });
    }

    private static String error(String body) {
        try {
            String text = JSON.readTree(body).path("error").asText("");
            return text.isEmpty() ? body : text;
        } catch (JsonProcessingException e) {
            return body;
        }
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }
}
