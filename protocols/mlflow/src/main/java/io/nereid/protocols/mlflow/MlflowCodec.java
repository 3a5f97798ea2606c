// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The REST API of MLflow's scoring server, for models of every format: {@code POST /invocations}, {@code GET /ping},
 * {@code /health} and {@code /version}. MLflow's server has one model. Here a request refers to the only available
 * model, or names one: {@code /invocations?model=NAME}, optionally with {@code &version=N}, {@code
 * /models/NAME/invocations} or {@code /models/NAME/versions/N/invocations}. Thread-safe.
 *
 * <pre>{@code
 * ProtocolCodec codec = new MlflowCodec(engine, control, codecPool, serverVersion);
 * }</pre>
 */
public final class MlflowCodec implements ProtocolCodec {
    private final ModelControl control;
    private final ScoringHandler scoring;
    private final String version;

    /**
     * Creates a codec for an engine.
     *
     * @param codecPool runs work that would block an event loop for too long
     * @param version the version that {@code /version} reports
     */
    public MlflowCodec(InferenceEngine engine, ModelControl control, Executor codecPool, String version) {
        this.control = control;
        this.scoring = new ScoringHandler(engine, codecPool);
        this.version = version;
    }

    @Override
    public String name() {
        return "mlflow";
    }

    @Override
    public @Nullable URL openApi() {
        return MlflowCodec.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.post("/invocations", Operation.INFERENCE, scoring(this::requested)),
                HttpRoute.post(
                        "/models/{model}/invocations",
                        Operation.INFERENCE,
                        scoring(x -> ModelRef.latest(x.pathParameter(0)))),
                HttpRoute.post(
                        "/models/{model}/versions/{version}/invocations",
                        Operation.INFERENCE,
                        scoring(x -> exact(x.pathParameter(0), x.pathParameter(1)))),
                HttpRoute.get("/ping", Operation.HEALTH, this::health),
                HttpRoute.get("/health", Operation.HEALTH, this::health),
                HttpRoute.get(
                        "/version",
                        Operation.METADATA,
                        x -> x.reply(HttpReply.text(200, "text/plain; charset=utf-8", version))));
    }

    /** A handler that finds the model of a request and scores; failures are reported in MLflow's form. */
    private HttpHandler scoring(Function<HttpExchange, ModelRef> resolver) {
        return new HttpHandler() {
            @Override
            public void handle(HttpExchange x) {
                try {
                    scoring.start(x, resolver.apply(x));
                } catch (ServingException e) {
                    x.reply(ScoringHandler.error(e));
                }
            }

            @Override
            public HttpReply denied(ServingException e) {
                return ScoringHandler.error(e);
            }
        };
    }

    /** The model of the query parameters, or the only available one. */
    private ModelRef requested(HttpExchange x) {
        String model = x.queryParameter("model");
        String number = x.queryParameter("version");
        if (model == null || model.isEmpty()) {
            return exact(only(), number);
        }
        return exact(model, number);
    }

    private static ModelRef exact(String model, @Nullable String number) {
        if (number == null || number.isEmpty()) {
            return ModelRef.latest(model);
        }
        try {
            return ModelRef.exact(model, Long.parseLong(number));
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(
                    "version '" + number + "' of model '" + model + "' is not an integer", "use a version such as 1");
        }
    }

    /** The name of the only available model. */
    private String only() {
        List<String> names = new ArrayList<>();
        for (ModelStatus status : control.index()) {
            if (status.versions().stream().anyMatch(v -> v.phase() == Phase.AVAILABLE)) {
                names.add(status.model());
            }
        }
        if (names.size() == 1) {
            return names.get(0);
        }
        if (names.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "no model is available", "see /v2/health/ready and the server's log");
        }
        List<String> shown = names.size() > 8 ? names.subList(0, 8) : names;
        throw ServingException.invalidArgument(
                "there are " + names.size() + " models (expected: one, or the name of one in the request)",
                "post to /invocations?model=NAME or /models/NAME/invocations with one of " + String.join(", ", shown)
                        + (names.size() > 8 ? ", …" : ""));
    }

    private void health(HttpExchange x) {
        x.reply(HttpReply.json(control.ready() ? 200 : 404, "\n"));
    }
}
