// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.errorprone.annotations.concurrent.GuardedBy;
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
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * One {@code ModelStreamInfer} call. Responses are sent in the order of the requests, so early ones wait; responses of
 * decoupled models are exempt: they are sent as they arrive, and no other response waits for them. The error of a
 * request is a message in the stream, which goes on.
 *
 * <p>Thread-safe: one lock, held only to order messages and to hand them to the call.
 */
final class GrpcStreamInference implements GrpcListener {
    /** One request of the stream, with the responses that wait for their turn. */
    private final class Slot implements ResponseSink {
        private OutputEncoding form = OutputEncoding.BINARY;
        private String id = "";
        private @Nullable List<ResponseBody> waiting;
        private boolean ended;
        /** Whether its responses are sent in order; false for a decoupled model. */
        private boolean ordered = true;

        private @Nullable RequestTrace trace;
        private @Nullable InferenceCall inference;

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (!inOrder(() -> encode(response, last))) {
                response.close();
            }
        }

        /** Runs a step on the thread that the outputs need; false, with the request ended, when it has ended. */
        private boolean inOrder(Runnable step) {
            Executor thread = form.thread();
            if (thread == null) {
                step.run();
                return true;
            }
            try {
                thread.execute(step);
                return true;
            } catch (RejectedExecutionException e) {
                report(CodecContext.rejected(e));
                return false;
            }
        }

        private void encode(InferenceResponse response, boolean last) {
            if (last && response.outputs().isEmpty() && !form.emptyFinalResponse()) {
                response.close();
                put(this, null, true);
                return;
            }
            ResponseBody content;
            try {
                content = GrpcInferWriter.stream(response, form, last, context.buffers(), trace, context.clock);
            } catch (RuntimeException | OutOfMemoryError e) {
                response.close();
                report(ServingException.from(e));
                return;
            }
            put(this, content, last);
        }

        @Override
        public void fail(ServingException e) {
            boolean unused = inOrder(() -> report(e));
        }

        private void report(ServingException e) {
            if (strictErrors) {
                endStream(e);
            }
            put(this, GrpcInferWriter.streamError(id, e.describe()), true);
        }

        /** Called after the last response of this request. */
        private void over() {
            form.close();
            GrpcTrace.sent(context, trace);
        }
    }

    private final CodecContext context;
    private final GrpcCall call;
    private final boolean strictErrors;
    private final Map<String, String> forwarded;
    private final @Nullable String traceparent;
    private final boolean timed;

    @GuardedBy("this") private final ArrayDeque<Slot> slots = new ArrayDeque<>();

    @GuardedBy("this") private final Set<Slot> unordered = new HashSet<>();

    @GuardedBy("this") private @Nullable Executor starting;

    @GuardedBy("this") private boolean halfClosed;

    @GuardedBy("this") private boolean over;

    GrpcStreamInference(CodecContext context, GrpcCall call) {
        this.context = context;
        this.call = call;
        this.strictErrors = "true".equals(call.metadata("triton_grpc_error"));
        this.forwarded = GrpcInference.forwarded(context, call);
        this.traceparent = GrpcTrace.parent(context, call);
        this.timed = GrpcTrace.timed(call);
    }

    @Override
    public void onMessage(MemoryRegion message) {
        if (!call.isReady()) {
            call.setReading(false);
        }
        Slot slot = new Slot();
        synchronized (this) {
            if (over) {
                return;
            }
            slots.add(slot);
        }
        try {
            GrpcInferReader reader = context.buffers().grpcReader;
            long typedBytes = reader.scan(message);
            if (context.mustOffload(typedBytes)) {
                message.retain();
                try {
                    context.offload(() -> decodeOnPool(slot, message));
                } catch (ServingException e) {
                    message.release();
                    throw e;
                }
            } else {
                infer(slot);
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            slot.fail(ServingException.from(e));
        }
    }

    private void decodeOnPool(Slot slot, MemoryRegion message) {
        try {
            context.buffers().grpcReader.scan(message);
            infer(slot);
        } catch (RuntimeException | OutOfMemoryError e) {
            slot.fail(ServingException.from(e));
        } finally {
            message.release();
        }
    }

    private void infer(Slot slot) {
        GrpcInferReader reader = context.buffers().grpcReader;
        slot.id = reader.id();
        long now = context.clock.nanos();
        slot.trace = GrpcTrace.begin(context, traceparent, timed, reader.model(), now);
        InferenceRequest request = reader.read(call.deadlineNanos(), now, slot.trace, forwarded, call.caller());
        CudaInputs copies = reader.cudaInputs();
        slot.form = reader.form();
        slot.trace = reader.trace();
        if (decoupled(request.model())) {
            unorder(slot);
        }
        Executor thread = thread(copies);
        if (thread == null) {
            infer(slot, request);
        } else {
            CudaInputs first = copies == null ? new CudaInputs() : copies;
            first.fetch(thread, () -> infer(slot, request), e -> {
                Tensor.closeAll(request.inputs());
                slot.fail(e);
            });
        }
    }

    /** The thread that starts a request: none, or that of the first one with inputs on a GPU, as requests keep their order. */
    private synchronized @Nullable Executor thread(@Nullable CudaInputs copies) {
        if (starting == null && copies != null) {
            starting = copies.thread();
        }
        return starting;
    }

    private void infer(Slot slot, InferenceRequest request) {
        InferenceCall begun = context.engine.infer(request, slot);
        boolean tooLate;
        synchronized (this) {
            slot.inference = begun;
            tooLate = over;
        }
        if (tooLate) {
            begun.cancel();
        }
    }

    private boolean decoupled(ModelRef model) {
        try {
            return context.engine.config(model).decoupled();
        } catch (ServingException e) {
            // The engine reports the same error for the request itself, from where it reaches the client.
            return false;
        }
    }

    /** Exempts a request from the order, once its model is known to be decoupled. */
    private synchronized void unorder(Slot slot) {
        if (slots.remove(slot)) {
            slot.ordered = false;
            unordered.add(slot);
            advance();
        }
    }

    /** Sends a message of a request, or keeps it until those of earlier requests have been sent. */
    private void put(Slot slot, @Nullable ResponseBody content, boolean last) {
        synchronized (this) {
            if (over || slot.ended) {
                if (content != null) {
                    content.discard();
                }
                last = last && !slot.ended;
            } else {
                if (content != null) {
                    if (!slot.ordered || slots.peek() == slot) {
                        GrpcTrace.sending(context, slot.trace);
                        call.send(content);
                    } else {
                        keep(slot, content);
                    }
                }
                if (last) {
                    slot.ended = true;
                    if (!slot.ordered) {
                        unordered.remove(slot);
                    }
                    advance();
                }
            }
        }
        if (last) {
            slot.over();
        }
    }

    @GuardedBy("this") private void keep(Slot slot, ResponseBody content) {
        if (slot.waiting == null) {
            slot.waiting = new ArrayList<>(1);
        }
        slot.waiting.add(content);
    }

    /** Sends the kept messages of the first request, and goes on with the next one while the first has ended. */
    @GuardedBy("this") private void advance() {
        for (Slot head = slots.peek(); head != null; head = slots.peek()) {
            if (head.waiting != null) {
                head.waiting.forEach(call::send);
                head.waiting = null;
            }
            if (!head.ended) {
                break;
            }
            slots.remove();
        }
        closeWhenDone();
    }

    @GuardedBy("this") private void closeWhenDone() {
        if (halfClosed && slots.isEmpty() && unordered.isEmpty() && !over) {
            over = true;
            call.close(ErrorCode.OK, null);
        }
    }

    private void endStream(ServingException e) {
        call.fail(e);
        cancelAll();
    }

    private void cancelAll() {
        List<InferenceCall> running = new ArrayList<>();
        synchronized (this) {
            if (over) {
                return;
            }
            over = true;
            for (Slot slot : slots) {
                if (slot.inference != null && !slot.ended) {
                    running.add(slot.inference);
                }
                if (slot.waiting != null) {
                    slot.waiting.forEach(ResponseBody::discard);
                    slot.waiting = null;
                }
            }
            for (Slot slot : unordered) {
                if (slot.inference != null) {
                    running.add(slot.inference);
                }
            }
            slots.clear();
            unordered.clear();
        }
        running.forEach(InferenceCall::cancel);
    }

    @Override
    public synchronized void onHalfClose() {
        halfClosed = true;
        closeWhenDone();
    }

    @Override
    public void onCancel() {
        cancelAll();
    }

    @Override
    public void onReady() {
        call.setReading(true);
    }
}
