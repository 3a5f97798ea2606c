// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

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
 * A job whose answers wait until all jobs accepted before it have ended. Thread-safe by its line's lock, which is not
 * held while answers leave.
 */
final class Ordered implements InferenceJob {
    private static final Logger LOG = LoggerFactory.getLogger(Ordered.class);

    private final InferenceJob job;
    private final Exit exit;

    /** What waits to leave; null for nothing. Guarded by the exit. */
    private @Nullable ArrayDeque<Answer> waiting;
    /** Nothing follows what waits. Guarded by the exit. */
    private boolean ended;

    Ordered(InferenceJob job, Exit exit) {
        this.job = job;
        this.exit = exit;
    }

    /** Fails a job that never ran: nobody waits for its turn. */
    static void fail(InferenceJob job, ServingException e) {
        if (job instanceof Ordered ordered) {
            ordered.job.fail(e);
            ordered.exit.say(ordered, null, true);
        } else if (job instanceof LargeJob large) {
            large.refuse(e);
        } else {
            job.fail(e);
        }
    }

    @Override
    public void respond(List<Tensor> result, Map<String, Object> resultParameters) {
        exit.say(this, new Answer(result, resultParameters, null, false), false);
    }

    @Override
    public void complete(List<Tensor> result, Map<String, Object> resultParameters) {
        exit.say(this, new Answer(result, resultParameters, null, true), true);
    }

    @Override
    public void fail(ServingException e) {
        exit.say(this, new Answer(List.of(), Map.of(), e, true), true);
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
    public void started(long nanos) {
        job.started(nanos);
    }

    @Override
    public void ran(long from, long to, int rows) {
        job.ran(from, to, rows);
    }

    /** One answer, or the failure, of a job. Immutable, but for the tensors. */
    private record Answer(
            List<Tensor> outputs,
            Map<String, Object> parameters,
            @Nullable ServingException error,
            boolean last) {
        void leave(InferenceJob job) {
            try {
                if (error != null) {
                    job.fail(error);
                } else if (last) {
                    job.complete(outputs, parameters);
                } else {
                    job.respond(outputs, parameters);
                }
            } catch (RuntimeException e) {
                LOG.error("a job could not take its answer", e);
            }
        }
    }

    /**
     * The way out, in the order of {@link #enter}. Thread-safe by its own short lock; one thread at a time lets answers
     * out, without it.
     */
    static final class Exit {
        private final ArrayDeque<Ordered> line = new ArrayDeque<>();
        private boolean leaving;

        synchronized void enter(Ordered job) {
            line.add(job);
        }

        private void say(Ordered job, @Nullable Answer answer, boolean end) {
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
                    if (leaving || line.peek() != job) {
                        return;
                    }
                    leaving = true;
                }
            }
            if (tooLate) {
                if (answer != null) {
                    Tensor.closeAll(answer.outputs);
                }
                return;
            }
            for (Leaving next = next(); next != null; next = next()) {
                next.answer.leave(next.job);
            }
        }

        /** The next answer that may leave; null when the head of the line has nothing to say yet. */
        private synchronized @Nullable Leaving next() {
            for (Ordered head = line.peek(); head != null; head = line.peek()) {
                Answer answer = head.waiting == null ? null : head.waiting.poll();
                if (answer != null) {
                    return new Leaving(head.job, answer);
                }
                if (!head.ended) {
                    break;
                }
                line.poll();
            }
            leaving = false;
            return null;
        }

        /** An answer on its way out. */
        private record Leaving(InferenceJob job, Answer answer) {}
    }
}
