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
import io.nereid.transport.api.HttpStatusCodes;
import java.io.IOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * The result of a node or step. Immutable as long as the body's array is not changed.
 *
 * @param ended whether the node itself failed, so that the whole graph ends with this result
 */
record StepResult(int status, byte[] body, boolean ended) {
    /** The answer of a service, or of a node that put one together. */
    StepResult(int status, byte[] body) {
        this(status, body, false);
    }

    /** Reads and writes NaN and the infinities as bare words, as the responses of models contain them. */
    static final ObjectMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();

    boolean success() {
        return status >= 200 && status < 300;
    }

    /** The body as JSON, or null when it is not JSON. */
    @Nullable JsonNode json() {
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

    static StepResult json(int status, JsonNode tree) {
        try {
            return new StepResult(status, JSON.writeValueAsBytes(tree));
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(ErrorCode.INTERNAL, "a JSON document could not be written", e);
        }
    }

    /** An error body in the form of KServe's router: {@code {"error":…,"cause":…}}. */
    static StepResult error(int status, String cause) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("error", "Failed to process request");
        tree.put("cause", cause);
        return json(status, tree);
    }

    /** The error of a node that cannot go on: no further step of any node runs. */
    static StepResult ended(int status, String cause) {
        return new StepResult(status, error(status, cause).body, true);
    }

    /** The error result for a call or a node that failed without a response. */
    static StepResult of(@Nullable Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        if (cause instanceof ServingException e) {
            return error(HttpStatusCodes.http(e.code()), e.describe());
        }
        if (cause instanceof CancellationException) {
            return error(HttpStatusCodes.http(ErrorCode.CANCELLED), "the call of a step was cancelled");
        }
        return error(
                500, "a step failed: " + (cause == null ? "" : cause.getClass().getSimpleName()));
    }
}
