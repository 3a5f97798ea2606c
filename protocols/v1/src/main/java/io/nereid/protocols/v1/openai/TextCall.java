// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v1.openai.TextRunner.Result;
import io.nereid.protocols.v1.openai.TextRunner.Target;
import io.nereid.protocols.v1.openai.TextRunner.Texts;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.TextTasks;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One request, of any number of texts, as inference requests of at most the model's batch size. A few of them are in flight at a time,
 * so that a long list leaves places in the model's queue to others. The first failure ends all of them. Thread-safe.
 */
final class TextCall {
    /** Texts in an inference request of a model without batches. */
    static final int ROWS = 32;

    private static final int IN_FLIGHT = 8;

    private final InferenceEngine engine;
    private final HttpExchange exchange;
    private final Target target;
    private final Texts texts;
    private final long deadlineNanos;
    private final Executor codecPool;
    private final Function<Result, HttpReply> encode;

    private final int parts;
    private final float[][] rows;
    private final AtomicReferenceArray<@Nullable InferenceCall> calls;
    private final AtomicLong tokens = new AtomicLong();
    private final AtomicBoolean uncounted = new AtomicBoolean();
    private final AtomicBoolean ended = new AtomicBoolean();
    private final AtomicInteger finished = new AtomicInteger();
    /** Above 0 while a thread submits; what it has to look at again. */
    private final AtomicInteger wanted = new AtomicInteger();
    /** Inference requests that were submitted; changed by the thread that submits. */
    private int submitted;

    TextCall(
            InferenceEngine engine,
            HttpExchange exchange,
            Target target,
            Texts texts,
            long deadlineNanos,
            Executor codecPool,
            Function<Result, HttpReply> encode) {
        this.engine = engine;
        this.exchange = exchange;
        this.target = target;
        this.texts = texts;
        this.deadlineNanos = deadlineNanos;
        this.codecPool = codecPool;
        this.encode = encode;
        int count = texts.first().size();
        this.parts = (count + target.rows() - 1) / target.rows();
        this.rows = new float[count][];
        this.calls = new AtomicReferenceArray<>(parts);
    }

    /** Starts the call; the reply is sent now or later. */
    void start() {
        exchange.onCancel(() -> {
            if (ended.compareAndSet(false, true)) {
                cancel();
            }
        });
        submit();
    }

    /** Submits what may be in flight. An answer may come before a call returns, so one thread at a time submits, in a loop. */
    private void submit() {
        if (wanted.getAndIncrement() != 0) {
            return;
        }
        int seen = 1;
        while (seen != 0) {
            while (!ended.get() && submitted < parts && submitted - finished.get() < IN_FLIGHT) {
                submit(submitted++);
            }
            seen = wanted.addAndGet(-seen);
        }
    }

    private void submit(int part) {
        int from = part * target.rows();
        int to = Math.min(from + target.rows(), rows.length);
        List<Tensor> inputs = new ArrayList<>();
        try {
            inputs.add(input(0, texts.first(), from, to));
            List<byte[]> second = texts.second();
            if (second != null) {
                inputs.add(input(1, second, from, to));
            }
        } catch (RuntimeException e) {
            Tensor.closeAll(inputs);
            fail(ServingException.from(e));
            return;
        }
        Map<String, Object> parameters = new HashMap<>();
        parameters.put(TextTasks.COUNT_TOKENS, true);
        if (texts.tokens()) {
            parameters.put(TextTasks.TOKEN_IDS, true);
        }
        InferenceRequest request = new InferenceRequest(
                        target.model(),
                        "",
                        inputs,
                        List.of(new RequestedOutput(target.output().name(), 0)),
                        parameters,
                        deadlineNanos,
                        exchange.arrivedNanos())
                .from(exchange.caller());
        InferenceCall call = engine.infer(request, new Part(from, to));
        calls.set(part, call);
        if (ended.get()) {
            call.cancel();
        }
    }

    private Tensor input(int index, List<byte[]> all, int from, int to) {
        Shape shape = target.inputs().get(index).shape().rank() == 1 ? Shape.of(to - from) : Shape.of(to - from, 1);
        return Tensor.ofBytes(
                target.inputs().get(index).name(), shape, all.subList(from, to).toArray(byte[][]::new));
    }

    private void cancel() {
        for (int i = 0; i < parts; i++) {
            InferenceCall call = calls.get(i);
            if (call != null) {
                call.cancel();
            }
        }
    }

    private void fail(ServingException e) {
        if (ended.compareAndSet(false, true)) {
            exchange.reply(OpenAiErrors.reply(e));
            cancel();
        }
    }

    private void finish() {
        if (finished.incrementAndGet() < parts) {
            submit();
            return;
        }
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        long numbers = (long) rows.length * (rows.length == 0 ? 0 : rows[0].length);
        if (numbers * Float.BYTES > OpenAiRoutes.SMALL && exchange.inEventLoop()) {
            codecPool.execute(this::reply);
        } else {
            reply();
        }
    }

    private void reply() {
        HttpReply reply;
        try {
            reply = encode.apply(new Result(rows, uncounted.get() ? -1 : tokens.get()));
        } catch (RuntimeException | OutOfMemoryError e) {
            reply = OpenAiErrors.reply(ServingException.from(e));
        }
        exchange.reply(reply);
    }

    /** Receives the response for some of the texts; of several responses of a model, the first one that has outputs. */
    private final class Part implements ResponseSink {
        private final int from;
        private final int to;
        private boolean answered;

        Part(int from, int to) {
            this.from = from;
            this.to = to;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            if (answered || (response.outputs().isEmpty() && !last)) {
                response.close();
                return;
            }
            answered = true;
            try (response) {
                read(response);
            } catch (RuntimeException e) {
                TextCall.this.fail(ServingException.from(e));
                return;
            }
            finish();
        }

        private void read(InferenceResponse response) {
            Tensor output =
                    response.outputs().isEmpty() ? null : response.outputs().get(0);
            int count = output == null ? 0 : (int) output.shape().elementCount();
            if (output == null || output.shape().rank() == 0 || output.shape().dim(0) != to - from || count == 0) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "model '" + target.model().model() + "' answered " + (to - from) + " texts with "
                                + (output == null ? "nothing" : "a tensor of shape " + output.shape()),
                        "correct the model: its first dimension is that of the texts");
            }
            ByteBuffer numbers = output.buffer();
            int width = count / (to - from);
            for (int i = from; i < to; i++) {
                float[] row = new float[width];
                for (int j = 0; j < width; j++) {
                    row[j] = output.dataType() == DataType.FP64 ? (float) numbers.getDouble() : numbers.getFloat();
                }
                rows[i] = row;
            }
            if (response.parameters().get(TextTasks.TOKENS) instanceof Long n) {
                tokens.addAndGet(n);
            } else {
                uncounted.set(true);
            }
        }

        @Override
        public void fail(ServingException e) {
            if (answered) {
                return;
            }
            answered = true;
            TextCall.this.fail(
                    parts == 1 || e.code() != ErrorCode.INVALID_ARGUMENT
                            ? e
                            : ServingException.invalidArgument(
                                    "of the texts " + from + " to " + (to - 1) + ": " + e.getMessage(), e.remedy()));
        }
    }
}
