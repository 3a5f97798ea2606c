// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** A client of a running server's Open Inference REST API. Confined to one thread. */
public final class ServerClient {
    public static final ObjectMapper JSON = new ObjectMapper();

    /** The path of the server's endpoint that replaces the list of models. */
    public static final String MODEL_CONFIG_PATH = "/admin/model-config";

    private final String url;
    private final HttpClient http =
            HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();

    public ServerClient(String url) {
        String full = url.contains("://") ? url : "http://" + url;
        this.url = full.endsWith("/") ? full.substring(0, full.length() - 1) : full;
    }

    public JsonNode get(String path) {
        return send(request(path).GET().build());
    }

    JsonNode post(String path, @Nullable JsonNode body) {
        return send(request(path)
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body == null ? "" : body.toString()))
                .build());
    }

    JsonNode postText(String path, String text) {
        return send(request(path)
                .header("content-type", "text/plain; charset=utf-8")
                .POST(HttpRequest.BodyPublishers.ofString(text))
                .build());
    }

    public static String segment(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Builds a request for a path. Callable on any thread. */
    public HttpRequest.Builder request(String path) {
        try {
            return HttpRequest.newBuilder(URI.create(url + path));
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument(
                    "'" + url + "' is not a server's address", "for example: --url http://127.0.0.1:8080");
        }
    }

    private JsonNode send(HttpRequest request) {
        HttpResponse<String> response;
        try {
            response = http.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (ConnectException e) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "no server responds at " + url,
                    "start one with: nereid serve DIR; or set --url");
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE, "the request to " + url + " failed: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, "interrupted");
        }
        JsonNode body;
        try {
            body = response.body().isEmpty() ? JSON.createObjectNode() : JSON.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw ServingException.of(
                    ErrorCode.UNKNOWN,
                    url + " answered HTTP " + response.statusCode() + " with a body that is not JSON");
        }
        if (response.statusCode() >= 400) {
            String text = body.path("error").asText(response.body());
            throw ServingException.of(
                    response.statusCode() < 500 ? ErrorCode.INVALID_ARGUMENT : ErrorCode.UNAVAILABLE,
                    "HTTP " + response.statusCode() + ": " + text);
        }
        return body;
    }
}
