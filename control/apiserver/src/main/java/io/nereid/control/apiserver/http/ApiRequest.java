// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** A parsed request of the Kubernetes API. Immutable. */
public final class ApiRequest {
    private final HttpExchange exchange;
    private final List<String> path;

    public ApiRequest(HttpExchange exchange) {
        this.exchange = exchange;
        List<String> segments = new ArrayList<>();
        for (String segment : exchange.path().split("/", -1)) {
            if (!segment.isEmpty()) {
                try {
                    segments.add(URLDecoder.decode(segment.replace("+", "%2B"), StandardCharsets.UTF_8));
                } catch (IllegalArgumentException e) {
                    throw ServingException.invalidArgument("the path has a malformed escape: " + segment);
                }
            }
        }
        this.path = List.copyOf(segments);
    }

    public HttpExchange exchange() {
        return exchange;
    }

    public String method() {
        return exchange.method();
    }

    /** The decoded segments of the path, without empty ones. */
    public List<String> path() {
        return path;
    }

    public @Nullable String query(String name) {
        return exchange.queryParameter(name);
    }

    /** Whether a query parameter is set, as Kubernetes reads it: to any value but {@code false} and {@code 0}. Python sends {@code True}. */
    public boolean flag(String name) {
        String value = query(name);
        return value != null && !value.equalsIgnoreCase("false") && !value.equals("0");
    }

    /** A query parameter that is a number. */
    public long number(String name, long absent) {
        String value = query(name);
        if (value == null || value.isEmpty()) {
            return absent;
        }
        try {
            return Long.parseLong(value);
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(name + "=" + value + " is not a number");
        }
    }

    /** Whether the request is a dry run, which must not store anything. */
    public boolean dryRun() {
        String value = query("dryRun");
        if (value == null || value.isEmpty()) {
            return false;
        }
        if (!value.equals("All")) {
            throw ServingException.invalidArgument("dryRun=" + value + " is not known (expected All)");
        }
        return true;
    }

    /** The field manager: the query parameter, or else the program in the user agent, as in Kubernetes. */
    public String fieldManager() {
        String given = query("fieldManager");
        if (given != null && !given.isEmpty()) {
            return given;
        }
        String agent = exchange.header("user-agent");
        String program = agent == null ? "" : agent.split("[/ ]", 2)[0];
        return program.isEmpty() ? "unknown" : program;
    }

    /** The media types that the client accepts, in its order, without white space. */
    public List<String> accepted() {
        String header = exchange.header("accept");
        if (header == null || header.isBlank()) {
            return List.of("*/*");
        }
        return List.of(header.replaceAll("\\s", "").split(",", -1));
    }

    public String contentType() {
        String header = exchange.header("content-type");
        return header == null ? "" : header.split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
    }

    private byte[] bytes() {
        MemoryRegion body = exchange.body();
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    public String body() {
        return new String(bytes(), StandardCharsets.UTF_8);
    }

    public boolean hasBody() {
        return exchange.body().size() > 0;
    }

    /** The body as a JSON tree. */
    public JsonNode json() {
        if (contentType().equals(KubernetesProtobuf.TYPE)) {
            return KubernetesProtobuf.read(bytes());
        }
        try {
            return ApiResponse.JSON.readTree(body());
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("the body is not JSON: " + e.getOriginalMessage());
        }
    }

    /** The body as one resource, in JSON or YAML. */
    public ObjectNode resource() {
        String type = contentType();
        if (type.equals(KubernetesProtobuf.TYPE)) {
            return KubernetesProtobuf.read(bytes());
        }
        if (!type.isEmpty()
                && !type.equals("application/json")
                && !type.contains("yaml")
                && !type.equals("application/x-www-form-urlencoded")) {
            throw ErrorResponseException.unsupportedMediaType(type, "application/json, application/yaml");
        }
        List<ObjectNode> all = ManifestReader.parse(body(), "the body");
        if (all.size() != 1) {
            throw ServingException.invalidArgument("the body has " + all.size() + " resources, where one is expected");
        }
        return all.get(0);
    }

    /** The error for a path without a resource. */
    public static ServingException notFound() {
        return ServingException.of(ErrorCode.NOT_FOUND, "the server could not find the requested resource");
    }
}
