// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.endpoint.StatusCodes;
import java.io.IOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** What a node came to: a status and a body. Immutable as long as nobody changes the body. */
record Outcome(int status, byte[] body) {
    /** Takes and writes NaN and the infinities as bare words, as models' answers have them. */
    static final ObjectMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();

    boolean success() {
        return status >= 200 && status < 300;
    }

    /** The body as JSON, or null when it is none. */
    @Nullable
    JsonNode json() {
        return parse(body);
    }

    static @Nullable JsonNode parse(byte[] body) {
        try {
            JsonNode tree = JSON.readTree(body);
            return tree == null || tree.isMissingNode() ? null : tree;
        } catch (IOException e) {
            return null;
        }
    }

    static Outcome json(int status, JsonNode tree) {
        try {
            return new Outcome(status, JSON.writeValueAsBytes(tree));
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(ErrorCode.INTERNAL, "a tree could not be written", e);
        }
    }

    /** {@code {"error":…,"cause":…}}, as KServe's router says it. */
    static Outcome error(int status, String cause) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("error", "Failed to process request");
        tree.put("cause", cause);
        return json(status, tree);
    }

    /** What is told when there is no answer. */
    static Outcome of(@Nullable Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        if (cause instanceof ServingException e) {
            return error(StatusCodes.http(e.code()), e.describe());
        }
        if (cause instanceof CancellationException) {
            return error(StatusCodes.http(ErrorCode.CANCELLED), "the call of a step was ended");
        }
        return error(
                500, "a step failed: " + (cause == null ? "" : cause.getClass().getSimpleName()));
    }
}
