// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A path below {@code /v1/models} in another spelling than that of the routes: TensorFlow Serving matches paths without
 * regard to case. Immutable.
 *
 * @param model the model and version
 * @param verb {@code classify}, {@code regress}, {@code predict}, {@code metadata}, or empty for the status
 */
record RestPath(ModelRef model, String verb) {
    private static final Pattern PATH = Pattern.compile(
            "/v1/models/([^/:]+)(?:/versions/(\\d+)|/labels/([^/:]+))?(?::(classify|regress|predict)|/(metadata))?",
            Pattern.CASE_INSENSITIVE);

    /**
     * Parses the path of an exchange.
     *
     * @throws ServingException INVALID_ARGUMENT for a method and path that do not exist
     */
    static RestPath of(HttpExchange x) {
        Matcher m = PATH.matcher(x.path());
        boolean post = x.method().equals("POST");
        if (!(post || x.method().equals("GET")) || !m.matches() || post != (m.group(4) != null)) {
            throw malformed(x, "see the paths of TensorFlow Serving's REST API");
        }
        String verb = post ? m.group(4) : m.group(5) == null ? "" : m.group(5);
        String label = m.group(3) == null ? null : decoded(x, m.group(3));
        long version = m.group(2) == null ? ModelRef.ANY : version(x, m.group(2));
        return new RestPath(new ModelRef(decoded(x, m.group(1)), version, label), verb.toLowerCase(Locale.ROOT));
    }

    /** Parses a version number. */
    static long version(HttpExchange x, String text) {
        boolean digits = !text.isEmpty() && text.chars().allMatch(c -> c >= '0' && c <= '9');
        if (digits) {
            try {
                return Long.parseLong(text);
            } catch (NumberFormatException e) {
                throw ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "Failed to convert version: " + text + " to numeric.",
                        "versions are below 9223372036854775808");
            }
        }
        throw malformed(x, "Failed to convert version: " + text + " to numeric.");
    }

    static ServingException malformed(HttpExchange x, @Nullable String remedy) {
        return ServingException.invalidArgument("Malformed request: " + x.method() + " " + x.path(), remedy);
    }

    private static String decoded(HttpExchange x, String text) {
        try {
            return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) {
            throw malformed(x, "'" + text + "' has a malformed percent escape");
        }
    }
}
