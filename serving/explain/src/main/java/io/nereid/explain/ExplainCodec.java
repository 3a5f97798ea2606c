// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.explain.request.ExplainOptions;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.explain.request.FeatureColumns;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.DataType;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The explain endpoints for models that take rows of numbers: {@code POST /v1/models/NAME:explain},
 * {@code /v1/models/NAME/versions/N:explain}, {@code /v2/models/NAME/explain} and
 * {@code /v2/models/NAME/versions/N/explain}. A request has {@code instances}, or V2's {@code inputs}, and
 * {@code parameters}; the response has {@code explanations}, one for each instance. Methods: SHAP values (the model's
 * own where it has a signature {@code shap}, otherwise Kernel SHAP), LIME, permutation importance and counterfactuals.
 * All of them use predictions of the engine, a few requests at a time, within limits. Thread-safe: its only state is a
 * counter.
 *
 * <pre>{@code
 * ProtocolCodec codec = new ExplainCodec(engine, pool, clock, ExplainSettings.of("lime", Map.of(), List.of()));
 * }</pre>
 */
public final class ExplainCodec implements ProtocolCodec {
    /** Finds the engine for the models of a request. Implementations are thread-safe and return at once. */
    @FunctionalInterface
    public interface EngineFinder {
        /**
         * Passes the exchange, or a replacement of it, on with the engine, now or later; or replies itself.
         *
         * @param x a request for an explanation
         * @param then receives the exchange to reply to and the engine, on any thread
         */
        void find(HttpExchange x, BiConsumer<HttpExchange, InferenceEngine> then);
    }

    private final EngineFinder engines;
    private final Executor pool;
    private final Clock clock;
    private final ExplainSettings settings;
    private final AtomicInteger running = new AtomicInteger();

    /**
     * Creates the endpoints for one engine.
     *
     * @param engine the explained models, under the names that clients use
     * @param pool runs the computations; its tasks never block
     * @param clock for time limits
     * @param settings defaults and limits
     */
    public ExplainCodec(InferenceEngine engine, Executor pool, Clock clock, ExplainSettings settings) {
        this((x, then) -> then.accept(x, engine), pool, clock, settings);
    }

    /** Creates the endpoints with an engine that is found for each request. */
    public ExplainCodec(EngineFinder engines, Executor pool, Clock clock, ExplainSettings settings) {
        this.engines = engines;
        this.pool = pool;
        this.clock = clock;
        this.settings = settings;
    }

    @Override
    public String name() {
        return "explain";
    }

    @Override
    public @Nullable URL openApi() {
        return ExplainCodec.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.post("/v1/models/{model}:explain", Operation.INFERENCE, x -> accept(x, false)),
                HttpRoute.post(
                        "/v1/models/{model}/versions/{version}:explain", Operation.INFERENCE, x -> accept(x, true)),
                HttpRoute.post("/v2/models/{model}/explain", Operation.INFERENCE, x -> accept(x, false)),
                HttpRoute.post(
                        "/v2/models/{model}/versions/{version}/explain", Operation.INFERENCE, x -> accept(x, true)));
    }

    /** Whether predictions of a model can be explained: it takes rows of numbers, and has an output of numbers. */
    public static boolean explains(ModelMetadata model) {
        try {
            FeatureColumns unused = FeatureColumns.of(model, 1);
            return model.outputs().stream().anyMatch(output -> output.dataType() != DataType.BYTES);
        } catch (ServingException e) {
            return false;
        }
    }

    private void accept(HttpExchange exchange, boolean versioned) {
        engines.find(exchange, (x, engine) -> accept(x, engine.onBehalfOf(x.caller()), versioned));
    }

    private void accept(HttpExchange x, InferenceEngine engine, boolean versioned) {
        if (running.incrementAndGet() > settings.maxConcurrency()) {
            running.decrementAndGet();
            x.fail(ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    settings.maxConcurrency() + " explanations are under way, as many as may be at once",
                    "try again later, or raise the limit max_concurrency"));
            return;
        }
        try {
            pool.execute(() -> start(x, engine, versioned));
        } catch (RejectedExecutionException e) {
            running.decrementAndGet();
            x.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down"));
        }
    }

    private void start(HttpExchange x, InferenceEngine engine, boolean versioned) {
        try {
            ModelRef model = model(x, versioned);
            if (x.header("inference-header-content-length") != null) {
                throw ServingException.invalidArgument(
                        "explanations do not take binary tensors", "send the inputs' data as JSON");
            }
            byte[] body = new byte[x.body().size()];
            x.body().getBytes(0, body, 0, body.length);
            var unused = new ExplainHandler(engine, pool, clock, settings)
                    .explain(model, body, x::onCancel)
                    .whenComplete((result, error) -> end(x, result, error));
        } catch (RuntimeException | OutOfMemoryError e) {
            end(x, null, e);
        }
    }

    private static ModelRef model(HttpExchange x, boolean versioned) {
        String name = x.pathParameter(0);
        if (!versioned) {
            return ModelRef.latest(name);
        }
        String version = x.pathParameter(1);
        try {
            return ModelRef.exact(name, Long.parseLong(version));
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(
                    "version '" + ExplainOptions.shortened(version) + "' of model '" + name + "' is not a whole number",
                    "name a version such as 1");
        }
    }

    private void end(
            HttpExchange x,
            @org.jspecify.annotations.Nullable Object result,
            @org.jspecify.annotations.Nullable Throwable error) {
        running.decrementAndGet();
        HttpReply reply;
        try {
            if (error != null) {
                reply = HttpReply.error(ExplainHandler.fault(error));
            } else {
                JsonWriter writer = new JsonWriter(1024);
                JsonValues.write(writer, result, JsonValues.NonFinite.NULL);
                reply = HttpReply.json(200, writer.array(), writer.length());
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            reply = HttpReply.error(ServingException.from(e));
        }
        x.reply(reply);
    }
}
