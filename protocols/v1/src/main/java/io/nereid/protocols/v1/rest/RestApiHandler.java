// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.protocols.v1.common.ModelLookup;
import io.nereid.protocols.v1.common.TfServingMetrics;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.protocols.v1.openai.OpenAiModels;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.PageRenderer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Function;

/**
 * The REST API: its routes, and the handlers of model list, status and metadata. Where KServe and TensorFlow Serving
 * share a path, the response has the keys of both. Thread-safe: immutable.
 */
public final class RestApiHandler {
    private static final String[] CORS = {
        "access-control-allow-origin", "*",
        "access-control-allow-methods", "POST, GET",
        "access-control-allow-headers", "Content-Type"
    };

    private final ModelControl control;
    private final V1Options options;
    private final PageRenderer<MetricsFormat> pages;
    private final ModelLookup models;
    private final RestPredictionHandler inference;
    private final OpenAiModels openAi;

    public RestApiHandler(
            InferenceEngine engine,
            ModelControl control,
            Executor codecPool,
            V1Options options,
            TfServingMetrics metrics,
            OpenAiModels openAi) {
        this.control = control;
        this.openAi = openAi;
        this.options = options;
        this.pages = new PageRenderer<>(codecPool, metrics::page);
        this.models = new ModelLookup(engine, control, options.methodCheck());
        this.inference = new RestPredictionHandler(engine, models, codecPool, options, metrics, this::reply);
    }

    public List<HttpRoute> routes() {
        List<HttpRoute> routes = new ArrayList<>();
        routes.add(HttpRoute.get("/v1/models", Operation.METADATA, guarded(this::list)));
        routes.add(new HttpRoute(HttpRoute.ANY, "/v1/models/{rest...}", Operation::ofPath, guarded(this::other)));
        addRoutes(routes, "/v1/models/{model}", x -> ModelRef.latest(x.pathParameter(0)));
        addRoutes(
                routes,
                "/v1/models/{model}/versions/{version}",
                x -> ModelRef.exact(x.pathParameter(0), RestPath.version(x, x.pathParameter(1))));
        addRoutes(
                routes,
                "/v1/models/{model}/labels/{label}",
                x -> new ModelRef(x.pathParameter(0), ModelRef.ANY, x.pathParameter(1)));
        String page = options.metricsPath();
        if (page != null) {
            routes.add(HttpRoute.get(page, Operation.METRICS, guarded(this::metrics)));
        }
        return routes;
    }

    /** Replies with the metrics; the content type of the text format is TensorFlow Serving's. */
    private void metrics(HttpExchange x) {
        MetricsFormat format = MetricsFormat.accepted(x.header("accept"));
        String type = format == MetricsFormat.TEXT ? "text/plain; charset=utf-8" : format.contentType();
        pages.reply(x, format, text -> answer(HttpReply.text(200, type, text)));
    }

    private void addRoutes(List<HttpRoute> routes, String path, Function<HttpExchange, ModelRef> model) {
        routes.add(HttpRoute.get(path, Operation.METADATA, guarded(x -> status(x, model.apply(x)))));
        routes.add(HttpRoute.get(path + "/metadata", Operation.METADATA, guarded(x -> metadata(x, model.apply(x)))));
        for (TfServingMetrics.Api api : RestPredictionHandler.APIS) {
            routes.add(HttpRoute.post(
                    path + ":" + RestPredictionHandler.verb(api),
                    Operation.INFERENCE,
                    guarded(x -> inference.start(x, model.apply(x), api))));
        }
    }

    private HttpHandler guarded(HttpHandler handler) {
        if (!options.cors()) {
            return handler;
        }
        // web pages can read an error only if it has these headers, which the transport's own error responses do not
        // have
        return x -> {
            try {
                handler.handle(x);
            } catch (ServingException e) {
                reply(x, HttpReply.error(e));
            }
        };
    }

    private void reply(HttpExchange x, HttpReply reply) {
        x.reply(answer(reply));
    }

    /** Adds the headers for web pages, if that is enabled. */
    private HttpReply answer(HttpReply reply) {
        return options.cors()
                ? new HttpReply(reply.status(), reply.contentType(), withCors(reply.headers()), reply.content())
                : reply;
    }

    private static String[] withCors(String[] headers) {
        if (headers.length == 0) {
            return CORS;
        }
        String[] all = Arrays.copyOf(CORS, CORS.length + headers.length);
        System.arraycopy(headers, 0, all, CORS.length, headers.length);
        return all;
    }

    /** Handles preflight requests, and paths that no route matches literally. */
    private void other(HttpExchange x) {
        if (options.cors() && x.method().equals("OPTIONS")) {
            String origin = x.header("origin");
            if (origin != null && (origin.startsWith("http://") || origin.startsWith("https://"))) {
                reply(x, HttpReply.text(200, "", ""));
                return;
            }
            throw RestPath.malformed(
                    x, "a preflight request has an Origin header that begins with http:// or https://");
        }
        RestPath path = RestPath.of(x);
        switch (path.verb()) {
            case "" -> {
                x.require(Permission.METADATA, path.model().model());
                status(x, path.model());
            }
            case "metadata" -> {
                x.require(Permission.METADATA, path.model().model());
                metadata(x, path.model());
            }
            default -> inference.start(x, path.model(), RestPredictionHandler.api(path.verb()));
        }
    }

    /** KServe's list, with the fields of OpenAI's: clients of either find their own, and pass over the others. */
    private void list(HttpExchange x) {
        StringBuilder body = new StringBuilder("{\"models\":[");
        for (ModelStatus model : control.index()) {
            if (!x.caller().may(Permission.METADATA, model.model())) {
                continue;
            }
            body.append(body.charAt(body.length() - 1) == '[' ? "" : ",").append(HttpReply.quote(model.model()));
        }
        openAi.list(x.caller(), body.append("],"));
        reply(x, HttpReply.json(200, body.append("}").toString()));
    }

    private void status(HttpExchange x, ModelRef ref) {
        StatusJson json = new StatusJson(models.known(ref.model()), ref);
        if (ref.label() != null || ref.version() != ModelRef.ANY) {
            reply(x, HttpReply.json(200, json.write()));
            return;
        }
        boolean ready = control.ready(ref);
        reply(x, HttpReply.json(ready ? 200 : 503, json.write(ready)));
    }

    private void metadata(HttpExchange x, ModelRef ref) {
        reply(x, HttpReply.json(200, MetadataJson.of(models.metadata(ref))));
    }
}
