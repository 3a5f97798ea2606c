// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.loop;

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
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The event loop of the control plane: one thread that runs all state changes in order, its timer, and a pool for
 * blocking work. Classes that are confined to the event loop thread therefore need no locks. Implementations are
 * thread-safe.
 */
public interface EventLoop extends AutoCloseable {
    /** Runs a task on the event loop thread, after all tasks submitted before it. Never blocks. */
    void execute(Runnable task);

    /** Runs a task on the event loop thread and waits for its end. Must not be called on that thread. */
    default void call(Runnable task) {
        execute(task);
    }

    /** Runs a task on the event loop thread after a delay. */
    Timer after(Duration time, Runnable task);

    /** Runs a blocking task on the pool. The task hands its result back through {@link #execute}. */
    void io(Runnable task);

    /**
     * Runs blocking work on the pool, and passes its result or its exception to {@code then} on the event loop thread.
     */
    default <T> void supply(Supplier<T> work, BiConsumer<@Nullable T, @Nullable RuntimeException> then) {
        io(() -> {
            T result;
            try {
                result = work.get();
            } catch (RuntimeException e) {
                execute(() -> then.accept(null, e));
                return;
            }
            execute(() -> then.accept(result, null));
        });
    }

    Clock clock();

    @Override
    void close();

    /** A scheduled task. */
    @FunctionalInterface
    interface Timer {
        /** The timer of no task. */
        Timer NONE = () -> {};

        /** Cancels the task unless it has started. */
        void cancel();
    }

    /** Creates an event loop with threads of its own. */
    static EventLoop threads(Clock clock) {
        return new Threaded(clock);
    }

    /** An event loop with threads of its own. Thread-safe. */
    final class Threaded implements EventLoop {
        private static final Logger LOG = LoggerFactory.getLogger(EventLoop.class);
        private static final int IO_THREADS = 16;
        /** Upper bound for {@link #call}; much longer than any task on the event loop thread takes. */
        private static final long LONGEST_SECONDS = 10;

        private final Clock clock;
        private final ScheduledThreadPoolExecutor eventLoop = Threads.timer("nereid-control");
        private final ThreadPoolExecutor io = Threads.pool("nereid-control-io", IO_THREADS);

        Threaded(Clock clock) {
            this.clock = clock;
        }

        @Override
        public void execute(Runnable task) {
            run(eventLoop, task);
        }

        @Override
        public void call(Runnable task) {
            Future<?> done;
            try {
                done = eventLoop.submit(guarded(task));
            } catch (RejectedExecutionException e) {
                LOG.debug("the control plane is closed; a task is dropped");
                return;
            }
            try {
                done.get(LONGEST_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } catch (CancellationException | ExecutionException | TimeoutException e) {
                LOG.debug("stopped waiting for a task of the control plane", e);
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
                LOG.debug("the control plane is closed; a task is dropped");
            }
        }

        @Override
        public Timer after(Duration time, Runnable task) {
            try {
                Future<?> future = eventLoop.schedule(guarded(task), time.toNanos(), TimeUnit.NANOSECONDS);
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
            eventLoop.shutdown();
            io.shutdown();
        }
    }
}
