// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.GrpcInferReader;
import io.nereid.protocols.v2.codec.GrpcInferWriter;
import io.nereid.protocols.v2.codec.OutputEncoding;
import io.nereid.protocols.v2.memory.CudaInputs;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One {@code ModelInfer} call, from the request message to the response. Thread-safe: the steps run one after the
 * other, possibly on different threads; only {@link #onCancel} runs concurrently.
 */
final class GrpcInference implements GrpcListener, ResponseSink {
    private final CodecContext context;
    private final GrpcCall call;
    private final Map<String, String> forwarded;
    private final @Nullable String traceparent;
    private final boolean timed;
    private OutputEncoding form = OutputEncoding.BINARY;
    private @Nullable RequestTrace trace;
    private boolean started;
    private boolean ended;
    private volatile @Nullable InferenceCall inference;
    private volatile boolean cancelled;

    GrpcInference(CodecContext context, GrpcCall call) {
        this.context = context;
        this.call = call;
        this.forwarded = forwarded(context, call);
        this.traceparent = GrpcTrace.parent(context, call);
        this.timed = GrpcTrace.timed(call);
    }

    /** The metadata to forward to the model. */
    static Map<String, String> forwarded(CodecContext context, GrpcCall call) {
        Pattern pattern = context.options.grpcHeaders();
        if (pattern == null) {
            return Map.of();
        }
        Map<String, String> forwarded = new LinkedHashMap<>();
        call.metadata((name, value) -> {
            if (pattern.matcher(name).find()) {
                forwarded.put(name, value);
            }
        });
        return forwarded;
    }

    @Override
    public void onMessage(MemoryRegion message) {
        if (started) {
            throw ServingException.invalidArgument("more than one message in a unary call");
        }
        started = true;
        long typedBytes = context.buffers().grpcReader.scan(message);
        if (context.mustOffload(typedBytes)) {
            message.retain();
            try {
                context.offload(() -> decodeOnPool(message));
            } catch (ServingException e) {
                message.release();
                throw e;
            }
        } else {
            infer();
        }
    }

    private void decodeOnPool(MemoryRegion message) {
        try {
            if (!cancelled) {
                context.buffers().grpcReader.scan(message);
                infer();
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            call.fail(ServingException.from(e));
        } finally {
            message.release();
        }
    }

    private void infer() {
        GrpcInferReader reader = context.buffers().grpcReader;
        trace = GrpcTrace.begin(context, traceparent, timed, reader.model(), call.arrivedNanos());
        InferenceRequest request;
        try {
            request = reader.read(call.deadlineNanos(), call.arrivedNanos(), trace, forwarded, call.caller());
        } catch (RuntimeException | OutOfMemoryError e) {
            GrpcTrace.sent(context, trace);
            throw e;
        }
        CudaInputs copies = reader.cudaInputs();
        form = reader.form();
        trace = reader.trace();
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
        InferenceCall begun = context.engine.infer(request, this);
        inference = begun;
        // a cancellation before the assignment found no call to cancel
        if (cancelled) {
            begun.cancel();
        }
    }

    @Override
    public void onHalfClose() {
        if (!started) {
            throw ServingException.invalidArgument("the call ended without a message");
        }
    }

    @Override
    public void onCancel() {
        cancelled = true;
        InferenceCall begun = inference;
        if (begun != null) {
            begun.cancel();
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
            onCancel();
            end(ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "ModelInfer RPC doesn't support models with decoupled transaction policy",
                    "use ModelStreamInfer"));
        } else if (form.thread() != null) {
            handOver(form.thread(), response);
        } else if (cancelled || !context.mustOffload(GrpcInferWriter.typedBytes(response, form))) {
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
            end(CodecContext.rejected(e));
        }
    }

    private void encode(InferenceResponse response) {
        ResponseBody content;
        try {
            content = GrpcInferWriter.unary(response, form, context.buffers(), trace, context.clock);
        } catch (RuntimeException | OutOfMemoryError e) {
            response.close();
            end(ServingException.from(e));
            return;
        }
        GrpcTrace.sending(context, trace);
        call.sendAndClose(content);
        done();
    }

    private void end(ServingException e) {
        GrpcTrace.sending(context, trace);
        call.fail(e);
        done();
    }

    private void done() {
        form.close();
        GrpcTrace.sent(context, trace);
    }

    @Override
    public void fail(ServingException e) {
        if (!ended) {
            ended = true;
            end(e);
        }
    }
}
