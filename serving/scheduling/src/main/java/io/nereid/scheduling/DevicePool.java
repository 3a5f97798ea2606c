// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import java.util.ArrayDeque;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads of one device, and with them the budget of runs: whatever the number of models and of their instances, at
 * most {@link #threads} runs go on at once in a pool, so that instances do not oversubscribe the processors. (Only runs
 * on the submitting thread, of models that prove tiny, come on top.) They pull: a queue that has a batch to run and an instance to run it on enlists itself, and
 * each thread runs one batch of the queue that has been in line longest, so that every model gets its turn. Thread-safe
 * by a short lock that is never held during a run.
 */
public final class DevicePool implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DevicePool.class);

    /** Says that a thread's work is done. */
    private static final Ready END = () -> false;

    private final Clock clock;
    private final Timer timer;
    private final int threads;
    private final ThreadFactory factory;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition work = lock.newCondition();
    private final ArrayDeque<Ready> line = new ArrayDeque<>();
    private int started;
    private boolean closed;

    /** A pool on the machine's clock. Its threads start when first needed. */
    public DevicePool(String name, int threads) {
        this(name, threads, Clock.system());
    }

    /** A pool on the given clock, which must run as fast as the machine's. */
    public DevicePool(String name, int threads, Clock clock) {
        this(atLeastOne(threads), clock, Timer.threaded(name + "-timer", clock), Threads.named(name));
    }

    /**
     * A pool whose threads stay on the policy's processors.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when this machine cannot do that
     */
    public DevicePool(String name, int threads, Clock clock, HostPolicy policy) {
        this(atLeastOne(threads), clock, Timer.threaded(name + "-timer", clock), bound(Threads.named(name), policy));
    }

    private static ThreadFactory bound(ThreadFactory factory, HostPolicy policy) {
        policy.check();
        return task -> factory.newThread(() -> {
            policy.bind();
            task.run();
        });
    }

    private static int atLeastOne(int threads) {
        if (threads < 1) {
            throw new IllegalArgumentException("threads: " + threads + " (expected: >= 1)");
        }
        return threads;
    }

    /** With a timer of the caller's; a pool of no threads runs by {@link #runNext} only. */
    DevicePool(String name, int threads, Clock clock, Timer timer) {
        this(threads, clock, timer, Threads.named(name));
    }

    private DevicePool(int threads, Clock clock, Timer timer, ThreadFactory factory) {
        this.clock = clock;
        this.timer = timer;
        this.threads = threads;
        this.factory = factory;
    }

    /** The number of batches this pool runs at once. */
    public int threads() {
        return threads;
    }

    /** Queues in line for a thread. */
    public int waiting() {
        lock.lock();
        try {
            return line.size();
        } finally {
            lock.unlock();
        }
    }

    Clock clock() {
        return clock;
    }

    Timer timer() {
        return timer;
    }

    /** Puts a queue in line for one run; false when the pool is closed. */
    boolean enlist(Ready ready) {
        lock.lock();
        try {
            if (closed) {
                return false;
            }
            line.add(ready);
            if (lock.hasWaiters(work)) {
                work.signal();
            } else if (started < threads) {
                started++;
                factory.newThread(this::work).start();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Ends the threads once the line is empty. Close the schedulers first: jobs of one that is still in use fail with
     * UNAVAILABLE. Returns at once.
     */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            work.signalAll();
        } finally {
            lock.unlock();
        }
        timer.close();
    }

    /** Lets the calling thread take one turn; false when nothing is in line. */
    boolean runNext() {
        Ready ready;
        lock.lock();
        try {
            ready = line.poll();
        } finally {
            lock.unlock();
        }
        if (ready == null) {
            return false;
        }
        if (ready.runOne()) {
            var unused = enlist(ready);
        }
        return true;
    }

    private void work() {
        Ready again = null;
        while (again != END) {
            again = turn(again);
        }
    }

    /**
     * One turn, or {@link #END}; gives the queue that must go in line again. A method of its own, so that a thread that waits
     * has no queue in its frames: that would keep an unloaded model's classes in memory.
     */
    private @Nullable Ready turn(@Nullable Ready again) {
        Ready ready = next(again);
        if (ready == null) {
            return END;
        }
        try {
            return ready.runOne() ? ready : null;
        } catch (Throwable t) {
            LOG.error("a queue failed on thread {}", Thread.currentThread().getName(), t);
            return null;
        }
    }

    /** The queue whose turn it is, {@code again} having gone to the end of the line; null to end the thread. */
    private @Nullable Ready next(@Nullable Ready again) {
        lock.lock();
        try {
            if (again != null) {
                line.add(again);
            }
            while (line.isEmpty()) {
                if (closed) {
                    return null;
                }
                work.awaitUninterruptibly();
            }
            return line.poll();
        } finally {
            lock.unlock();
        }
    }

    /** A queue that stands in line. */
    interface Ready {
        /** Runs at most one batch; true when it must go in line again. */
        boolean runOne();
    }
}
