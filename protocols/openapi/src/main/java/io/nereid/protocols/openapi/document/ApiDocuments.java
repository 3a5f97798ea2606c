// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.document;

import static io.nereid.protocols.openapi.schema.OpenApiNodes.member;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.object;

import io.nereid.protocols.openapi.options.OpenApiOptions;
import io.nereid.protocols.openapi.schema.ModelView;
import io.nereid.protocols.openapi.schema.OpenApiNodes;
import io.nereid.protocols.openapi.schema.V1Schemas;
import io.nereid.protocols.openapi.schema.V2Schemas;
import io.nereid.spi.Signature;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The documents of a server: of all its routes, and of the routes of one model. The descriptions of the routes are read
 * at the first use. Thread-safe.
 */
public final class ApiDocuments {
    private static final String DESCRIPTION =
            "Errors have a body in the form of their protocol. x-nereid-permission is the permission that a caller needs.";

    private final List<ProtocolCodec> codecs;
    private final OpenApiOptions options;
    private volatile @Nullable List<Described> described;

    /** The routes of a protocol with their descriptions. Immutable. */
    private record Described(RouteDescriptions descriptions, List<HttpRoute> routes) {}

    /** @param codecs all protocols of the server */
    public ApiDocuments(List<ProtocolCodec> codecs, OpenApiOptions options) {
        this.codecs = List.copyOf(codecs);
        this.options = options;
    }

    private List<Described> described() {
        List<Described> read = described;
        if (read == null) {
            read = codecs.stream()
                    .map(codec -> new Described(new RouteDescriptions(codec), List.copyOf(codec.httpRoutes())))
                    .toList();
            described = read;
        }
        return read;
    }

    private DocumentComposer composer() {
        DocumentComposer composer = new DocumentComposer(options.access());
        described().forEach(one -> composer.components(one.descriptions()));
        return composer;
    }

    /** The text of the document of all routes. */
    public String server() {
        DocumentComposer composer = composer();
        for (Described one : described()) {
            for (HttpRoute route : one.routes()) {
                if (route.template().endsWith("/{rest...}")) {
                    composer.prefix(route, one.descriptions());
                } else {
                    composer.route(
                            route,
                            route.template(),
                            one.descriptions(),
                            one.descriptions().operation(route));
                }
            }
        }
        return OpenApiNodes.text(composer.document("Nereid", options.version(), DESCRIPTION, "."));
    }

    /**
     * The text of the document of one model.
     *
     * @param protocol the prefix of its routes, {@code /v1} or {@code /v2}
     * @param name the name of the model
     * @param version the version in the paths; null for paths without one
     */
    public String model(String protocol, String name, @Nullable String version, ModelView model) {
        DocumentComposer composer = composer();
        String prefix = protocol + "/models/{model}" + (version == null ? "" : "/versions/{version}");
        String path = protocol + "/models/" + encoded(name) + (version == null ? "" : "/versions/" + encoded(version));
        for (Described one : described()) {
            for (HttpRoute route : one.routes()) {
                String rest =
                        route.template().startsWith(prefix) ? route.template().substring(prefix.length()) : "/{";
                if (rest.indexOf('{') < 0 && serves(rest, model)) {
                    Map<String, @Nullable Object> operation = one.descriptions().operation(route);
                    if (operation != null) {
                        describe(protocol, rest, operation, model, composer.kind("schemas"));
                    }
                    composer.route(route, path + rest, one.descriptions(), operation);
                }
            }
        }
        String title = name + (protocol.equals("/v2") ? " (Open Inference)" : " (TensorFlow Serving, KServe V1)");
        long number = model.metadata().id().version();
        String description = "Model " + name + (number > 0 ? ", version " + number : "") + ". " + DESCRIPTION;
        String server = version == null ? "../../.." : "../../../../..";
        return OpenApiNodes.text(
                composer.document(title, number > 0 ? Long.toString(number) : options.version(), description, server));
    }

    private static String encoded(String segment) {
        return URLEncoder.encode(segment, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Whether a route works for a model: explanations, classification and regression are not for every one. */
    private static boolean serves(String rest, ModelView model) {
        return switch (rest) {
            case ":explain", "/explain" -> model.explainable();
            case ":classify" -> model.hasMethod(Signature.CLASSIFY);
            case ":regress" -> model.hasMethod(Signature.REGRESS);
            default -> true;
        };
    }

    private static void describe(
            String protocol,
            String rest,
            Map<String, @Nullable Object> operation,
            ModelView model,
            Map<String, @Nullable Object> schemas) {
        V2Schemas v2 = new V2Schemas(model, schemas);
        V1Schemas v1 = new V1Schemas(model, schemas);
        switch (rest) {
            case "/infer" -> {
                request(operation, v2.inferRequest(), v2.inferExample());
                response(operation, v2.inferResponse());
            }
            case "/generate" -> {
                request(operation, v2.generateRequest(), v2.generateExample(false));
                response(operation, v2.generateResponse());
            }
            case "/generate_stream" -> request(operation, v2.generateRequest(), v2.generateExample(true));
            case ":predict" -> {
                request(operation, v1.predictRequest(), v1.predictExample());
                response(operation, v1.predictResponse());
            }
            case ":explain", "/explain" -> request(operation, null, v1.explainExample());
            default -> {}
        }
        if (model.decoupled() && (rest.equals("/infer") || rest.equals(":predict"))) {
            operation.put(
                    "description",
                    "The model sends any number of responses: use " + protocol.replace("1", "2")
                            + "'s generate_stream, or ModelStreamInfer of gRPC.");
        }
    }

    /** Sets schema and example of the body in JSON; null for the schema of all models, or for no example. */
    private static void request(
            Map<String, @Nullable Object> operation, @Nullable Object schema, @Nullable Object example) {
        Map<String, @Nullable Object> body = member(operation, "requestBody");
        Map<String, @Nullable Object> content = member(body, "content");
        Map<String, @Nullable Object> json = member(content, "application/json");
        if (schema != null) {
            json.put("schema", schema);
        }
        if (example != null) {
            json.put("example", example);
        }
        content.put("application/json", json);
        body.put("content", content);
        operation.put("requestBody", body);
    }

    private static void response(Map<String, @Nullable Object> operation, Object schema) {
        Map<String, @Nullable Object> responses = member(operation, "responses");
        Map<String, @Nullable Object> ok = member(responses, "200");
        Map<String, @Nullable Object> content = member(ok, "content");
        content.put("application/json", object("schema", schema));
        ok.put("content", content);
        responses.put("200", ok);
        operation.put("responses", responses);
    }
}
