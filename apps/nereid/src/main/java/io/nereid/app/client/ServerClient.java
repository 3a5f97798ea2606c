// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.app.connection.HttpText;
import io.nereid.app.connection.ServerConnection;
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
        return ServerAnswers.segment(name);
    }

    private JsonNode json(HttpText response) {
        JsonNode body;
        try {
            body = response.body().isEmpty() ? JSON.createObjectNode() : JSON.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw ServerAnswers.notJson(connection, response.status());
        }
        JsonNode error = body.path("error");
        ServerAnswers.check(connection, response, error.isMissingNode() ? null : error.asText());
        return body;
    }
}
