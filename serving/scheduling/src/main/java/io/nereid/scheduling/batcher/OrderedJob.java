// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A job of a batcher with {@code preserve_ordering}: its responses are held back until all jobs that were accepted
 * before it have ended, so that clients get responses in the order of their requests although batches run concurrently.
 * Decorates the original job. Thread-safe by the lock of its {@link CompletionQueue}, which is not held while a
 * response is delivered.
 */
final class OrderedJob implements InferenceJob {
    private static final Logger LOG = LoggerFactory.getLogger(OrderedJob.class);

    private final InferenceJob job;
    private final CompletionQueue completions;

    /** Responses that are held back; null for none. Guarded by the lock of {@link #completions}. */
    private @Nullable ArrayDeque<Answer> waiting;
    /** Whether the last response is known. Guarded by the lock of {@link #completions}. */
    private boolean ended;

    OrderedJob(InferenceJob job, CompletionQueue completions) {
        this.job = job;
        this.completions = completions;
    }

    /** Fails a job that never ran. The error is delivered at once: it has no place in the order of responses. */
    static void fail(InferenceJob job, ServingException e) {
        if (job instanceof OrderedJob ordered) {
            ordered.job.fail(e);
            ordered.completions.deliver(ordered, null, true);
        } else if (job instanceof SplitJob split) {
            split.failQueued(e);
        } else {
            job.fail(e);
        }
    }

    @Override
    public void respond(List<Tensor> result, Map<String, Object> resultParameters) {
        completions.deliver(this, new Answer(result, resultParameters, null, false), false);
    }

    @Override
    public void complete(List<Tensor> result, Map<String, Object> resultParameters) {
        completions.deliver(this, new Answer(result, resultParameters, null, true), true);
    }

    @Override
    public void fail(ServingException e) {
        completions.deliver(this, new Answer(List.of(), Map.of(), e, true), true);
    }

    @Override
    public InferenceRequest request() {
        return job.request();
    }

    @Override
    public int batchSize() {
        return job.batchSize();
    }

    @Override
    public long deadlineNanos() {
        return job.deadlineNanos();
    }

    @Override
    public boolean refusable() {
        return job.refusable();
    }

    @Override
    public boolean cancelled() {
        return job.cancelled();
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        job.onCancel(action);
    }

    @Override
    public void queued(long nanos) {
        job.queued(nanos);
    }

    @Override
    public long queuedNanos() {
        return job.queuedNanos();
    }

    @Override
    public void started(long nanos) {
        job.started(nanos);
    }

    @Override
    public void ran(long from, long to, int rows) {
        job.ran(from, to, rows);
    }

    /** A response or the error of a job. Immutable, except for the tensors. */
    private record Answer(
            List<Tensor> outputs,
            Map<String, Object> parameters,
            @Nullable ServingException error,
            boolean last) {
        void deliverTo(InferenceJob job) {
            try {
                if (error != null) {
                    job.fail(error);
                } else if (last) {
                    job.complete(outputs, parameters);
                } else {
                    job.respond(outputs, parameters);
                }
            } catch (RuntimeException e) {
                LOG.error("a job failed to accept its response", e);
            }
        }
    }

    /**
     * The completion queue of one model: delivers responses in the order of {@link #enter}.
     *
     * <p>Thread-safe by its own short lock. Only one thread at a time delivers ({@code leaving}), without the lock;
     * other threads add their response and return, and the delivering thread takes it over. Hence the order is kept
     * without blocking a thread behind a slow client.
     */
    static final class CompletionQueue {
        @GuardedBy("this") private final ArrayDeque<OrderedJob> line = new ArrayDeque<>();

        @GuardedBy("this") private boolean delivering;

        synchronized void enter(OrderedJob job) {
            line.add(job);
        }

        private void deliver(OrderedJob job, @Nullable Answer answer, boolean end) {
            boolean tooLate;
            synchronized (this) {
                tooLate = job.ended;
                if (!tooLate) {
                    job.ended = end;
                    if (answer != null) {
                        if (job.waiting == null) {
                            job.waiting = new ArrayDeque<>(end ? 1 : 4);
                        }
                        job.waiting.add(answer);
                    }
                    if (delivering || line.peek() != job) {
                        return;
                    }
                    delivering = true;
                }
            }
            if (tooLate) {
                if (answer != null) {
                    Tensor.closeAll(answer.outputs);
                }
                return;
            }
            for (Delivery next = next(); next != null; next = next()) {
                next.answer.deliverTo(next.job);
            }
        }

        /** Returns the next response to deliver; null when the first job has none yet, which ends the delivery. */
        private synchronized @Nullable Delivery next() {
            for (OrderedJob head = line.peek(); head != null; head = line.peek()) {
                Answer answer = head.waiting == null ? null : head.waiting.poll();
                if (answer != null) {
                    return new Delivery(head.job, answer);
                }
                if (!head.ended) {
                    break;
                }
                line.poll();
            }
            delivering = false;
            return null;
        }

        /** A response and the job that it belongs to. */
        private record Delivery(InferenceJob job, Answer answer) {}
    }
}
