// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Kind;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.util.ArrayList;
import java.util.List;

/**
 * What a request gets. Immutable.
 *
 * @param status of HTTP
 * @param body a tree
 * @param contentType of the body
 * @param warnings a sentence each
 */
record Answer(int status, JsonNode body, String contentType, List<String> warnings) {
    static final ObjectMapper JSON = new ObjectMapper();

    private static final int MOST_WARNING = 2000;

    static Answer ok(JsonNode body) {
        return new Answer(200, body, HttpReply.JSON, List.of());
    }

    static Answer of(int status, JsonNode body, List<String> warnings) {
        return new Answer(status, body, HttpReply.JSON, warnings);
    }

    /** A failure as Kubernetes tells it. */
    static Answer failure(int code, String reason, String message) {
        return ofStatus(failureStatus(code, reason, message));
    }

    static Answer ofStatus(ObjectNode status) {
        return new Answer(status.path("code").asInt(500), status, HttpReply.JSON, List.of());
    }

    static ObjectNode failureStatus(int code, String reason, String message) {
        ObjectNode status = JSON.createObjectNode();
        status.put("kind", "Status").put("apiVersion", "v1");
        status.putObject("metadata");
        status.put("status", "Failure").put("message", message).put("reason", reason);
        status.put("code", code);
        return status;
    }

    /** What went wrong, in Kubernetes' words where it has any. */
    static ObjectNode failureStatus(ServingException e) {
        record Told(int code, String reason) {}
        Told told = switch (e.code()) {
            case INVALID_ARGUMENT -> new Told(400, "BadRequest");
            case UNAUTHENTICATED -> new Told(401, "Unauthorized");
            case PERMISSION_DENIED -> new Told(403, "Forbidden");
            case NOT_FOUND -> new Told(404, "NotFound");
            case UNIMPLEMENTED -> new Told(405, "MethodNotAllowed");
            case ALREADY_EXISTS -> new Told(409, "AlreadyExists");
            case ABORTED, FAILED_PRECONDITION -> new Told(409, "Conflict");
            case OUT_OF_RANGE -> new Told(410, "Expired");
            case RESOURCE_EXHAUSTED -> new Told(507, "InsufficientStorage");
            case UNAVAILABLE -> new Told(503, "ServiceUnavailable");
            case DEADLINE_EXCEEDED -> new Told(504, "Timeout");
            case OK, CANCELLED, UNKNOWN, INTERNAL, DATA_LOSS -> new Told(500, "InternalError");
        };
        return failureStatus(told.code, told.reason, e.describe());
    }

    /** A failure that is about one resource. */
    static ObjectNode about(ObjectNode status, Kind kind, String name) {
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

    /** A resource that cannot be as it is; a problem a line, {@code path: what}. */
    static Answer invalid(Kind kind, String name, String problems) {
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

    static byte[] bytes(JsonNode tree) {
        try {
            return JSON.writeValueAsBytes(tree);
        } catch (JsonProcessingException e) {
            throw ServingException.internal("an answer could not be written", e);
        }
    }

    HttpReply reply() {
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
