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
 * A job whose answer waits for those of the jobs accepted before it. Thread-safe by its line's lock, which is not held
 * while answers leave.
 */
final class Ordered implements InferenceJob {
    private static final Logger LOG = LoggerFactory.getLogger(Ordered.class);

    private final InferenceJob job;
    private final Exit exit;
    private @Nullable List<Tensor> outputs;
    private Map<String, Object> parameters = Map.of();
    private @Nullable ServingException error;
    private boolean ended;

    Ordered(InferenceJob job, Exit exit) {
        this.job = job;
        this.exit = exit;
    }

    /** Fails a job that never ran: nobody waits for its turn. */
    static void fail(InferenceJob job, ServingException e) {
        if (job instanceof Ordered ordered) {
            ordered.job.fail(e);
            ordered.exit.ended(ordered);
        } else {
            job.fail(e);
        }
    }

    @Override
    public void respond(List<Tensor> result, Map<String, Object> resultParameters) {
        job.respond(result, resultParameters);
    }

    @Override
    public void complete(List<Tensor> result, Map<String, Object> resultParameters) {
        outputs = result;
        parameters = resultParameters;
        exit.ended(this);
    }

    @Override
    public void fail(ServingException e) {
        error = e;
        exit.ended(this);
    }

    private void leave() {
        List<Tensor> result = outputs;
        ServingException failure = error;
        outputs = null;
        error = null;
        try {
            if (result != null) {
                job.complete(result, parameters);
            } else if (failure != null) {
                job.fail(failure);
            }
        } catch (RuntimeException e) {
            LOG.error("a job could not take its answer", e);
        }
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

    /** The way out, in the order of {@link #enter}. Thread-safe by its own short lock; one thread lets answers out. */
    static final class Exit {
        private final ArrayDeque<Ordered> line = new ArrayDeque<>();
        private boolean leaving;

        synchronized void enter(Ordered job) {
            line.add(job);
        }

        private void ended(Ordered job) {
            synchronized (this) {
                job.ended = true;
                if (leaving) {
                    return;
                }
                leaving = true;
            }
            for (Ordered next = next(); next != null; next = next()) {
                next.leave();
            }
        }

        private synchronized @Nullable Ordered next() {
            Ordered head = line.peek();
            if (head == null || !head.ended) {
                leaving = false;
                return null;
            }
            line.poll();
            return head;
        }
    }
}
