// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.model;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.explain.request.FeatureColumns;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * One output of a model of the engine as a {@link RowModel}. Sends the rows in batches, a few requests at a time, and
 * delivers the predictions in order, so that sums over them are reproducible. Thread-safe; never blocks.
 */
public final class EngineRowModel implements RowModel {
    /** Requests of one explanation in flight. */
    private static final int AT_ONCE = 4;
    /** Most numbers in a request. */
    private static final int NUMBERS = 1 << 15;
    /** Most numbers in the prediction of a row. */
    private static final int MOST_OUTPUTS = 1024;
    /** The same for a signature that returns contributions. */
    private static final int MOST_CONTRIBUTIONS = 1 << 22;

    private final InferenceEngine engine;
    private final ModelRef model;
    private final FeatureColumns columns;
    private final String signature;
    private final String output;
    private final int most;
    private final PredictionBudget budget;
    private final Executor pool;
    /** The numbers in a prediction; 0 before the first one. */
    private volatile int outputs;

    /**
     * Creates the model of one output.
     *
     * @param signature empty for the model's default signature
     * @param maxBatchSize 0 for no limit
     * @param pool processes the responses
     */
    public EngineRowModel(
            InferenceEngine engine,
            ModelRef model,
            FeatureColumns columns,
            String signature,
            String output,
            int maxBatchSize,
            PredictionBudget budget,
            Executor pool) {
        this.engine = engine;
        this.model = model;
        this.columns = columns;
        this.signature = signature;
        this.output = output;
        this.most = columns.most(maxBatchSize, Math.max(1, NUMBERS / columns.count()));
        this.budget = budget;
        this.pool = pool;
    }

    @Override
    public CompletableFuture<Void> ask(long rows, Source source, Sink sink) {
        Query query = new Query(rows, source, sink);
        query.advance();
        return query.done;
    }

    /** A batch of rows in flight. The thread that receives the response sets its result once, before {@code ready}. */
    private static final class Chunk {
        private final long first;
        private final int rows;
        private double @Nullable [] values;
        private volatile @Nullable ServingException failure;
        private volatile boolean ready;

        Chunk(long first, int rows) {
            this.first = first;
            this.rows = rows;
        }
    }

    /**
     * One call of {@link #ask}. Its state is accessed by one thread at a time, which the counter {@code pending}
     * ensures.
     */
    private final class Query {
        private final CompletableFuture<Void> done = new CompletableFuture<>();
        private final Deque<Chunk> chunks = new ArrayDeque<>();
        private final AtomicInteger pending = new AtomicInteger();
        private final long rows;
        private final Source source;
        private final Sink sink;
        private long next;

        Query(long rows, Source source, Sink sink) {
            this.rows = rows;
            this.source = source;
            this.sink = sink;
        }

        /**
         * Makes progress. A thread that finds another one at work only increments the counter, and that one runs once
         * more: no response is missed and no thread waits.
         */
        void advance() {
            if (pending.getAndIncrement() != 0) {
                return;
            }
            int seen = 1;
            do {
                if (!done.isDone()) {
                    try {
                        if (step()) {
                            done.complete(null);
                        }
                    } catch (RuntimeException | OutOfMemoryError e) {
                        next = rows;
                        done.completeExceptionally(ServingException.from(e));
                    }
                }
                seen = pending.addAndGet(-seen);
            } while (seen != 0);
        }

        /** Delivers the responses that are next in order and sends further batches; true when all rows are done. */
        private boolean step() {
            while (true) {
                Chunk head = chunks.peek();
                if (head != null && head.ready) {
                    chunks.poll();
                    deliver(head);
                } else if (next < rows && chunks.size() < AT_ONCE) {
                    send();
                } else {
                    return chunks.isEmpty() && next == rows;
                }
            }
        }

        private void deliver(Chunk chunk) {
            ServingException failure = chunk.failure;
            double[] values = chunk.values;
            if (failure != null || values == null) {
                throw failure == null ? ServingException.of(ErrorCode.INTERNAL, "no answer") : failure;
            }
            int width = values.length / chunk.rows;
            if (outputs != 0 && outputs != width) {
                throw ServingException.invalidArgument("output '" + output + "' has " + outputs
                        + " numbers for some rows and " + width + " for others, which cannot be explained");
            }
            outputs = width;
            for (int r = 0; r < chunk.rows; r++) {
                sink.answer(chunk.first + r, values, r * width, width);
            }
        }

        private void send() {
            int count = (int) Math.min(most, rows - next);
            budget.spend(count);
            int width = columns.count();
            double[] values = new double[count * width];
            double[] row = new double[width];
            for (int r = 0; r < count; r++) {
                source.row(next + r, row);
                System.arraycopy(row, 0, values, r * width, width);
            }
            Chunk chunk = new Chunk(next, count);
            List<Tensor> inputs = columns.tensors(values, count);
            next += count;
            chunks.add(chunk);
            InferenceRequest request = new InferenceRequest(
                    model,
                    "",
                    inputs,
                    List.of(new RequestedOutput(output, 0)),
                    Map.of(),
                    budget.deadline(),
                    budget.now(),
                    signature.isEmpty() ? Options.NONE : Options.NONE.withSignature(signature));
            Answer answer = new Answer(chunk, this);
            answer.began(engine.infer(request, answer));
        }
    }

    /** Receives the response to one batch. */
    private final class Answer implements ResponseSink {
        private final Chunk chunk;
        private final Query query;

        @GuardedBy("this") private @Nullable InferenceCall call;

        @GuardedBy("this") private boolean over;

        Answer(Chunk chunk, Query query) {
            this.chunk = chunk;
            this.query = query;
        }

        void began(InferenceCall started) {
            synchronized (this) {
                if (over) {
                    return;
                }
                call = started;
                budget.began(started);
            }
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            try (response) {
                if (chunk.ready || (response.outputs().isEmpty() && !last)) {
                    return;
                }
                chunk.values = values(response);
            } catch (RuntimeException | OutOfMemoryError e) {
                chunk.failure = ServingException.from(e);
            }
            end();
        }

        @Override
        public void fail(ServingException e) {
            if (!chunk.ready) {
                chunk.failure = e;
                end();
            }
        }

        private void end() {
            chunk.ready = true;
            InferenceCall finished;
            synchronized (this) {
                over = true;
                finished = call;
            }
            if (finished != null) {
                budget.ended(finished);
            }
            try {
                pool.execute(query::advance);
            } catch (RejectedExecutionException e) {
                query.done.completeExceptionally(
                        ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down"));
            }
        }

        private double[] values(InferenceResponse response) {
            Tensor tensor = null;
            for (Tensor t : response.outputs()) {
                tensor = tensor == null || t.name().equals(output) ? t : tensor;
            }
            if (tensor == null) {
                throw ServingException.of(ErrorCode.INTERNAL, "the model answered without output '" + output + "'");
            }
            long count = tensor.shape().elementCount();
            if (count == 0
                    || count % chunk.rows != 0
                    || count / chunk.rows > (signature.isEmpty() ? MOST_OUTPUTS : MOST_CONTRIBUTIONS)) {
                throw ServingException.invalidArgument(
                        "output '" + output + "' is of shape " + tensor.shape() + " for " + chunk.rows
                                + " rows (expected: 1 to " + MOST_OUTPUTS + " numbers for each row)",
                        "name another one as parameter output");
            }
            return doubles(tensor, (int) count);
        }
    }

    private static double[] doubles(Tensor tensor, int count) {
        DataType type = tensor.dataType();
        ByteBuffer from = tensor.buffer();
        double[] values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = switch (type) {
                case FP64 -> from.getDouble();
                case FP32 -> from.getFloat();
                case INT64 -> from.getLong();
                case INT32 -> from.getInt();
                case UINT32 -> from.getInt() & 0xffff_ffffL;
                case INT16 -> from.getShort();
                case UINT16 -> from.getShort() & 0xffff;
                case INT8 -> from.get();
                case UINT8 -> from.get() & 0xff;
                case BOOL -> from.get() == 0 ? 0 : 1;
                default ->
                    throw ServingException.invalidArgument(
                            "output '" + tensor.name() + "' is of type " + type + ", which cannot be explained",
                            "name an output of numbers as parameter output");
            };
        }
        return values;
    }
}
