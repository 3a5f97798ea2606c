// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpStatusCodes;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** Handles scoring requests: decodes the body, calls the engine, encodes the response. Thread-safe: immutable. */
final class ScoringHandler {
    /** Larger bodies are decoded, and larger responses encoded, on the codec pool. */
    private static final int SMALL = 64 << 10;

    private final InferenceEngine engine;
    private final Executor codecPool;

    ScoringHandler(InferenceEngine engine, Executor codecPool) {
        this.engine = engine;
        this.codecPool = codecPool;
    }

    /** Handles an exchange; the response is sent now or later. */
    void start(HttpExchange x, ModelRef model) {
        String type = x.header("content-type");
        String unsupported = unsupported(type);
        if (unsupported != null) {
            x.reply(HttpReply.text(415, "text/plain; charset=utf-8", unsupported));
            return;
        }
        boolean csv = type != null && media(type).equals("text/csv");
        if (x.body().size() <= SMALL) {
            decode(x, model, csv);
            return;
        }
        codecPool.execute(() -> {
            try {
                decode(x, model, csv);
            } catch (RuntimeException | OutOfMemoryError e) {
                x.reply(error(ServingException.from(e)));
            }
        });
    }

    private static String media(String type) {
        int end = type.indexOf(';');
        return (end < 0 ? type : type.substring(0, end)).strip().toLowerCase(Locale.ROOT);
    }

    /** The error text for an unsupported content type, or null. */
    private static @Nullable String unsupported(@Nullable String type) {
        if (type == null) {
            return null;
        }
        String[] parts = type.split(";");
        for (int i = 1; i < parts.length; i++) {
            String part = parts[i].strip().toLowerCase(Locale.ROOT);
            if (part.startsWith("charset=")) {
                if (!part.substring(8).replace("\"", "").equals("utf-8")) {
                    return "The scoring server only supports UTF-8";
                }
            } else if (!part.isEmpty()) {
                return "Unrecognized content type parameters: " + part + ".";
            }
        }
        return List.of("application/json", "text/csv").contains(media(type))
                ? null
                : "This predictor only supports the following content types: Types: ['text/csv', 'application/json'].\""
                        + " Got '" + type + "'.";
    }

    private void decode(HttpExchange x, ModelRef model, boolean csv) {
        ModelMetadata metadata = engine.metadata(model);
        ScoringRequest scored = csv ? ScoringRequest.csv(x.body(), metadata) : ScoringRequest.json(x.body(), metadata);
        Answer answer = new Answer(x, scored.frame());
        InferenceRequest request = new InferenceRequest(
                        model, "", scored.inputs(), List.of(), scored.parameters(), Long.MAX_VALUE, x.arrivedNanos())
                .from(x.caller());
        InferenceCall call = engine.infer(request, answer);
        if (!answer.ended) {
            x.onCancel(call::cancel);
        }
    }

    /** An error in the form of MLflow's server. */
    static HttpReply error(ServingException e) {
        String code = switch (e.code()) {
            case INVALID_ARGUMENT, OUT_OF_RANGE -> "BAD_REQUEST";
            case FAILED_PRECONDITION -> "INVALID_STATE";
            case NOT_FOUND -> "RESOURCE_DOES_NOT_EXIST";
            case UNAVAILABLE -> "TEMPORARILY_UNAVAILABLE";
            case RESOURCE_EXHAUSTED -> "RESOURCE_LIMIT_EXCEEDED";
            case DEADLINE_EXCEEDED -> "DEADLINE_EXCEEDED";
            case UNIMPLEMENTED -> "NOT_IMPLEMENTED";
            case UNAUTHENTICATED -> "UNAUTHENTICATED";
            case PERMISSION_DENIED -> "PERMISSION_DENIED";
            case CANCELLED -> "CANCELLED";
            case ABORTED -> "ABORTED";
            case DATA_LOSS -> "DATA_LOSS";
            case ALREADY_EXISTS -> "ALREADY_EXISTS";
            case UNKNOWN, OK, INTERNAL -> "INTERNAL_ERROR";
        };
        return HttpReply.json(
                HttpStatusCodes.http(e.code()),
                "{\"error_code\": \"" + code + "\", \"message\": " + HttpReply.quote(e.describe()) + "}");
    }

    /** Encodes the response to an exchange; of several responses of a model, the first one that has outputs. */
    private final class Answer implements ResponseSink {
        private final HttpExchange exchange;
        private final boolean frame;
        private volatile boolean ended;

        Answer(HttpExchange exchange, boolean frame) {
            this.exchange = exchange;
            this.frame = frame;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (ended || (response.outputs().isEmpty() && !last)) {
                response.close();
                return;
            }
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
            HttpReply encoded;
            try (response) {
                encoded = PredictionsWriter.encode(
                        response.outputs(), frame, response.parameters().get(ScoringRequest.FEATURE_NAMES));
            } catch (RuntimeException | OutOfMemoryError e) {
                encoded = error(ServingException.from(e));
            }
            exchange.reply(encoded);
        }

        @Override
        public void fail(ServingException e) {
            if (!ended) {
                ended = true;
                exchange.reply(error(e));
            }
        }
    }
}
