// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Creates all threads of the server, so that each one has a name, is a daemon and logs uncaught exceptions.
 * Thread-safe.
 */
public final class Threads {
    private static final Logger LOG = System.getLogger(Threads.class.getName());

    private Threads() {}

    /** Returns a factory of daemon threads named {@code name-1}, {@code name-2}, … Thread-safe. */
    public static ThreadFactory named(String name) {
        AtomicInteger next = new AtomicInteger();
        return task -> {
            Thread thread = new Thread(task, name + "-" + next.incrementAndGet());
            thread.setDaemon(true);
            thread.setUncaughtExceptionHandler(
                    (t, e) -> LOG.log(Level.ERROR, "uncaught exception on thread " + t.getName(), e));
            return thread;
        };
    }

    /**
     * Creates a fixed-size pool with an unbounded queue. Its threads end after ten idle seconds. The caller shuts it
     * down.
     */
    public static ThreadPoolExecutor pool(String name, int threads) {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                threads, threads, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), named(name));
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    /** Creates a single-threaded scheduler for delays and deadlines; tasks must not block. The caller shuts it down. */
    public static ScheduledThreadPoolExecutor timer(String name) {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named(name));
        timer.setRemoveOnCancelPolicy(true);
        timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        return timer;
    }

    /** Creates a single-threaded executor, which runs tasks in submission order. The caller shuts it down. */
    public static java.util.concurrent.ExecutorService single(String name) {
        return Executors.newSingleThreadExecutor(named(name));
    }
}
