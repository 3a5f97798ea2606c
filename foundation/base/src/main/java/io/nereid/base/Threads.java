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

/** The only place where threads are made: each has a name, is a daemon, and reports what it failed to catch. */
public final class Threads {
    private static final Logger LOG = System.getLogger(Threads.class.getName());

    private Threads() {}

    /** A factory of daemon threads named {@code name-1}, {@code name-2}, … Thread-safe. */
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

    /** A fixed pool with an unbounded queue; its threads end after ten idle seconds. The caller shuts it down. */
    public static ThreadPoolExecutor pool(String name, int threads) {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                threads, threads, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), named(name));
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    /** One thread for delays and deadlines; tasks must not block. The caller shuts it down. */
    public static ScheduledThreadPoolExecutor timer(String name) {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named(name));
        timer.setRemoveOnCancelPolicy(true);
        timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        return timer;
    }

    /** One thread that runs tasks in the order they came. The caller shuts it down. */
    public static java.util.concurrent.ExecutorService single(String name) {
        return Executors.newSingleThreadExecutor(named(name));
    }
}
