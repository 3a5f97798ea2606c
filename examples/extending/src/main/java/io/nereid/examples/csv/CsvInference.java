// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.csv;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One request, from the body to the reply. {@link #start} and the sink's methods are called one after the other, on
 * different threads; {@link #cancel} may come at any time.
 */
final class CsvInference implements ResponseSink {
    private final InferenceEngine engine;
    private final HttpExchange exchange;
    private final ModelRef model;
    private boolean replied;
    private volatile boolean cancelled;
    private volatile @Nullable InferenceCall call;

    CsvInference(InferenceEngine engine, HttpExchange exchange, ModelRef model) {
        this.engine = engine;
        this.exchange = exchange;
        this.model = model;
    }

    /** Decodes the body and starts the inference. Ends with exactly one reply, now or later. */
    void start() {
        InferenceRequest request;
        try {
            Tensor input = CsvRows.read(exchange.body(), input().name());
            request = new InferenceRequest(
                            model, "", List.of(input), List.of(), Map.of(), Long.MAX_VALUE, exchange.arrivedNanos())
                    .from(exchange.caller());
        } catch (RuntimeException e) {
            exchange.fail(ServingException.from(e));
            return;
        }
        InferenceCall started = engine.infer(request, this); // the engine owns the input from here on
        call = started;
        if (cancelled) {
            started.cancel();
        }
    }

    private TensorSpec input() {
        List<TensorSpec> inputs = engine.metadata(model).inputs();
        if (inputs.size() != 1 || inputs.get(0).dataType() != DataType.FP32) {
            throw ServingException.invalidArgument(
                    "model '" + model.model() + "' has inputs " + inputs + " (expected: one of type FP32)",
                    "use /v2/models/" + model.model() + "/infer");
        }
        return inputs.get(0);
    }

    /** The client has disconnected. */
    void cancel() {
        cancelled = true;
        InferenceCall started = call;
        if (started != null) {
            started.cancel();
        }
    }

    @Override
    public void next(InferenceResponse response, boolean last) {
        HttpReply reply;
        try (response) {
            reply = last ? reply(response) : HttpReply.error(severalResponses());
        } catch (RuntimeException e) {
            reply = HttpReply.error(ServingException.from(e));
        }
        end(reply);
        if (!last) {
            cancel();
        }
    }

    private HttpReply reply(InferenceResponse response) {
        if (response.outputs().isEmpty()) {
            throw severalResponses();
        }
        return HttpReply.text(200, "text/csv", CsvRows.write(response.outputs().get(0)));
    }

    private ServingException severalResponses() {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "model '" + model.model() + "' is decoupled (expected: a model with one response)",
                "use /v2/models/" + model.model() + "/generate_stream");
    }

    @Override
    public void fail(ServingException e) {
        end(HttpReply.error(e));
    }

    /** Replies once; later responses of a decoupled model have no reply. */
    private void end(HttpReply reply) {
        if (!replied) {
            replied = true;
            exchange.reply(reply);
        }
    }
}
