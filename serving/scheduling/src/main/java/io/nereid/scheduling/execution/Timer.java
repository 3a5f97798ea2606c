// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Runs tasks at a given time of the server's clock. Implementations are thread-safe; tasks must not block. */
public interface Timer extends AutoCloseable {
    /** Runs {@code task} once, at {@code nanos} or a little later; never on the calling thread before this returns. */
    Alarm at(long nanos, Runnable task);

    @Override
    void close();

    /** A scheduled task. */
    interface Alarm {
        /** Cancels the task, if it has not started. */
        void cancel();
    }

    /** Creates a timer with one thread, which starts with the first task. */
    static Timer threaded(String name, Clock clock) {
        ScheduledThreadPoolExecutor executor = Threads.timer(name);
        return new Timer() {
            @Override
            public Alarm at(long nanos, Runnable task) {
                try {
                    Future<?> future = executor.schedule(task, nanos - clock.nanos(), TimeUnit.NANOSECONDS);
                    return () -> future.cancel(false);
                } catch (RejectedExecutionException closed) {
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
