// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonWriter;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * One request of Triton's generate extension: {@code /generate} sends one JSON object, {@code /generate_stream} a
 * stream of server-sent events, one for each response of the model. The HTTP status of a stream is decided by the first
 * response; a later error becomes an event. Thread-safe: the steps run one after the other, possibly on different
 * threads; only {@link #run}, the cancellation, runs concurrently.
 */
final class RestGenerate implements ResponseSink, Runnable {
    /** A stream with more unsent bytes than this is aborted, as its client does not read it. */
    static final long MAX_UNSENT = 64L << 20;

    private static final String EVENT_STREAM = "text/event-stream; charset=utf-8";
    private static final String[] STREAM_HEADERS = {"cache-control", "no-cache"};
    private static final byte[] DATA = "data: ".getBytes(StandardCharsets.US_ASCII);

    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private final boolean streaming;
    private @Nullable RequestTrace trace;
    private @Nullable InferenceResponse only;
    private @Nullable ResponseStream stream;
    private boolean ended;
    private volatile @Nullable InferenceCall call;
    private volatile boolean cancelled;

    RestGenerate(CodecContext context, HttpExchange exchange, ModelRef model, boolean streaming) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.streaming = streaming;
        this.trace = RestTrace.begin(context, exchange, model);
    }

    /** Starts the request; the response follows now or later. Called on the event loop. */
    void start() {
        exchange.onCancel(this);
        if (context.mustOffload(exchange.body().size())) {
            context.offload(this::decode);
        } else {
            decode();
        }
    }

    private void decode() {
        InferenceRequest request;
        try {
            if (cancelled) {
                throw ServingException.of(ErrorCode.CANCELLED, "the client went away");
            }
            GenerateRequestReader reader =
                    new GenerateRequestReader(context, exchange, model, context.engine.metadata(model));
            request = reader.read(trace);
            trace = reader.trace();
        } catch (RuntimeException | OutOfMemoryError e) {
            RestTrace.fail(context, exchange, trace, ServingException.from(e));
            return;
        }
        InferenceCall started = context.engine.infer(request, this);
        call = started;
        if (cancelled) {
            started.cancel();
        }
    }

    /** Cancels the inference: the client has disconnected, or the request has failed. */
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
        try {
            if (streaming) {
                event(response, last);
            } else {
                single(response, last);
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            fail(ServingException.from(e));
            run();
        }
    }

    private void single(InferenceResponse response, boolean last) {
        InferenceResponse first = only;
        boolean answer = !response.outputs().isEmpty();
        if (first == null && answer) {
            only = response;
            first = response;
        } else {
            response.close();
            if (first == null ? last : answer) {
                throw ServingException.invalidArgument(
                        "generate expects model to produce exactly 1 response, use generate stream for model that"
                                + " generates various number of responses");
            }
        }
        if (last && first != null) {
            JsonWriter json = context.buffers().writer();
            GenerateResponseWriter.write(first, json);
            ended = true;
            dropOnly();
            RestTrace.reply(context, exchange, trace, timed(HttpReply.json(200, json.array(), json.length())));
        }
    }

    private void dropOnly() {
        InferenceResponse kept = only;
        if (kept != null) {
            only = null;
            kept.close();
        }
    }

    private void event(InferenceResponse response, boolean last) {
        if (response.outputs().isEmpty()) {
            response.close();
        } else {
            ResponseBody event;
            try (response) {
                JsonWriter json = context.buffers().writer();
                GenerateResponseWriter.write(response, json);
                event = event(json.array(), json.length());
            }
            send(event);
        }
        if (last) {
            endStream();
        }
    }

    private void send(ResponseBody event) {
        ResponseStream begun = stream;
        if (begun == null) {
            begin(event);
            return;
        }
        begun.send(event);
        if (begun.unsentBytes() > MAX_UNSENT) {
            ended = true;
            begun.abort();
            endTrace();
            run();
        }
    }

    private ResponseStream begin(ResponseBody first) {
        RequestTrace traced = trace;
        if (traced != null) {
            traced.event(Event.HTTP_SEND_START, context.clock.nanos());
        }
        ResponseStream begun = exchange.stream(timed(new HttpReply(200, EVENT_STREAM, STREAM_HEADERS, first)));
        stream = begun;
        return begun;
    }

    /** A response with the times of its request, if that asks for them: those up to its first event. */
    private HttpReply timed(HttpReply reply) {
        return trace instanceof RequestTiming timing
                ? reply.withHeader(RestInferWriter.SERVER_TIMING, timing.serverTiming(context.clock.nanos()))
                : reply;
    }

    private void endStream() {
        if (ended) {
            return;
        }
        ended = true;
        ResponseStream begun = stream;
        if (begun == null) {
            begun = begin(new ResponseBody(DATA, 0));
        }
        begun.end();
        endTrace();
    }

    private void endTrace() {
        RequestTrace traced = trace;
        if (traced != null) {
            RestTrace.end(context, traced);
        }
    }

    private static ResponseBody event(byte[] json, int length) {
        byte[] event = new byte[DATA.length + length + 2];
        System.arraycopy(DATA, 0, event, 0, DATA.length);
        System.arraycopy(json, 0, event, DATA.length, length);
        event[event.length - 2] = '\n';
        event[event.length - 1] = '\n';
        return new ResponseBody(event, event.length);
    }

    @Override
    public void fail(ServingException e) {
        if (ended) {
            return;
        }
        dropOnly();
        ResponseStream begun = stream;
        if (begun == null) {
            ended = true;
            RestTrace.fail(context, exchange, trace, e);
        } else {
            byte[] text = ("{\"error\":" + HttpReply.quote(e.describe()) + "}").getBytes(StandardCharsets.UTF_8);
            begun.send(event(text, text.length));
            endStream();
        }
    }
}
