// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The one thread that decides, its timer, and the threads that may wait. Implementations are thread-safe. */
interface Loop extends AutoCloseable {
    /** Runs a task on the deciding thread, after those that came before. Never blocks. */
    void execute(Runnable task);

    /** Runs a task on the deciding thread and waits until it has; not to be called on that thread. */
    default void call(Runnable task) {
        execute(task);
    }

    /** Runs a task on the deciding thread after a time. */
    Timer after(Duration time, Runnable task);

    /** Runs something that may wait, on a thread of its own; what it needs decided it executes. */
    void io(Runnable task);

    /** The time. */
    Clock clock();

    @Override
    void close();

    /** A task that is still to come. */
    @FunctionalInterface
    interface Timer {
        /** Nothing to come. */
        Timer NONE = () -> {};

        /** Has it not come. */
        void cancel();
    }

    /** A loop of real threads. */
    static Loop threads(Clock clock) {
        return new Threaded(clock);
    }

    /** Real threads. Thread-safe. */
    final class Threaded implements Loop {
        private static final Logger LOG = LoggerFactory.getLogger(Loop.class);
        private static final int IO_THREADS = 16;
        /** Much longer than what is decided ever takes. */
        private static final long LONGEST_SECONDS = 10;

        private final Clock clock;
        private final ScheduledThreadPoolExecutor decider = Threads.timer("nereid-control");
        private final ThreadPoolExecutor io = Threads.pool("nereid-control-io", IO_THREADS);

        Threaded(Clock clock) {
            this.clock = clock;
        }

        @Override
        public void execute(Runnable task) {
            run(decider, task);
        }

        @Override
        public void call(Runnable task) {
            Future<?> done;
            try {
                done = decider.submit(guarded(task));
            } catch (RejectedExecutionException e) {
                LOG.debug("the control plane has ended, a task is dropped");
                return;
            }
            try {
                done.get(LONGEST_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } catch (CancellationException | ExecutionException | TimeoutException e) {
                LOG.debug("a task of the control plane is not waited for", e);
            }
        }

        @Override
        public void io(Runnable task) {
            run(io, task);
        }

        private static void run(Executor executor, Runnable task) {
            try {
                executor.execute(guarded(task));
            } catch (RejectedExecutionException e) {
                LOG.debug("the control plane has ended, a task is dropped");
            }
        }

        @Override
        public Timer after(Duration time, Runnable task) {
            try {
                Future<?> future = decider.schedule(guarded(task), time.toNanos(), TimeUnit.NANOSECONDS);
                return () -> future.cancel(false);
            } catch (RejectedExecutionException e) {
                return Timer.NONE;
            }
        }

        private static Runnable guarded(Runnable task) {
            return () -> {
                try {
                    task.run();
                } catch (RuntimeException | Error e) {
                    LOG.error("a task of the control plane failed", e);
                }
            };
        }

        @Override
        public Clock clock() {
            return clock;
        }

        @Override
        public void close() {
            decider.shutdown();
            io.shutdown();
        }
    }
}
