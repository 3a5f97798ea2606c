// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.resources;

import io.nereid.base.Threads;
import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs tasks after a delay. Implementations are thread-safe; tasks must not block. */
public interface DelayScheduler extends AutoCloseable {
    /** Runs {@code task} once after {@code delay}, unless closed first. */
    void after(Duration delay, Runnable task);

    @Override
    void close();

    /** Creates a scheduler with one thread, which starts with the first task. */
    static DelayScheduler threaded(String name) {
        Logger log = LoggerFactory.getLogger(DelayScheduler.class);
        ScheduledThreadPoolExecutor executor = Threads.timer(name);
        return new DelayScheduler() {
            @Override
            public void after(Duration delay, Runnable task) {
                try {
                    var unused = executor.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
                } catch (RejectedExecutionException e) {
                    log.debug("a task was scheduled after the scheduler was closed", e);
                }
            }

            @Override
            public void close() {
                executor.shutdownNow();
            }
        };
    }
}
