// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTiming;
import io.nereid.protocols.v1.common.ModelLookup;
import io.nereid.protocols.v1.common.TfServingMetrics;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.protocols.v1.common.TfServingMetrics.Entrypoint;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.Signature;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ExampleList;
import io.nereid.tfdata.ExampleSignatures;
import io.nereid.tfdata.ExampleTensors;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Handles {@code :predict}, {@code :classify} and {@code :regress}: decodes the body, calls the engine, encodes the
 * response. Small requests stay on the event loop. Thread-safe: readers and writers are per thread.
 */
final class RestPredictionHandler {
    /** The APIs that REST offers. */
    static final List<Api> APIS = List.of(Api.PREDICT, Api.CLASSIFY, Api.REGRESS);

    /** Larger bodies are decoded, and larger responses encoded, on the codec pool. */
    private static final int SMALL = 64 << 10;

    private final InferenceEngine engine;
    private final ModelLookup models;
    private final Executor codecPool;
    private final TfServingMetrics metrics;
    private final V1Options options;
    private final Clock clock;
    private final long timeoutNanos;
    private final BiConsumer<HttpExchange, HttpReply> reply;
    private final ThreadLocal<Formats> formats;

    RestPredictionHandler(
            InferenceEngine engine,
            ModelLookup models,
            Executor codecPool,
            V1Options options,
            TfServingMetrics metrics,
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

    /** The verb of an API in a path. */
    static String verb(Api api) {
        return switch (api) {
            case PREDICT -> "predict";
            case CLASSIFY -> "classify";
            case REGRESS, MULTI_INFERENCE -> "regress";
        };
    }

    /** The API of a verb. */
    static Api api(String verb) {
        return switch (verb) {
            case "classify" -> Api.CLASSIFY;
            case "regress" -> Api.REGRESS;
            default -> Api.PREDICT;
        };
    }

    /** Handles an exchange; the response is sent now or later. */
    void start(HttpExchange x, ModelRef model, Api api) {
        if (x.body().size() <= SMALL) {
            decode(x, model, api);
            return;
        }
        codecPool.execute(() -> {
            try {
                decode(x, model, api);
            } catch (RuntimeException | OutOfMemoryError e) {
                reply.accept(x, HttpReply.error(ServingException.from(e)));
            }
        });
    }

    private void decode(HttpExchange x, ModelRef model, Api api) {
        InferenceRequest request;
        Answer answer;
        RequestTiming timing = timing(x);
        try {
            ModelMetadata metadata = models.metadata(model);
            Formats f = formats.get();
            CloudEvent event = null;
            try {
                event = CloudEvent.of(x);
                if (event == null) {
                    f.body.open(x.body());
                    if (f.body.hasNoInput()) {
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
                    inputs = f.predict.decode(signature, metadata.properties());
                } else {
                    ExampleList examples = f.examples.decode();
                    count = examples.size();
                    inputs = ExampleTensors.of(metadata, signature, examples);
                }
                answer = new Answer(x, model, api, metadata, f.predict.rows(), count, startedAt(), event, timing);
                request = new InferenceRequest(
                        model,
                        "",
                        inputs,
                        List.of(),
                        Map.of(),
                        timeoutNanos == 0 ? Long.MAX_VALUE : x.arrivedNanos() + timeoutNanos,
                        x.arrivedNanos(),
                        timing == null ? ModelLookup.options(name) : new Options(0, 0, null, timing, name),
                        x.caller());
            } catch (ServingException e) {
                throw event == null ? e : event.explained(e);
            } finally {
                f.body.close();
            }
        } catch (ServingException e) {
            metrics.rejected(model.model(), e.code());
            throw e;
        }
        metrics.started(model.model());
        InferenceCall call = engine.infer(request, answer);
        if (!answer.ended) {
            x.onCancel(call::cancel);
        }
    }

    /** What records the times of a request, if its client asks for them; else null. */
    private static @Nullable RequestTiming timing(HttpExchange x) {
        String asked = x.header(RequestTiming.HEADER);
        return asked != null && RequestTiming.asks(asked) ? RequestTiming.of(null, x.arrivedNanos()) : null;
    }

    private long startedAt() {
        return metrics.measuring() ? clock.nanos() : 0;
    }

    /** The readers and writers of one thread. */
    private static final class Formats {
        private final RestRequestBody body;
        private final PredictJson predict;
        private final ExamplesJson examples;

        Formats(V1Options options) {
            body = new RestRequestBody(options.trailingText());
            predict = new PredictJson(body, options.floatStyle());
            examples = new ExamplesJson(body, options.floatStyle());
        }
    }

    /** Encodes the response to an exchange; of several responses of a model, the first one that has outputs. */
    private final class Answer implements ResponseSink {
        private final HttpExchange exchange;
        private final ModelRef model;
        private final Api api;
        private final ModelMetadata metadata;
        private final boolean rows;
        private final long examples;
        private final long startedNanos;
        private final @Nullable CloudEvent event;
        private final @Nullable RequestTiming timing;
        private volatile boolean ended;

        Answer(
                HttpExchange exchange,
                ModelRef model,
                Api api,
                ModelMetadata metadata,
                boolean rows,
                long examples,
                long startedNanos,
                @Nullable CloudEvent event,
                @Nullable RequestTiming timing) {
            this.exchange = exchange;
            this.model = model;
            this.api = api;
            this.metadata = metadata;
            this.rows = rows;
            this.examples = examples;
            this.startedNanos = startedNanos;
            this.event = event;
            this.timing = timing;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (ended || response.outputs().isEmpty() && !last) {
                response.close();
                return;
            }
            ended = true;
            if (metrics.measuring()) {
                metrics.ran(model.model(), api, metadata.platform(), clock.nanos() - startedNanos);
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
                        ? f.predict.encode(response.outputs(), rows, response.parameters(), metadata.properties())
                        : f.examples.encode(
                                api, response.outputs(), examples, ExampleSignatures.ofSavedModel(metadata));
                if (event != null) {
                    encoded = event.answer(encoded, model.model(), options);
                }
                if (timing != null) {
                    encoded = encoded.withHeader("server-timing", timing.serverTiming(clock.nanos()));
                }
            } catch (RuntimeException | OutOfMemoryError e) {
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
