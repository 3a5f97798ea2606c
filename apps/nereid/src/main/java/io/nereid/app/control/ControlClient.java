// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.connection.ServerConnection;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A client of the control API of a running server. Confined to one thread. */
final class ControlClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    private static final String PLAIN = "application/json";

    private final ServerConnection connection;
    private final PrintWriter err;

    /**
     * Creates a client.
     *
     * @param err receives the server's warnings
     */
    ControlClient(ServerConnection connection, PrintWriter err) {
        this.connection = connection;
        this.err = err;
    }

    /** Returns the path of a collection, or of one resource. */
    static String path(ResourceKind kind, String namespace, @Nullable String name) {
        String root = kind.group().isEmpty() ? "/api/" + kind.version() : "/apis/" + kind.apiVersion();
        return root
                + (kind.namespaced() && !namespace.isEmpty() ? "/namespaces/" + ServerClient.segment(namespace) : "")
                + "/" + kind.plural() + (name == null ? "" : "/" + ServerClient.segment(name));
    }

    /** A response. */
    record Reply(int status, JsonNode body) {}

    JsonNode get(String path) {
        return send("GET", path, PLAIN, null, null).body();
    }

    JsonNode table(String path) {
        return send("GET", path, TABLE, null, null).body();
    }

    /** Returns the resource; null when it does not exist. */
    @Nullable JsonNode find(String path) {
        try {
            return get(path);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    Reply send(String method, String path, @Nullable String type, ObjectNode body) {
        return send(method, path, PLAIN, type, body.toString());
    }

    JsonNode delete(String path) {
        return send("DELETE", path, PLAIN, null, null).body();
    }

    String text(String path) {
        HttpResponse<String> response = exchange(request("GET", path, "text/plain", null, null));
        if (response.statusCode() >= 300) {
            throw failure(response.statusCode(), parse(response));
        }
        return response.body();
    }

    private Reply send(String method, String path, String accept, @Nullable String type, @Nullable String body) {
        HttpResponse<String> response = exchange(request(method, path, accept, type, body));
        for (String warning : response.headers().allValues("warning")) {
            int from = warning.indexOf('"');
            int to = warning.lastIndexOf('"');
            err.println("Warning: " + (from < 0 || to <= from ? warning : unquoted(warning.substring(from + 1, to))));
            err.flush();
        }
        JsonNode tree = parse(response);
        if (response.statusCode() >= 300) {
            throw failure(response.statusCode(), tree);
        }
        return new Reply(response.statusCode(), tree);
    }

    private static String unquoted(String text) {
        return text.replaceAll("\\\\(.)", "$1");
    }

    private HttpRequest request(
            String method, String path, String accept, @Nullable String type, @Nullable String body) {
        HttpRequest.Builder builder = connection.request(path).header("accept", accept);
        if (type != null) {
            builder.header("content-type", type);
        }
        return builder.method(
                        method,
                        body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body, StandardCharsets.UTF_8))
                .build();
    }

    private HttpResponse<String> exchange(HttpRequest request) {
        return connection.send(request, BodyHandlers.ofString(StandardCharsets.UTF_8));
    }

    private JsonNode parse(HttpResponse<String> response) {
        try {
            return response.body().isEmpty() ? JSON.createObjectNode() : JSON.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw ServingException.of(
                    ErrorCode.UNKNOWN,
                    connection.server().url() + " answered HTTP " + response.statusCode()
                            + " with a body that is not JSON",
                    "is that the port of the control API? It is 8090 unless --control-port is set");
        }
    }

    private ServingException failure(int status, JsonNode body) {
        boolean kubernetes = body.path("kind").asText("").equals("Status");
        String text =
                kubernetes ? body.path("message").asText() : body.path("error").asText(body.toString());
        // Kubernetes says "is forbidden:" for what is not allowed to any caller, such as deleting the namespace
        // "default"
        ServingException refusal = text.contains(" is forbidden: ") ? null : connection.refusal(status, text);
        if (refusal != null) {
            return refusal;
        }
        ErrorCode code = switch (status) {
            case 400, 422 -> ErrorCode.INVALID_ARGUMENT;
            case 403 -> ErrorCode.PERMISSION_DENIED;
            case 404 -> ErrorCode.NOT_FOUND;
            case 409 -> ErrorCode.ABORTED;
            case 410 -> ErrorCode.OUT_OF_RANGE;
            case 507 -> ErrorCode.RESOURCE_EXHAUSTED;
            default -> ErrorCode.UNAVAILABLE;
        };
        if (!kubernetes) {
            return ServingException.of(
                    code,
                    connection.server().url() + " answered HTTP " + status + ": " + text,
                    "is that the port of the control API? It is 8090 unless --control-port is set");
        }
        return ServingException.of(code, text);
    }

    /**
     * Watches a resource or a collection, until the listener stops or the server ends the watch.
     *
     * @param path the path with its query
     * @param listener receives each event; returns false to stop
     * @return whether the listener stopped the watch
     */
    boolean watch(String path, boolean table, Predicate<JsonNode> listener) {
        HttpRequest request = request("GET", path, table ? TABLE : PLAIN, null, null);
        HttpResponse<Stream<String>> response = connection.send(request, BodyHandlers.ofLines());
        try {
            try (Stream<String> lines = response.body()) {
                if (response.statusCode() >= 300) {
                    throw failure(response.statusCode(), JSON.readTree(lines.collect(Collectors.joining("\n"))));
                }
                for (Iterator<String> each = lines.iterator(); each.hasNext(); ) {
                    JsonNode event = JSON.readTree(each.next());
                    if (!event.path("type").asText().equals("BOOKMARK") && !listener.test(event)) {
                        return true;
                    }
                }
                return false;
            }
        } catch (java.io.UncheckedIOException e) {
            IOException cause = e.getCause();
            throw connection.unreachable(cause == null ? new IOException(e) : cause);
        } catch (IOException e) {
            throw connection.unreachable(e);
        }
    }
}
