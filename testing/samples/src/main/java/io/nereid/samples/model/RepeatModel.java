// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.ModelRequest;
import io.nereid.backends.java.SimulatedDelays;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A decoupled model with the inputs {@code IN} INT32 [n], {@code DELAY} UINT32 [n] and {@code WAIT} UINT32 [1] and the
 * outputs {@code OUT} INT32 [1] and {@code IDX} UINT32 [1]. A timer sends one response for each element of {@code IN},
 * {@code DELAY} milliseconds after the previous one; the run itself takes {@code WAIT} milliseconds. Thread-safe: the
 * responses of one request are sent by one task at a time.
 */
public final class RepeatModel extends SampleRequestModel {
    private final ScheduledThreadPoolExecutor timer = Threads.timer("repeat");
    private final Set<Answers> open = ConcurrentHashMap.newKeySet();

    public RepeatModel(ModelConfig config) {
        super(config);
    }

    public static ModelConfig complete(ModelConfig config) {
        if (config.maxBatchSize() > 0) {
            throw wrong(
                    config,
                    "has max_batch_size " + config.maxBatchSize()
                            + "; repeat backend only supports models with max_batch_size == 0",
                    "0");
        }
        return exactly(
                config,
                List.of(
                        spec("IN", DataType.INT32, -1),
                        spec("DELAY", DataType.UINT32, -1),
                        spec("WAIT", DataType.UINT32, 1)),
                List.of(spec("OUT", DataType.INT32, 1), spec("IDX", DataType.UINT32, 1)));
    }

    @Override
    public void execute(List<ModelRequest> requests) {
        for (ModelRequest request : requests) {
            List<Tensor> inputs = request.request().inputs();
            Tensor in = named(inputs, "IN");
            Tensor delay = named(inputs, "DELAY");
            long wait = Integer.toUnsignedLong(named(inputs, "WAIT").buffer().getInt());
            if (!in.shape().equals(delay.shape())) {
                request.fail(ServingException.invalidArgument(
                        "expected IN and DELAY shape to match, got " + in.shape() + " and " + delay.shape()));
                continue;
            }
            Answers answers = new Answers(request, in.buffer(), delay.buffer());
            open.add(answers);
            answers.next();
            if (wait > 0) {
                SimulatedDelays.await(new Semaphore(0), Duration.ofMillis(wait), "the run was interrupted");
            }
        }
    }

    /** Fails the requests that have not received all responses. */
    @Override
    public void close() {
        timer.shutdownNow();
        for (Answers answers : open) {
            answers.fail();
        }
    }

    /** The remaining responses of one request. Thread-safe by its own lock. */
    private final class Answers implements Runnable {
        private final ModelRequest request;

        @GuardedBy("this") private final ByteBuffer values;

        @GuardedBy("this") private final ByteBuffer delays;

        @GuardedBy("this") private int index;

        @GuardedBy("this") private boolean ended;

        @GuardedBy("this") private @Nullable Future<?> next;

        Answers(ModelRequest request, ByteBuffer values, ByteBuffer delays) {
            this.request = request;
            this.values = values;
            this.delays = delays;
        }

        /** Sends responses until the next delay or the end. */
        synchronized void next() {
            while (!ended) {
                if (!values.hasRemaining() || request.cancelled()) {
                    ended = true;
                    open.remove(this);
                    request.finish();
                    return;
                }
                long delay = Integer.toUnsignedLong(delays.getInt());
                if (delay > 0) {
                    later(delay);
                    return;
                }
                answer();
            }
        }

        @GuardedBy("this") private void later(long millis) {
            try {
                next = timer.schedule(this, millis, TimeUnit.MILLISECONDS);
            } catch (RejectedExecutionException e) {
                fail();
            }
        }

        @Override
        public synchronized void run() {
            if (!ended) {
                answer();
                next();
            }
        }

        @GuardedBy("this") private void answer() {
            int value = values.getInt();
            List<Tensor> outputs = new ArrayList<>();
            for (TensorSpec spec : outputs()) {
                if (request.outputs().contains(spec.name())) {
                    outputs.add(one(spec, spec.name().equals("OUT") ? value : index));
                }
            }
            index++;
            request.respond(outputs, Map.of());
        }

        synchronized void fail() {
            if (!ended) {
                ended = true;
                open.remove(this);
                if (next != null) {
                    next.cancel(false);
                }
                request.fail(
                        ServingException.of(ErrorCode.UNAVAILABLE, "model '" + config().name() + "' was unloaded"));
            }
        }
    }
}
