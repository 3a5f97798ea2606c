// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;

/**
 * A response: status, content type, further headers and body. Immutable except for the ownership of its tensors.
 *
 * <pre>{@code
 * exchange.reply(HttpReply.json(200, "{\"live\":true}"));
 * exchange.reply(HttpReply.error(ServingException.invalidArgument("input 'x' is missing")));
 * }</pre>
 *
 * @param status the HTTP status
 * @param contentType the value of {@code content-type}; empty for no such header
 * @param headers further headers as name, value, name, value, …; names in lower case
 * @param content the body
 */
public record HttpReply(int status, String contentType, String[] headers, ResponseBody content) {
    /** The content type of JSON. */
    public static final String JSON = "application/json";

    private static final String[] NO_HEADERS = {};
    /** RFC 9110 wants a 401 to name the way to authenticate. */
    private static final String[] CHALLENGE = {"www-authenticate", "Bearer realm=\"nereid\""};

    /** A JSON response from the first {@code length} bytes of {@code text}. */
    public static HttpReply json(int status, byte[] text, int length) {
        return new HttpReply(status, JSON, NO_HEADERS, new ResponseBody(text, length));
    }

    /** A JSON response. */
    public static HttpReply json(int status, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return json(status, bytes, bytes.length);
    }

    /** A response with another content type. */
    public static HttpReply text(int status, String contentType, String text) {
        return text(status, contentType, text.getBytes(StandardCharsets.UTF_8));
    }

    /** A response with another content type, from all of {@code bytes}. */
    public static HttpReply text(int status, String contentType, byte[] bytes) {
        return new HttpReply(status, contentType, NO_HEADERS, new ResponseBody(bytes, bytes.length));
    }

    /**
     * The response {@code {"error": text}} with the status of {@link HttpStatusCodes#http}; with {@code retry-after} when
     * the exception has a time, and a 401 asks for a bearer token.
     */
    public static HttpReply error(ServingException e) {
        HttpReply reply = error(HttpStatusCodes.http(e.code()), e.describe());
        if (e.code() == ErrorCode.UNAUTHENTICATED) {
            return new HttpReply(reply.status(), reply.contentType(), CHALLENGE, reply.content());
        }
        Duration wait = e.retryAfter();
        if (wait == null) {
            return reply;
        }
        String seconds = Long.toString(Math.max(1, wait.plusMillis(999).toSeconds()));
        return new HttpReply(
                reply.status(), reply.contentType(), new String[] {"retry-after", seconds}, reply.content());
    }

    /** This response with one more header; the name is in lower case. */
    public HttpReply withHeader(String name, String value) {
        String[] more = Arrays.copyOf(headers, headers.length + 2);
        more[headers.length] = name;
        more[headers.length + 1] = value;
        return new HttpReply(status, contentType, more, content);
    }

    /** The response {@code {"error": text}}. */
    public static HttpReply error(int status, String text) {
        return json(status, "{\"error\":" + quote(text) + "}");
    }

    /** Encodes a text as a JSON string, including the quotes. */
    public static String quote(String text) {
        StringBuilder b = new StringBuilder(text.length() + 2).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '"' -> b.append("\\\"");
                case '\\' -> b.append("\\\\");
                case '\n' -> b.append("\\n");
                case '\r' -> b.append("\\r");
                case '\t' -> b.append("\\t");
                default -> {
                    if (c < 0x20) {
                        b.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
                    } else {
                        b.append(c);
                    }
                }
            }
        }
        return b.append('"').toString();
    }
}
