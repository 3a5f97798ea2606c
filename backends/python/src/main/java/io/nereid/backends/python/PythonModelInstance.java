// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * One instance of a Python model: a worker process, which is replaced when it dies. The first replacement starts at
 * once; if workers keep dying within 30 seconds of their start, the pause doubles from 0.5 to 30 seconds. Requests that
 * arrive in a pause fail with UNAVAILABLE; requests that arrive while a worker starts wait for it.
 *
 * <p>The engine calls {@link #execute} on one thread at a time. Deaths and restarts come from other threads; this
 * object's lock guards {@code current} and the restart state.
 */
final class PythonModelInstance implements ModelInstance {
    private static final System.Logger LOG = System.getLogger("io.nereid.backends.python");
    private static final Duration SOON = Duration.ofSeconds(30);
    private static final long FIRST_PAUSE_MILLIS = 500;
    private static final long LONGEST_PAUSE_MILLIS = 30_000;

    private final PythonModel model;
    private final int index;

    @GuardedBy("this") private CompletableFuture<Worker> current;

    @GuardedBy("this") private long startedAt;

    @GuardedBy("this") private long pausedUntil;

    @GuardedBy("this") private int deaths;

    @GuardedBy("this") private @Nullable ServingException lastFailure;

    @GuardedBy("this") private boolean closed;

    PythonModelInstance(PythonModel model, int index, Worker first) {
        this.model = model;
        this.index = index;
        this.current = CompletableFuture.completedFuture(first);
        this.startedAt = now();
        watch(first);
    }

    private static long now() {
        return Clock.system().nanos();
    }

    private void watch(Worker worker) {
        var unused = worker.death().thenAccept(reason -> died(worker, reason));
    }

    private synchronized void died(Worker worker, ServingException reason) {
        if (!closed && current.getNow(null) == worker) {
            restart(reason);
        }
    }

    /** Schedules the start of another worker, now or after a pause. */
    private synchronized void restart(ServingException reason) {
        if (closed || model.closed()) {
            return;
        }
        deaths = now() - startedAt > SOON.toNanos() ? 1 : deaths + 1;
        lastFailure = reason;
        long pause = deaths == 1 ? 0 : Math.min(LONGEST_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(16, deaths - 2));
        pausedUntil = now() + TimeUnit.MILLISECONDS.toNanos(pause);
        CompletableFuture<Worker> next = new CompletableFuture<>();
        current = next;
        try {
            var unused = model.timer()
                    .schedule(() -> model.starters().execute(() -> begin(next)), pause, TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException e) {
            next.completeExceptionally(reason);
        }
    }

    private void begin(CompletableFuture<Worker> next) {
        try {
            synchronized (this) {
                startedAt = now();
            }
            Worker worker = model.start(index);
            boolean late;
            synchronized (this) {
                startedAt = now();
                late = closed;
                next.complete(worker);
            }
            if (late) {
                worker.finish();
            } else {
                watch(worker);
                LOG.log(
                        System.Logger.Level.INFO,
                        model.config().name() + "_" + index + ": restarted as process " + worker.pid());
            }
        } catch (RuntimeException e) {
            ServingException reason = ServingException.from(e);
            LOG.log(
                    System.Logger.Level.ERROR,
                    model.config().name() + "_" + index + ": cannot be restarted: " + reason.describe());
            next.completeExceptionally(reason);
            restart(reason);
        }
    }

    /** The current worker; waits for one that is starting. */
    private Worker worker() {
        CompletableFuture<Worker> future;
        long wait;
        synchronized (this) {
            future = current;
            wait = pausedUntil - now();
            if (!future.isDone() && wait > 0) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "model '" + model.config().name() + "' has no Python process: it died " + deaths
                                + " times in a row, last: "
                                + (lastFailure == null ? "unknown" : lastFailure.getMessage()),
                        "the next one starts in " + (TimeUnit.NANOSECONDS.toMillis(wait) + 1) + " ms");
            }
        }
        try {
            return future.get(model.plan().settings().loadTimeout().toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            ServingException cause = ServingException.from(e.getCause() == null ? e : e.getCause());
            throw ServingException.of(ErrorCode.UNAVAILABLE, cause.getMessage(), cause.remedy());
        } catch (TimeoutException e) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "model '" + model.config().name() + "' has no Python process yet");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.UNAVAILABLE, "waiting for the Python process was interrupted");
        }
    }

    /** Requests fail one by one; see {@link Worker#execute}. */
    @Override
    public void execute(List<ModelRequest> requests) {
        Worker worker = worker();
        if (!worker.alive()) {
            // It died since the last batch. These requests have not been sent, so they can go to the next worker.
            worker.death().join();
            worker = worker();
        }
        worker.execute(requests);
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        throw new UnsupportedOperationException("Python models take requests");
    }

    /** Does nothing: a Python model checks itself whether a request is cancelled ({@code request.is_cancelled()}). */
    @Override
    public void cancel() {}

    @Override
    public void close() {
        Worker worker;
        synchronized (this) {
            closed = true;
            worker = current.isCompletedExceptionally() ? null : current.getNow(null);
        }
        if (worker != null) {
            worker.finish();
        }
        model.releaseIndex(index);
    }
}
