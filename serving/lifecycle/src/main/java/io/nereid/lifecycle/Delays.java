// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Threads;
import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Calls back after a while. Implementations are thread-safe; tasks must not block. */
interface Delays extends AutoCloseable {
    /** Runs {@code task} after {@code delay}, unless closed first. */
    void after(Duration delay, Runnable task);

    @Override
    void close();

    /** One thread, started when first needed. */
    static Delays threaded(String name) {
        Logger log = LoggerFactory.getLogger(Delays.class);
        ScheduledThreadPoolExecutor executor = Threads.timer(name);
        return new Delays() {
            @Override
            public void after(Duration delay, Runnable task) {
                try {
                    var unused = executor.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
                } catch (RejectedExecutionException e) {
                    log.debug("closed before a delay began", e);
                }
            }

            @Override
            public void close() {
                executor.shutdownNow();
            }
        };
    }
}
