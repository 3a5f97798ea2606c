// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelControl;
import io.nereid.spi.ModelControl.ModelStatus;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;

/**
 * The V1 protocol over REST: list, status and {@code :predict} in row ({@code instances}) and column ({@code inputs})
 * format. Where KServe and TensorFlow Serving share a path, one answer carries both key sets. Thread-safe.
 */
public final class V1Codec implements ProtocolCodec {
    /** Larger bodies are decoded, and their answers encoded, off the event loop. */
    private static final int SMALL = 64 << 10;

    private final InferenceEngine engine;
    private final ModelControl control;
    private final Executor codecPool;
    private final V1Options options;
    private final TfsMetrics metrics;
    private final ThreadLocal<PredictFormat> formats = ThreadLocal.withInitial(PredictFormat::new);

    /** A codec around the engine's two doors; {@code codecPool} runs what would hold an event loop up. */
    public V1Codec(InferenceEngine engine, ModelControl control, Executor codecPool, V1Options options) {
        this.engine = engine;
        this.control = control;
        this.codecPool = codecPool;
        this.options = options;
        this.metrics = new TfsMetrics(options);
    }

    @Override
    public String name() {
        return "v1";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        String page = options.metricsPath();
        List<HttpRoute> routes = new ArrayList<>(routes());
        if (page != null) {
            routes.add(HttpRoute.get(
                    page, x -> x.reply(HttpReply.text(200, "text/plain; charset=utf-8", metrics.page()))));
        }
        return routes;
    }

    private List<HttpRoute> routes() {
        return List.of(
                HttpRoute.get("/v1/models", this::list),
                HttpRoute.get("/v1/models/{model}", x -> status(x, ModelRef.ANY)),
                HttpRoute.get("/v1/models/{model}/versions/{version}", x -> status(x, version(x))),
                HttpRoute.post("/v1/models/{model}:predict", x -> predict(x, ModelRef.latest(x.pathParameter(0)))),
                HttpRoute.post(
                        "/v1/models/{model}/versions/{version}:predict",
                        x -> predict(x, ModelRef.exact(x.pathParameter(0), version(x)))),
                HttpRoute.post(
                        "/v1/models/{model}/labels/{label}:predict",
                        x -> predict(x, new ModelRef(x.pathParameter(0), ModelRef.ANY, x.pathParameter(1)))));
    }

    private static long version(HttpExchange x) {
        String text = x.pathParameter(1);
        try {
            long version = Long.parseLong(text);
            if (version >= 0) {
                return version;
            }
        } catch (NumberFormatException e) {
            // Told below.
        }
        throw ServingException.invalidArgument(
                "Failed to convert version: " + text + " to numeric. (expected a whole number >= 0)");
    }

    private void list(HttpExchange x) {
        StringBuilder body = new StringBuilder("{\"models\":[");
        for (ModelStatus model : control.index()) {
            body.append(body.charAt(body.length() - 1) == '[' ? "" : ",").append(HttpReply.quote(model.model()));
        }
        x.reply(HttpReply.json(200, body.append("]}").toString()));
    }

    private void status(HttpExchange x, long version) {
        String name = x.pathParameter(0);
        ModelStatus status = find(name);
        StatusJson json = new StatusJson(status, version);
        boolean ready = control.ready(version == ModelRef.ANY ? ModelRef.latest(name) : ModelRef.exact(name, version));
        x.reply(HttpReply.json(ready ? 200 : 503, json.write(ready)));
    }

    private ModelStatus find(String name) {
        for (ModelStatus status : control.index()) {
            if (status.model().equals(name)) {
                return status;
            }
        }
        throw ServingException.of(Code.NOT_FOUND, "Model with name " + name + " does not exist.");
    }

    private void predict(HttpExchange x, ModelRef model) {
        if (x.body().size() <= SMALL) {
            decode(x, model);
            return;
        }
        codecPool.execute(() -> {
            try {
                decode(x, model);
            } catch (RuntimeException e) {
                x.fail(ServingException.from(e));
            }
        });
    }

    private void decode(HttpExchange x, ModelRef model) {
        ModelMetadata metadata = metadata(model);
        PredictFormat format = formats.get();
        List<Tensor> inputs = format.decode(x.body(), metadata);
        boolean rows = format.rows();
        InferenceRequest request =
                new InferenceRequest(model, "", inputs, List.of(), Map.of(), Long.MAX_VALUE, x.arrivedNanos());
        Answer answer = new Answer(x, rows);
        InferenceEngine.Call call = engine.infer(request, answer);
        if (!answer.ended) {
            x.onCancel(call::cancel);
        }
    }

    private ModelMetadata metadata(ModelRef model) {
        try {
            return engine.metadata(model);
        } catch (ServingException e) {
            find(model.model());
            if (model.version() == ModelRef.ANY && model.label() == null && e.code() == Code.NOT_FOUND) {
                throw ServingException.of(
                        Code.UNAVAILABLE,
                        "Model with name " + model.model() + " is not ready. " + e.getMessage(),
                        e.remedy());
            }
            throw e;
        }
    }

    /** Encodes the answer to one exchange. */
    private final class Answer implements ResponseSink {
        private final HttpExchange exchange;
        private final boolean rows;
        private volatile boolean ended;

        Answer(HttpExchange exchange, boolean rows) {
            this.exchange = exchange;
            this.rows = rows;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            ended = true;
            long bytes = 0;
            for (Tensor t : response.outputs()) {
                bytes += t.byteLength();
            }
            if (bytes > SMALL && exchange.inEventLoop()) {
                codecPool.execute(() -> encode(response));
            } else {
                encode(response);
            }
        }

        private void encode(InferenceResponse response) {
            HttpReply reply;
            try (response) {
                reply = formats.get().encode(response.outputs(), rows);
            } catch (RuntimeException e) {
                reply = HttpReply.error(ServingException.from(e));
            }
            exchange.reply(reply);
        }

        @Override
        public void fail(ServingException e) {
            ended = true;
            exchange.fail(e);
        }
    }
}
