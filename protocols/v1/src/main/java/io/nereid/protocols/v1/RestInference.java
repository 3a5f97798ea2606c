// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v1.TfsMetrics.Api;
import io.nereid.protocols.v1.TfsMetrics.Entrypoint;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelMetadata.Signature;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ExampleList;
import io.nereid.tfdata.ExampleTensors;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * {@code :predict}, {@code :classify} and {@code :regress}: from the body over the engine to the answer. Small requests
 * stay on the event loop. Thread-safe: what it reuses belongs to one thread each.
 */
final class RestInference {
    /** What there is. */
    static final List<Api> APIS = List.of(Api.PREDICT, Api.CLASSIFY, Api.REGRESS);

    /** Larger bodies are decoded, and their answers encoded, off the event loop. */
    private static final int SMALL = 64 << 10;

    private final InferenceEngine engine;
    private final RestModels models;
    private final Executor codecPool;
    private final TfsMetrics metrics;
    private final V1Options options;
    private final Clock clock;
    private final long timeoutNanos;
    private final BiConsumer<HttpExchange, HttpReply> reply;
    private final ThreadLocal<Formats> formats;

    RestInference(
            InferenceEngine engine,
            RestModels models,
            Executor codecPool,
            V1Options options,
            TfsMetrics metrics,
            BiConsumer<HttpExchange, HttpReply> reply) {
        this.engine = engine;
        this.models = models;
        this.codecPool = codecPool;
        this.metrics = metrics;
        this.options = options;
        this.clock = options.clock();
        this.timeoutNanos = options.timeoutNanos();
        this.reply = reply;
        this.formats = ThreadLocal.withInitial(() -> new Formats(options));
    }

    /** How an API is spelled in a path. */
    static String verb(Api api) {
        return switch (api) {
            case PREDICT -> "predict";
            case CLASSIFY -> "classify";
            case REGRESS, MULTI_INFERENCE -> "regress";
        };
    }

    /** The API that is spelled so. */
    static Api api(String verb) {
        return switch (verb) {
            case "classify" -> Api.CLASSIFY;
            case "regress" -> Api.REGRESS;
            default -> Api.PREDICT;
        };
    }

    /** Answers one exchange, now or later. */
    void start(HttpExchange x, ModelRef model, Api api) {
        if (x.body().size() <= SMALL) {
            decode(x, model, api);
            return;
        }
        codecPool.execute(() -> {
            try {
                decode(x, model, api);
            } catch (RuntimeException e) {
                reply.accept(x, HttpReply.error(ServingException.from(e)));
            }
        });
    }

    private void decode(HttpExchange x, ModelRef model, Api api) {
        InferenceRequest request;
        Answer answer;
        try {
            ModelMetadata metadata = models.metadata(model);
            Formats f = formats.get();
            CloudEvent event = null;
            try {
                event = CloudEvent.of(x);
                if (event == null) {
                    f.body.open(x.body());
                    if (f.body.asksNothing()) {
                        event = CloudEvent.inBody(x);
                    }
                }
                if (event != null) {
                    event.open(f.body, x);
                }
                String name = f.body.signature();
                Signature signature = models.signature(metadata, name, api);
                List<Tensor> inputs;
                long count = 0;
                if (api == Api.PREDICT) {
                    inputs =
                            f.predict.decode(signature, metadata.properties().getOrDefault(ExampleTensors.COLUMNS, ""));
                } else {
                    ExampleList examples = f.examples.decode();
                    count = examples.size();
                    inputs = ExampleTensors.of(signature, examples, metadata.properties());
                }
                answer = new Answer(x, model, api, metadata, f.predict.rows(), count, asked(), event);
                request = new InferenceRequest(
                        model,
                        "",
                        inputs,
                        List.of(),
                        Map.of(),
                        timeoutNanos == 0 ? Long.MAX_VALUE : x.arrivedNanos() + timeoutNanos,
                        x.arrivedNanos(),
                        RestModels.options(name));
            } catch (ServingException e) {
                throw event == null ? e : event.explained(e);
            } finally {
                f.body.close();
            }
        } catch (ServingException e) {
            metrics.refused(model.model(), e.code());
            throw e;
        }
        metrics.started(model.model());
        InferenceEngine.Call call = engine.infer(request, answer);
        if (!answer.ended) {
            x.onCancel(call::cancel);
        }
    }

    private long asked() {
        return metrics.measuring() ? clock.nanos() : 0;
    }

    /** What one thread reuses. */
    private static final class Formats {
        private final RestBody body;
        private final PredictFormat predict;
        private final ExamplesFormat examples;

        Formats(V1Options options) {
            body = new RestBody(options.trailingText());
            predict = new PredictFormat(body, options.floatStyle());
            examples = new ExamplesFormat(body, options.floatStyle());
        }
    }

    /** Encodes the answer to one exchange: the first one that holds something, if a model gives several. */
    private final class Answer implements ResponseSink {
        private final HttpExchange exchange;
        private final ModelRef model;
        private final Api api;
        private final ModelMetadata metadata;
        private final boolean rows;
        private final long examples;
        private final long askedNanos;
        private final @Nullable CloudEvent event;
        private volatile boolean ended;

        Answer(
                HttpExchange exchange,
                ModelRef model,
                Api api,
                ModelMetadata metadata,
                boolean rows,
                long examples,
                long askedNanos,
                @Nullable CloudEvent event) {
            this.exchange = exchange;
            this.model = model;
            this.api = api;
            this.metadata = metadata;
            this.rows = rows;
            this.examples = examples;
            this.askedNanos = askedNanos;
            this.event = event;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (ended || response.outputs().isEmpty() && !last) {
                response.close();
                return;
            }
            ended = true;
            if (metrics.measuring()) {
                metrics.ran(model.model(), api, metadata.platform(), clock.nanos() - askedNanos);
            }
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
            HttpReply encoded;
            ErrorCode code = ErrorCode.OK;
            try (response) {
                Formats f = formats.get();
                encoded = api == Api.PREDICT
                        ? f.predict.encode(response.outputs(), rows, response.parameters())
                        : f.examples.encode(api, response.outputs(), examples);
                if (event != null) {
                    encoded = event.answer(encoded, model.model(), options);
                }
            } catch (RuntimeException e) {
                ServingException failure = ServingException.from(e);
                code = failure.code();
                encoded = HttpReply.error(failure);
            }
            count(code);
            reply.accept(exchange, encoded);
        }

        @Override
        public void fail(ServingException e) {
            if (ended) {
                return;
            }
            ended = true;
            count(e.code());
            reply.accept(exchange, HttpReply.error(e));
        }

        private void count(ErrorCode code) {
            if (metrics.measuring()) {
                metrics.finished(model.model(), api, Entrypoint.REST, code, clock.nanos() - exchange.arrivedNanos());
                if (api != Api.PREDICT && code == ErrorCode.OK) {
                    metrics.examples(model.model(), examples);
                }
            }
        }
    }
}
