// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.util.ArrayList;
import java.util.List;

/**
 * The response to a request of the Kubernetes API. Immutable.
 *
 * @param status the HTTP status
 * @param body the body as a JSON tree
 * @param contentType the content type of the body
 * @param warnings sentences for {@code Warning} headers
 */
public record ApiResponse(int status, JsonNode body, String contentType, List<String> warnings) {
    public static final ObjectMapper JSON = new ObjectMapper();

    private static final int MOST_WARNING = 2000;

    public static ApiResponse ok(JsonNode body) {
        return new ApiResponse(200, body, HttpReply.JSON, List.of());
    }

    public static ApiResponse of(int status, JsonNode body, List<String> warnings) {
        return new ApiResponse(status, body, HttpReply.JSON, warnings);
    }

    /** A failure as a Kubernetes {@code Status}. */
    public static ApiResponse failure(int code, String reason, String message) {
        return ofStatus(failureStatus(code, reason, message));
    }

    public static ApiResponse ofStatus(ObjectNode status) {
        return new ApiResponse(status.path("code").asInt(500), status, HttpReply.JSON, List.of());
    }

    public static ObjectNode failureStatus(int code, String reason, String message) {
        ObjectNode status = JSON.createObjectNode();
        status.put("kind", "Status").put("apiVersion", "v1");
        status.putObject("metadata");
        status.put("status", "Failure").put("message", message).put("reason", reason);
        status.put("code", code);
        return status;
    }

    /**
     * The Kubernetes {@code Status} of an exception, with the HTTP code and reason that Kubernetes uses for such an
     * error.
     */
    public static ObjectNode failureStatus(ServingException e) {
        record Mapped(int code, String reason) {}
        Mapped mapped = switch (e.code()) {
            case INVALID_ARGUMENT -> new Mapped(400, "BadRequest");
            case UNAUTHENTICATED -> new Mapped(401, "Unauthorized");
            case PERMISSION_DENIED -> new Mapped(403, "Forbidden");
            case NOT_FOUND -> new Mapped(404, "NotFound");
            case UNIMPLEMENTED -> new Mapped(405, "MethodNotAllowed");
            case ALREADY_EXISTS -> new Mapped(409, "AlreadyExists");
            case ABORTED, FAILED_PRECONDITION -> new Mapped(409, "Conflict");
            case OUT_OF_RANGE -> new Mapped(410, "Expired");
            case RESOURCE_EXHAUSTED -> new Mapped(507, "InsufficientStorage");
            case UNAVAILABLE -> new Mapped(503, "ServiceUnavailable");
            case DEADLINE_EXCEEDED -> new Mapped(504, "Timeout");
            case OK, CANCELLED, UNKNOWN, INTERNAL, DATA_LOSS -> new Mapped(500, "InternalError");
        };
        return failureStatus(mapped.code, mapped.reason, e.describe());
    }

    /** Adds the resource that a status is about to its details. */
    public static ObjectNode about(ObjectNode status, ResourceKind kind, String name) {
        ObjectNode details = status.withObject("/details");
        if (!name.isEmpty()) {
            details.put("name", name);
        }
        if (!kind.group().isEmpty()) {
            details.put("group", kind.group());
        }
        details.put("kind", kind.plural());
        return status;
    }

    /** The response 422 for an invalid resource; {@code problems} has one line per error, {@code path: message}. */
    public static ApiResponse invalid(ResourceKind kind, String name, String problems) {
        List<String> lines =
                problems.lines().map(String::strip).filter(l -> !l.isEmpty()).toList();
        ObjectNode status = failureStatus(
                422,
                "Invalid",
                (kind.group().isEmpty() ? kind.kind() : kind.kind() + "." + kind.group()) + " \"" + name
                        + "\" is invalid: "
                        + (lines.size() == 1 ? lines.get(0) : "[" + String.join(", ", lines) + "]"));
        ObjectNode details = about(status, kind, name).withObject("/details");
        details.put("kind", kind.kind());
        ArrayNode causes = details.putArray("causes");
        for (String line : lines) {
            int colon = line.indexOf(": ");
            boolean named = colon > 0 && line.indexOf(' ') == colon + 1;
            ObjectNode cause = causes.addObject().put("reason", "FieldValueInvalid");
            cause.put("message", named ? line.substring(colon + 2) : line);
            cause.put("field", named ? line.substring(0, colon) : "");
        }
        return ofStatus(status);
    }

    public static byte[] bytes(JsonNode tree) {
        try {
            return JSON.writeValueAsBytes(tree);
        } catch (JsonProcessingException e) {
            throw ServingException.internal("a response could not be written", e);
        }
    }

    public HttpReply reply() {
        byte[] bytes = bytes(body);
        List<String> headers = new ArrayList<>();
        headers.add("cache-control");
        headers.add("no-cache, private");
        for (String warning : warnings) {
            headers.add("warning");
            headers.add("299 - \"" + quoted(warning) + "\"");
        }
        return new HttpReply(
                status, contentType, headers.toArray(String[]::new), new ResponseBody(bytes, bytes.length));
    }

    /** The content of a quoted string for a header: only printable ASCII, without line breaks. */
    private static String quoted(String text) {
        StringBuilder b = new StringBuilder();
        text.codePoints().limit(MOST_WARNING).forEach(c -> {
            if (c == '"' || c == '\\') {
                b.append('\\');
            }
            b.appendCodePoint(c == '\n' ? ' ' : c < 0x20 || c > 0x7e ? '?' : c);
        });
        return b.toString();
    }
}
