// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.connection.ApiConnection;
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
import java.time.Duration;
import java.util.Iterator;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A client of the control API of a running server, or of the API server of a Kubernetes cluster. Thread-safe, but for the
 * order of warnings.
 */
final class ControlClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    private static final String PLAIN = "application/json";
    private static final String TEXT = "text/plain, */*";
    private static final Duration TIMEOUT = Duration.ofSeconds(70);
    private static final Pattern MANAGER = Pattern.compile("conflict with \"(.*)\"");
    private static final Pattern REFUSED_BY_WEBHOOK =
            Pattern.compile("admission webhook \"([^\"]*)\" denied the request: ?(.*)", Pattern.DOTALL);

    private final ApiConnection connection;
    private final PrintWriter err;

    /**
     * Creates a client.
     *
     * @param err receives the server's warnings
     */
    ControlClient(ApiConnection connection, PrintWriter err) {
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

    /** Whether the client is one of a Kubernetes cluster. */
    boolean isCluster() {
        return connection.isCluster();
    }

    /** Shows a warning as one of the server. */
    void warn(String text) {
        err.println("Warning: " + text);
        err.flush();
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
        HttpResponse<String> response = exchange(request("GET", path, TEXT, null, null));
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
        HttpRequest limited = HttpRequest.newBuilder(request, (name, value) -> true)
                .timeout(TIMEOUT)
                .build();
        return connection.send(limited, BodyHandlers.ofString(StandardCharsets.UTF_8));
    }

    private JsonNode parse(HttpResponse<String> response) {
        return parse(response.statusCode(), response.body());
    }

    private JsonNode parse(int status, String body) {
        if (connection.isCluster() && status == 404 && body.startsWith("404 page not found")) {
            throw unknownKind();
        }
        try {
            return body.isEmpty() ? JSON.createObjectNode() : JSON.readTree(body);
        } catch (JsonProcessingException e) {
            throw ServingException.of(
                    ErrorCode.UNKNOWN,
                    connection.url() + " answered HTTP " + status + " with a body that is not JSON",
                    connection.unexpected());
        }
    }

    private ServingException unknownKind() {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "the cluster at " + connection.url() + " does not have this kind of resource",
                "install Nereid's definitions: nereid operator manifests --image IMAGE | kubectl apply --server-side"
                        + " -f -");
    }

    private ServingException failure(int status, JsonNode body) {
        boolean kubernetes = body.path("kind").asText("").equals("Status");
        String text =
                kubernetes ? body.path("message").asText() : body.path("error").asText(body.toString());
        Matcher webhook = REFUSED_BY_WEBHOOK.matcher(text);
        if (webhook.matches()) {
            return ServingException.of(
                    ErrorCode.INVALID_ARGUMENT,
                    webhook.group(2).isEmpty() ? "it is refused" : webhook.group(2),
                    "refused by the webhook " + webhook.group(1) + " of the cluster");
        }
        // Kubernetes says "is forbidden:" for what is not allowed to any caller, such as deleting the namespace
        // "default"
        ServingException refusal = text.contains(" is forbidden: ") ? null : connection.refusal(status, text);
        if (refusal != null) {
            return refusal;
        }
        if (status == 409 && !body.at("/details/causes").isEmpty()) {
            return conflict(body);
        }
        if (connection.isCluster()) {
            if (status == 404 && text.equals("the server could not find the requested resource")) {
                return unknownKind();
            }
            if (status == 500 && text.contains("failed calling webhook")) {
                return ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        text,
                        "the program behind the webhook does not answer: see its pods");
            }
            if (text.startsWith("failed to create typed patch object")) {
                return ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        text,
                        text.contains(": field not declared in schema")
                                ? "the cluster's definition of the kind does not have the field"
                                : null);
            }
            if (status == 500) {
                return ServingException.of(ErrorCode.UNKNOWN, text);
            }
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
                    code, connection.url() + " answered HTTP " + status + ": " + text, connection.unexpected());
        }
        return ServingException.of(code, text);
    }

    /** The error of fields that other field managers own: each field with its manager in a line of its own. */
    private static ServingException conflict(JsonNode body) {
        StringBuilder text = new StringBuilder();
        for (JsonNode cause : body.at("/details/causes")) {
            if (cause.path("reason").asText().equals("FieldManagerConflict")) {
                String message = cause.path("message").asText();
                Matcher manager = MANAGER.matcher(message);
                text.append("\n    ")
                        .append(cause.path("field").asText())
                        .append(manager.find() ? " is set by " + manager.group(1) : ": " + message);
            }
        }
        if (text.isEmpty()) {
            return ServingException.of(ErrorCode.ABORTED, body.path("message").asText());
        }
        return ServingException.of(
                ErrorCode.ABORTED,
                "other managers have set fields to other values:" + text + "\n ",
                "leave these fields out of the file, or take them over with --force-conflicts");
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
                    throw failure(
                            response.statusCode(),
                            parse(response.statusCode(), lines.collect(Collectors.joining("\n"))));
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

    /**
     * Reads a text line by line until it ends, however long that takes.
     *
     * @param path the path with its query
     */
    void lines(String path, Consumer<String> listener) {
        HttpRequest request = request("GET", path, TEXT, null, null);
        HttpResponse<Stream<String>> response = connection.send(request, BodyHandlers.ofLines());
        try (Stream<String> lines = response.body()) {
            if (response.statusCode() >= 300) {
                throw failure(
                        response.statusCode(), parse(response.statusCode(), lines.collect(Collectors.joining("\n"))));
            }
            lines.forEach(listener);
        } catch (java.io.UncheckedIOException e) {
            IOException cause = e.getCause();
            throw connection.unreachable(cause == null ? new IOException(e) : cause);
        }
    }
}
