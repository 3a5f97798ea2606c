// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.app.connection.HttpText;
import io.nereid.app.connection.ServerConnection;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** A client of a running server's Open Inference REST API. Thread-safe. */
public final class ServerClient {
    public static final ObjectMapper JSON = new ObjectMapper();

    /** The path of the server's endpoint that replaces the list of models. */
    public static final String MODEL_CONFIG_PATH = "/admin/model-config";

    private final ServerConnection connection;

    public ServerClient(ServerConnection connection) {
        this.connection = connection;
    }

    /** How requests are sent. */
    public ServerConnection connection() {
        return connection;
    }

    public JsonNode get(String path) {
        return json(connection.exchange("GET", path, null, null));
    }

    public JsonNode post(String path, @Nullable JsonNode body) {
        return json(connection.exchange("POST", path, "application/json", body == null ? "" : body.toString()));
    }

    JsonNode postText(String path, String text) {
        return json(connection.exchange("POST", path, "text/plain; charset=utf-8", text));
    }

    public static String segment(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private JsonNode json(HttpText response) {
        String url = connection.server().url();
        int status = response.status();
        JsonNode body;
        try {
            body = response.body().isEmpty() ? JSON.createObjectNode() : JSON.readTree(response.body());
        } catch (JsonProcessingException e) {
            ServingException refusal = connection.refusal(status, "HTTP " + status);
            throw refusal != null
                    ? refusal
                    : ServingException.of(
                            ErrorCode.UNKNOWN, url + " answered HTTP " + status + " with a body that is not JSON");
        }
        String text = body.path("error").asText(response.body());
        ServingException refusal = connection.refusal(status, text);
        if (refusal != null) {
            throw refusal;
        }
        if (status >= 400) {
            throw ServingException.of(
                    status < 500 ? ErrorCode.INVALID_ARGUMENT : ErrorCode.UNAVAILABLE, "HTTP " + status + ": " + text);
        }
        return body;
    }
}
