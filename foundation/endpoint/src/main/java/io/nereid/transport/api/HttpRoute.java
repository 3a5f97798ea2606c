// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

/**
 * One HTTP route. Immutable.
 *
 * @param method the verb in capitals; {@link #ANY} for every one, with a {@code {rest...}} alone
 * @param template a path whose segments are literals or {@code {name}} placeholders; a last placeholder may be followed by
 *     {@code :literal}, as in {@code /v1/models/{model}:predict}. A placeholder matches one non-empty segment up to the
 *     {@code :}, percent-decoded; literal segments win over placeholders. A last
 *     segment {@code {rest...}} after literals takes every path that begins so, the bare beginning included, when no other
 *     route takes path and verb; it is no parameter, {@link HttpExchange#path} tells what came
 * @param handler answers it, on an event loop
 */
public record HttpRoute(String method, String template, HttpHandler handler) {
    /** The method of a route for every verb. */
    public static final String ANY = "*";

    /** Answers the requests of a route. Called on the event loop of the connection; must not block. */
    @FunctionalInterface
    public interface HttpHandler {
        /**
         * Answers one exchange, now or later. What it throws is answered with the transport's own mapping
         * ({@code {"error": …}} and {@link HttpStatusCodes#http}).
         */
        void handle(HttpExchange exchange);
    }

    /** A GET route. */
    public static HttpRoute get(String template, HttpHandler handler) {
        return new HttpRoute("GET", template, handler);
    }

    /** A POST route. */
    public static HttpRoute post(String template, HttpHandler handler) {
        return new HttpRoute("POST", template, handler);
    }
}
