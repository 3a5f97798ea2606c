// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Threads;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * As much of the Kubernetes API as {@link OperatorTraining} needs: objects are kept as they are written, lists have all of a
 * kind, watches tell of nothing. It serves this process alone. Thread-safe.
 */
final class TrainingApiServer implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long MOST_SECONDS = 30;

    private final HttpServer server;
    private final ThreadPoolExecutor threads = Threads.pool("training", 32);
    private final AtomicLong version = new AtomicLong();

    /** The objects by group and version, resource, and name with or without a namespace. */
    private final Map<Key, ObjectNode> objects = new ConcurrentHashMap<>();

    private final CountDownLatch status = new CountDownLatch(1);
    private final CountDownLatch end = new CountDownLatch(1);

    /** What a path names; the name is empty for a list. */
    private record Key(String resource, String namespace, String name) {
        static Key of(String path) {
            List<String> parts = Arrays.asList(path.substring(1).split("/", -1));
            int at = parts.get(0).equals("api") ? 2 : 3;
            String group = String.join("/", parts.subList(0, Math.min(at, parts.size())));
            String namespace = "";
            if (parts.size() > at + 2 && parts.get(at).equals("namespaces")) {
                namespace = parts.get(at + 1);
                at += 2;
            }
            String resource = parts.size() > at ? parts.get(at) : "";
            return new Key(group + "/" + resource, namespace, parts.size() > at + 1 ? parts.get(at + 1) : "");
        }
    }

    TrainingApiServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    /** Adds an InferenceService. */
    void add(ObjectNode service) {
        JsonNode metadata = service.path("metadata");
        String name = metadata.path("name").asText();
        Key key = new Key(
                "apis/serving.kserve.io/v1beta1/inferenceservices",
                metadata.path("namespace").asText(),
                name);
        objects.put(key, stored(service, name));
    }

    /** Waits until a status was written; returns false when that takes too long. */
    boolean awaitStatus() throws InterruptedException {
        return status.await(MOST_SECONDS, TimeUnit.SECONDS);
    }

    private ObjectNode stored(ObjectNode object, String name) {
        ObjectNode metadata = object.withObjectProperty("metadata");
        metadata.put("name", name).put("resourceVersion", Long.toString(version.incrementAndGet()));
        if (!metadata.has("uid")) {
            metadata.put("uid", "uid-" + name);
        }
        return object;
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String path = exchange.getRequestURI().getPath();
            String query = exchange.getRequestURI().getQuery();
            Key key = Key.of(path);
            if (!exchange.getRequestMethod().equals("GET")) {
                write(exchange, key, path.endsWith("/status"));
            } else if (query != null && query.contains("watch=true")) {
                watch(exchange);
            } else if (key.name.isEmpty()) {
                ObjectNode list = JsonNodeFactory.instance.objectNode();
                list.withObjectProperty("metadata").put("resourceVersion", Long.toString(version.get()));
                objects.forEach((of, object) -> {
                    if (of.resource.equals(key.resource)) {
                        list.withArrayProperty("items").add(object);
                    }
                });
                respond(exchange, 200, list);
            } else {
                ObjectNode found = objects.get(key);
                respond(exchange, found == null ? 404 : 200, found == null ? JSON.createObjectNode() : found);
            }
        }
    }

    private void write(HttpExchange exchange, Key key, boolean ofStatus) throws IOException {
        JsonNode body = JSON.readTree(exchange.getRequestBody());
        String name = key.name.isEmpty() ? body.path("metadata").path("name").asText() : key.name;
        ObjectNode object = stored(body instanceof ObjectNode tree ? tree : JSON.createObjectNode(), name);
        objects.put(new Key(key.resource, key.namespace, name), object);
        respond(exchange, exchange.getRequestMethod().equals("POST") ? 201 : 200, object);
        if (ofStatus) {
            status.countDown();
        }
    }

    private void watch(HttpExchange exchange) throws IOException {
        exchange.sendResponseHeaders(200, 0);
        exchange.getResponseBody().flush();
        try {
            end.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void respond(HttpExchange exchange, int code, ObjectNode body) throws IOException {
        byte[] bytes = JSON.writeValueAsBytes(body);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(code, bytes.length);
        exchange.getResponseBody().write(bytes);
    }

    @Override
    public void close() {
        end.countDown();
        server.stop(0);
        threads.shutdown();
    }
}
