// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi;

import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.protocols.openapi.document.ApiDocuments;
import io.nereid.protocols.openapi.options.OpenApiOptions;
import io.nereid.protocols.openapi.schema.ModelView;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.PageRenderer;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * OpenAPI 3.0 documents: {@code GET /openapi.json} describes the HTTP routes that the server has, and
 * {@code /v2/models/NAME/openapi.json} and {@code /v1/models/NAME/openapi.json}, also below {@code /versions/N}, those of
 * one model, with schemas of its inputs and outputs and a request that works when it is sent. The documents follow from
 * the routes of the other protocols; requests to these do not notice this one. A document is made when it is asked for, on
 * the executor, so that what it has of access and models is never old. Thread-safe.
 *
 * <pre>{@code
 * List<ProtocolCodec> codecs = OpenApiCodec.added(
 *         List.of(new V2Codec(…), new V1Codec(…)), engine, codecPool, OpenApiOptions.of(version));
 * }</pre>
 */
public final class OpenApiCodec implements ProtocolCodec {
    private final InferenceEngine engine;
    private final OpenApiOptions options;
    private final ApiDocuments documents;
    private final PageRenderer<Subject> pages;

    /**
     * What a document is about.
     *
     * @param protocol the prefix of the paths; empty for all routes
     * @param name the model; empty for all routes
     * @param version the version as the path has it; null without one
     */
    private record Subject(
            String protocol, String name, @Nullable String version) {
        static final Subject SERVER = new Subject("", "", null);
    }

    private OpenApiCodec(
            List<ProtocolCodec> others, InferenceEngine engine, Executor executor, OpenApiOptions options) {
        List<ProtocolCodec> all = new ArrayList<>(others);
        all.add(this);
        this.engine = engine;
        this.options = options;
        this.documents = new ApiDocuments(all, options);
        this.pages = new PageRenderer<>(executor, this::page);
    }

    /**
     * Adds the documents to the protocols of a server.
     *
     * @param codecs all others
     * @param engine knows the models
     * @param executor makes the documents; owned by the caller
     * @return the protocols, with this one at the end
     */
    public static List<ProtocolCodec> added(
            List<ProtocolCodec> codecs, InferenceEngine engine, Executor executor, OpenApiOptions options) {
        List<ProtocolCodec> all = new ArrayList<>(codecs);
        all.add(new OpenApiCodec(codecs, engine, executor, options));
        return List.copyOf(all);
    }

    @Override
    public String name() {
        return "openapi";
    }

    @Override
    public @Nullable URL openApi() {
        return OpenApiCodec.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        List<HttpRoute> routes = new ArrayList<>();
        routes.add(HttpRoute.get("/openapi.json", Operation.METADATA, x -> reply(x, Subject.SERVER)));
        for (String protocol : List.of("/v2", "/v1")) {
            routes.add(HttpRoute.get(
                    protocol + "/models/{model}/openapi.json",
                    Operation.METADATA,
                    x -> reply(x, new Subject(protocol, x.pathParameter(0), null))));
            routes.add(HttpRoute.get(
                    protocol + "/models/{model}/versions/{version}/openapi.json",
                    Operation.METADATA,
                    x -> reply(x, new Subject(protocol, x.pathParameter(0), x.pathParameter(1)))));
        }
        return routes;
    }

    private void reply(HttpExchange x, Subject subject) {
        pages.reply(x, subject, text -> HttpReply.text(200, HttpReply.JSON, text));
    }

    private String page(Subject subject) {
        if (subject.equals(Subject.SERVER)) {
            return documents.server();
        }
        ModelRef ref = reference(subject);
        ModelMetadata metadata = engine.metadata(ref);
        ModelView model =
                ModelView.of(metadata, engine.config(ref), options.explainable().test(metadata));
        return documents.model(subject.protocol(), subject.name(), subject.version(), model);
    }

    /** The model of a path: of Open Inference a version may be a label. */
    private static ModelRef reference(Subject subject) {
        String version = subject.version();
        if (version == null) {
            return ModelRef.latest(subject.name());
        }
        if (version.matches("[0-9]{1,18}")) {
            return ModelRef.exact(subject.name(), Long.parseLong(version));
        }
        if (subject.protocol().equals("/v2") && version.matches("[\\p{L}_].*")) {
            return new ModelRef(subject.name(), ModelRef.ANY, version);
        }
        throw ServingException.invalidArgument(
                "version '" + version + "' of model '" + subject.name() + "' is not a whole number",
                "name a version such as 1");
    }
}
