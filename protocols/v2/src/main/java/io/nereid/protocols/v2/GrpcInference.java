// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.endpoint.Content;
import io.nereid.endpoint.GrpcCall;
import io.nereid.endpoint.GrpcMethod.GrpcListener;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.MemoryRegion;
import org.jspecify.annotations.Nullable;

/**
 * One unary inference, from the message to the answer. Thread-safe: the steps follow one another, and only cancellation
 * comes in from the side.
 */
final class GrpcInference implements GrpcListener, ResponseSink {
    private final CodecContext context;
    private final GrpcCall call;
    private OutputForm form = OutputForm.BINARY;
    private boolean started;
    private boolean ended;
    private volatile InferenceEngine.@Nullable Call inference;
    private volatile boolean cancelled;

    GrpcInference(CodecContext context, GrpcCall call) {
        this.context = context;
        this.call = call;
    }

    @Override
    public void onMessage(MemoryRegion message) {
        if (started) {
            throw ServingException.invalidArgument("more than one message in a unary call");
        }
        started = true;
        long typedBytes = context.workbench().grpcReader.scan(message);
        if (context.mustOffload(typedBytes)) {
            message.retain();
            try {
                context.offload(() -> decodeElsewhere(message));
            } catch (ServingException e) {
                message.release();
                throw e;
            }
        } else {
            infer();
        }
    }

    private void decodeElsewhere(MemoryRegion message) {
        try {
            if (!cancelled) {
                context.workbench().grpcReader.scan(message);
                infer();
            }
        } catch (RuntimeException e) {
            call.fail(ServingException.from(e));
        } finally {
            message.release();
        }
    }

    private void infer() {
        GrpcInferReader reader = context.workbench().grpcReader;
        form = reader.form();
        InferenceRequest request = reader.read(call.deadlineNanos(), call.arrivedNanos());
        InferenceEngine.Call begun = context.engine.infer(request, this);
        inference = begun;
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
        InferenceEngine.Call begun = inference;
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
        if (!last) {
            response.close();
            onCancel();
            call.fail(ServingException.of(
                    Code.UNIMPLEMENTED,
                    "ModelInfer RPC doesn't support models with decoupled transaction policy",
                    "use ModelStreamInfer"));
        } else if (cancelled || !context.mustOffload(GrpcInferWriter.typedBytes(response, form))) {
            encode(response);
        } else {
            try {
                context.offload(() -> encode(response));
            } catch (ServingException e) {
                response.close();
                call.fail(e);
            }
        }
    }

    private void encode(InferenceResponse response) {
        Content content;
        try {
            content = GrpcInferWriter.unary(response, form, context.workbench());
        } catch (RuntimeException e) {
            response.close();
            call.fail(ServingException.from(e));
            return;
        }
        call.sendAndClose(content);
    }

    @Override
    public void fail(ServingException e) {
        if (!ended) {
            ended = true;
            call.fail(e);
        }
    }
}
