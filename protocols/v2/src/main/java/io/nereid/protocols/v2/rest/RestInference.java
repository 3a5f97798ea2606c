// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.arrow.ArrowInferReader;
import io.nereid.protocols.v2.arrow.ArrowInferWriter;
import io.nereid.protocols.v2.arrow.ArrowMediaType;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.OutputEncoding;
import io.nereid.protocols.v2.codec.RestInferReader;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.protocols.v2.memory.CudaInputs;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * One inference request over HTTP, from the body to the response. Thread-safe: the steps run one after the other,
 * possibly on different threads; only {@link #run}, the cancellation, runs concurrently.
 */
final class RestInference implements ResponseSink, Runnable {
    /** How many times as fast as a text of the same length columns are decoded and encoded, at least. */
    private static final int FASTER_THAN_TEXT = 16;

    private static final int UNSUPPORTED_MEDIA_TYPE = 415;

    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private @Nullable RequestTrace trace;
    /** Why the type of the body is refused; null when it is not. */
    private final @Nullable String refusal;

    private final boolean arrow;
    private final boolean acceptsArrow;
    private OutputEncoding form = OutputEncoding.JSON;
    private boolean ended;
    private volatile @Nullable InferenceCall call;
    private volatile boolean cancelled;

    RestInference(CodecContext context, HttpExchange exchange, ModelRef model) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.trace = RestTrace.begin(context, exchange, model);
        String contentType = exchange.header("content-type");
        this.refusal = ArrowMediaType.refusal(contentType);
        this.arrow = ArrowMediaType.isStream(contentType);
        this.acceptsArrow = ArrowMediaType.respondsWithStream(exchange.header("accept"), arrow);
    }

    /** Starts the request; the response follows now or later. Called on the event loop. */
    void start() {
        if (refusal != null) {
            RestTrace.reply(context, exchange, trace, HttpReply.error(UNSUPPORTED_MEDIA_TYPE, refusal));
            return;
        }
        exchange.onCancel(this);
        int length = arrow ? exchange.body().size() / FASTER_THAN_TEXT : RestInferReader.jsonLength(exchange);
        if (context.mustOffload(length)) {
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
        CudaInputs copies = null;
        try {
            if (arrow) {
                ArrowInferReader reader = new ArrowInferReader(context, exchange, model, trace);
                request = reader.read();
                trace = reader.trace();
            } else {
                RestInferReader reader = new RestInferReader(context, exchange, model, trace);
                request = reader.read();
                form = reader.form();
                trace = reader.trace();
                copies = reader.cudaInputs();
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            RestTrace.fail(context, exchange, trace, ServingException.from(e));
            return;
        }
        if (copies == null) {
            infer(request);
        } else {
            copies.fetch(copies.thread(), () -> infer(request), e -> {
                Tensor.closeAll(request.inputs());
                fail(e);
            });
        }
    }

    private void infer(InferenceRequest request) {
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
        } else if (form.thread() != null) {
            handOver(form.thread(), response);
        } else if (cancelled || !context.mustOffload(encodedBytes(response))) {
            encode(response);
        } else {
            handOver(context::offload, response);
        }
    }

    private void handOver(Executor thread, InferenceResponse response) {
        try {
            thread.execute(() -> encode(response));
        } catch (RejectedExecutionException | ServingException e) {
            response.close();
            form.close();
            RestTrace.fail(context, exchange, trace, CodecContext.rejected(e));
        }
    }

    /** How many bytes of text take as long to encode as the response. */
    private long encodedBytes(InferenceResponse response) {
        long bytes = RestInferWriter.jsonBytes(response, form);
        return respondsWithColumns() ? bytes / FASTER_THAN_TEXT : bytes * 2;
    }

    /** Whether the response is an Arrow stream; a request may ask for binary data or shared memory instead. */
    private boolean respondsWithColumns() {
        return acceptsArrow && form.equals(OutputEncoding.JSON);
    }

    private void encode(InferenceResponse response) {
        HttpReply reply;
        try {
            reply = respondsWithColumns()
                    ? ArrowInferWriter.write(response, context.buffers(), trace, context.clock)
                    : RestInferWriter.write(response, form, context.buffers(), trace, context.clock);
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
