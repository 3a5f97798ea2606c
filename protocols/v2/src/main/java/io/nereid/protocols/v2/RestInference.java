// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import org.jspecify.annotations.Nullable;

/**
 * One inference over HTTP, from the body to the reply. Thread-safe: the steps follow one another, and only cancellation
 * comes in from the side.
 */
final class RestInference implements ResponseSink, Runnable {
    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private final @Nullable RequestTrace trace;
    private OutputForm form = OutputForm.JSON;
    private boolean ended;
    private volatile InferenceEngine.@Nullable Call call;
    private volatile boolean cancelled;

    RestInference(CodecContext context, HttpExchange exchange, ModelRef model) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.trace = RestTrace.begin(context, exchange, model);
    }

    /** Answers the exchange, now or later. Called on the event loop. */
    void start() {
        exchange.onCancel(this);
        if (context.mustOffload(RestInferReader.jsonLength(exchange))) {
            context.offload(this::decodeElsewhere);
        } else {
            decode();
        }
    }

    private void decodeElsewhere() {
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
        } catch (RuntimeException e) {
            RestTrace.fail(context, exchange, trace, ServingException.from(e));
            return;
        }
        InferenceEngine.Call started = context.engine.infer(request, this);
        call = started;
        if (cancelled) {
            started.cancel();
        }
    }

    /** The client has gone away. */
    @Override
    public void run() {
        cancelled = true;
        InferenceEngine.Call started = call;
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
            reply = RestInferWriter.write(response, form, context.workbench());
        } catch (RuntimeException e) {
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
