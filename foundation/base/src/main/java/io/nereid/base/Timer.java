// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs tasks after a delay; an interface, so that tests can control when they run. Implementations are thread-safe;
 * tasks must not block, since all tasks of a timer share one thread.
 */
public interface Timer extends AutoCloseable {
    /**
     * Runs {@code task} once, {@code nanos} nanoseconds from now or a little later; never on the calling thread before
     * this method returns. A timer that is closed drops the task.
     *
     * @param nanos may be 0 or negative, for as soon as possible
     */
    ScheduledTask after(long nanos, Runnable task);

    /** Drops all tasks that have not started. */
    @Override
    void close();

    /** A task that was passed to {@link #after}. */
    interface ScheduledTask {
        /** Cancels the task, if it has not started. */
        void cancel();
    }

    /** Creates a timer with one thread, which starts with the first task. */
    static Timer threaded(String name) {
        Logger log = System.getLogger(Timer.class.getName());
        ScheduledThreadPoolExecutor executor = Threads.timer(name);
        return new Timer() {
            @Override
            public ScheduledTask after(long nanos, Runnable task) {
                try {
                    Future<?> future = executor.schedule(task, nanos, TimeUnit.NANOSECONDS);
                    return () -> future.cancel(false);
                } catch (RejectedExecutionException e) {
                    log.log(Level.DEBUG, "a task was passed to a closed timer", e);
                    return () -> {};
                }
            }

            @Override
            public void close() {
                executor.shutdownNow();
            }
        };
    }
}
