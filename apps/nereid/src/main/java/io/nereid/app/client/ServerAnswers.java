// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import io.nereid.app.connection.HttpText;
import io.nereid.app.connection.ServerConnection;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Asks a running server and reads its answers as plain values, for commands that ask once: the classes of Jackson, which
 * {@link ServerClient} needs, take longer to load than everything else that such a command does. Thread-safe.
 */
final class ServerAnswers {
    private final ServerConnection connection;

    ServerAnswers(ServerConnection connection) {
        this.connection = connection;
    }

    /**
     * Sends a request without a body.
     *
     * @return the objects of a list that the server answers; empty when the answer is not a list
     * @throws ServingException with the server's error, or UNKNOWN for an answer that is not JSON
     */
    List<Map<?, ?>> send(String method, String path) {
        boolean posts = method.equals("POST");
        HttpText response = connection.exchange(method, path, posts ? "application/json" : null, posts ? "" : null);
        Object answer = Map.of();
        try {
            answer = response.body().isEmpty()
                    ? answer
                    : JsonValues.read(response.body().getBytes(StandardCharsets.UTF_8));
        } catch (ServingException e) {
            throw notJson(connection, response.status());
        }
        check(connection, response, answer instanceof Map<?, ?> fields ? fields.get("error") : null);
        return answer instanceof List<?> list
                ? list.stream()
                        .<Map<?, ?>>map(each -> each instanceof Map<?, ?> fields ? fields : Map.of())
                        .toList()
                : List.of();
    }

    /** Returns a name as a part of a path. */
    static String segment(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Returns the text of a field; {@code otherwise} when it is absent or null. */
    static String text(Map<?, ?> fields, String name, String otherwise) {
        Object value = fields.get(name);
        return value == null ? otherwise : value.toString();
    }

    /** Returns the error for an answer that is not JSON. */
    static ServingException notJson(ServerConnection connection, int status) {
        ServingException refusal = connection.refusal(status, "HTTP " + status);
        return refusal != null
                ? refusal
                : ServingException.of(
                        ErrorCode.UNKNOWN,
                        connection.server().url() + " answered HTTP " + status + " with a body that is not JSON");
    }

    /**
     * Throws the error of an answer that is one.
     *
     * @param error the answer's field of this name; null without one, for the whole body
     */
    static void check(ServerConnection connection, HttpText response, @Nullable Object error) {
        int status = response.status();
        String text = error == null ? response.body() : error.toString();
        ServingException refusal = connection.refusal(status, text);
        if (refusal != null) {
            throw refusal;
        }
        if (status >= 400) {
            throw ServingException.of(
                    status < 500 ? ErrorCode.INVALID_ARGUMENT : ErrorCode.UNAVAILABLE, "HTTP " + status + ": " + text);
        }
    }
}
