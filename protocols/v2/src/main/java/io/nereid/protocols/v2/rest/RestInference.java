// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.OutputEncoding;
import io.nereid.protocols.v2.codec.RestInferReader;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import org.jspecify.annotations.Nullable;

/**
 * One inference request over HTTP, from the body to the response. Thread-safe: the steps run one after the other,
 * possibly on different threads; only {@link #run}, the cancellation, runs concurrently.
 */
final class RestInference implements ResponseSink, Runnable {
    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private @Nullable RequestTrace trace;
    private OutputEncoding form = OutputEncoding.JSON;
    private boolean ended;
    private volatile @Nullable InferenceCall call;
    private volatile boolean cancelled;

    RestInference(CodecContext context, HttpExchange exchange, ModelRef model) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.trace = RestTrace.begin(context, exchange, model);
    }

    /** Starts the request; the response follows now or later. Called on the event loop. */
    void start() {
        exchange.onCancel(this);
        if (context.mustOffload(RestInferReader.jsonLength(exchange))) {
            context.offload(this::decodeOnPool);
        } else {
            decode();
        }
    }

    private void decodeOnPool() {
        if (cancelled) {
            RestTrace.fail(context, exchange, trace, ServingException.of(ErrorCode.CANCELLED, "the client went away"));
        } else {
            decode();
        }
    }

    private void decode() {
        InferenceRequest request;
        try {
            RestInferReader reader = new RestInferReader(context, exchange, model, trace);
            request = reader.read();
            form = reader.form();
            trace = reader.trace();
        } catch (RuntimeException | OutOfMemoryError e) {
            RestTrace.fail(context, exchange, trace, ServingException.from(e));
            return;
        }
        InferenceCall started = context.engine.infer(request, this);
        call = started;
        // a cancellation before the assignment found no call to cancel
        if (cancelled) {
            started.cancel();
        }
    }

    /** Cancels the inference: the client has disconnected. */
    @Override
    public void run() {
        cancelled = true;
        InferenceCall started = call;
        if (started != null) {
            started.cancel();
        }
    }

    @Override
    public void next(InferenceResponse response, boolean last) {
        if (ended) {
            response.close();
            return;
        }
        ended = true;
        if (!last || response.outputs().isEmpty()) {
            response.close();
            form.close();
            run();
            RestTrace.fail(
                    context,
                    exchange,
                    trace,
                    ServingException.of(
                            ErrorCode.UNIMPLEMENTED,
                            "HTTP end point doesn't support models with decoupled transaction policy",
                            "use generate_stream, or ModelStreamInfer over gRPC"));
        } else if (cancelled || !context.mustOffload(RestInferWriter.jsonBytes(response, form) * 2)) {
            encode(response);
        } else {
            try {
                context.offload(() -> encode(response));
            } catch (ServingException e) {
                response.close();
                form.close();
                RestTrace.fail(context, exchange, trace, e);
            }
        }
    }

    private void encode(InferenceResponse response) {
        HttpReply reply;
        try {
            reply = RestInferWriter.write(response, form, context.buffers(), trace, context.clock);
        } catch (RuntimeException | OutOfMemoryError e) {
            response.close();
            RestTrace.fail(context, exchange, trace, ServingException.from(e));
            return;
        } finally {
            form.close();
        }
        RestTrace.reply(context, exchange, trace, reply);
    }

    @Override
    public void fail(ServingException e) {
        if (!ended) {
            ended = true;
            form.close();
            RestTrace.fail(context, exchange, trace, e);
        }
    }
}
