// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.http.HttpClient;
import io.fabric8.kubernetes.client.http.HttpRequest;
import io.fabric8.kubernetes.client.http.HttpResponse;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * Requests to the API server with trees as bodies, over the HTTP client of a {@link KubernetesClient}: its address, TLS,
 * credentials and retries. The typed operations of that client turn each body three times from one form into another, which
 * was most of what an operator of many services did.
 *
 * <p>See the Kubernetes documentation, API Concepts. Thread-safe.
 */
final class ApiRequests {
    static final String JSON_TYPE = "application/json";

    /** Bytes that are read at once of a compressed answer. */
    private static final int INFLATED = 8192;

    private final KubernetesClient client;
    private final String base;

    /** @param client used by this object, closed by the caller */
    ApiRequests(KubernetesClient client) {
        this.client = client;
        String url = client.getMasterUrl().toString();
        this.base = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
    }

    /**
     * The path of the objects of a kind.
     *
     * @param namespace null for all namespaces
     */
    static String path(ResourceKind kind, @Nullable String namespace) {
        String group = kind.group().isEmpty() ? "/api/" : "/apis/" + kind.group() + "/";
        String within = kind.namespaced() && namespace != null ? "/namespaces/" + encoded(namespace) : "";
        return group + kind.version() + within + "/" + kind.plural();
    }

    /** A part of a path or query. */
    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    HttpClient http() {
        return client.getHttpClient();
    }

    HttpRequest.Builder request(String path) {
        return http().newHttpRequestBuilder().uri(URI.create(base + path)).header("Accept", JSON_TYPE);
    }

    /**
     * Sends a request and waits for the answer.
     *
     * @param what names the object in errors
     * @param body null for none
     * @throws ServingException as {@link ClusterClient} says
     */
    ObjectNode send(String what, String method, String path, String type, @Nullable JsonNode body) {
        HttpRequest.Builder builder = request(path);
        try {
            if (body == null) {
                builder.method(method, null, (String) null);
            } else {
                // A text, not a stream: the client may send it again.
                builder.method(method, type, PackedObject.JSON.writeValueAsString(body));
            }
            return answer(what, builder);
        } catch (IOException e) {
            throw unanswered(what, e);
        }
    }

    private ObjectNode answer(String what, HttpRequest.Builder builder) throws IOException {
        int limit = client.getConfiguration().getRequestTimeout();
        HttpResponse<byte[]> response = await(
                http().sendAsync(builder.timeout(limit, TimeUnit.MILLISECONDS).build(), byte[].class));
        // An error may be compressed as well. A list is read as it is inflated, so that its text is never whole in
        // memory.
        try (InputStream body = body(response)) {
            if (!response.isSuccessful()) {
                throw refused(what, response.code(), body.readAllBytes());
            }
            return (ObjectNode) PackedObject.JSON.readTree(body);
        }
    }

    private static InputStream body(HttpResponse<byte[]> response) throws IOException {
        byte[] bytes = response.body();
        InputStream sent = bytes == null ? InputStream.nullInputStream() : new ByteArrayInputStream(bytes);
        return "gzip".equals(response.header("Content-Encoding")) ? new GZIPInputStream(sent, INFLATED) : sent;
    }

    /**
     * Lists the objects of a kind in pages.
     *
     * @param query parameters that end with {@code &}; empty for all objects
     * @param page most objects at once
     * @param each receives each object, with its kind, which the elements of a list do not have
     * @return the version of the list
     */
    String list(ResourceKind kind, @Nullable String namespace, String query, int page, Consumer<ObjectNode> each) {
        String next = "";
        while (true) {
            ObjectNode list;
            try {
                // Compressed, since objects of a kind are alike: that costs both sides less than to encrypt ten times
                // as much.
                list = answer(
                        kind.plural(),
                        request(path(kind, namespace) + "?" + query + "limit=" + page
                                        + (next.isEmpty() ? "" : "&continue=" + encoded(next)))
                                .header("Accept-Encoding", "gzip"));
            } catch (IOException e) {
                throw unanswered(kind.plural(), e);
            }
            list.path("items").forEach(item -> each.accept(typed(kind, item)));
            next = list.path("metadata").path("continue").asText("");
            if (next.isEmpty()) {
                return list.path("metadata").path("resourceVersion").asText();
            }
        }
    }

    /** An object with its kind. */
    static ObjectNode typed(ResourceKind kind, JsonNode object) {
        return ((ObjectNode) object).put("apiVersion", kind.apiVersion()).put("kind", kind.kind());
    }

    private static <T> T await(CompletableFuture<T> future) throws IOException {
        try {
            return future.get();
        } catch (InterruptedException e) {
            future.cancel(true);
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        } catch (ExecutionException e) {
            throw new IOException(e.getCause() == null ? e : e.getCause());
        }
    }

    private static ServingException unanswered(String what, IOException e) {
        Throwable cause = e.getCause() == null ? e : e.getCause();
        return ServingException.wrap(
                ErrorCode.UNAVAILABLE, what + ": the API server did not answer (" + cause.getMessage() + ")", e);
    }

    /** What an answer with an error means; its body is a {@code Status}. */
    static ServingException refused(String what, int code, byte @Nullable [] body) {
        JsonNode status = status(body);
        ErrorCode meaning = switch (code) {
            case 400, 413, 422 -> ErrorCode.INVALID_ARGUMENT;
            case 401 -> ErrorCode.UNAUTHENTICATED;
            case 403 -> ErrorCode.PERMISSION_DENIED;
            case 404, 410 -> ErrorCode.NOT_FOUND;
            case 409 ->
                status.path("reason").asText().equals("AlreadyExists") ? ErrorCode.ALREADY_EXISTS : ErrorCode.ABORTED;
            default -> ErrorCode.UNAVAILABLE;
        };
        String message = status.path("message").asText("");
        return ServingException.of(
                meaning, message.isEmpty() ? what + ": the API server answered with the status " + code : message);
    }

    private static JsonNode status(byte @Nullable [] body) {
        try {
            return body == null || body.length == 0 ? MissingNode.getInstance() : PackedObject.JSON.readTree(body);
        } catch (IOException e) {
            // A proxy in between may answer with a page.
            return MissingNode.getInstance();
        }
    }

    /** The name of an object in errors. */
    static String what(ResourceKind kind, String name) {
        return kind.kind().toLowerCase(Locale.ROOT) + (name.isEmpty() ? "" : " " + name);
    }
}
