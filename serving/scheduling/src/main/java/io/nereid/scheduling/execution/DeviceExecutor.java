// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import java.util.ArrayDeque;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread pool of one device. It limits the concurrent runs on the device: with any number of models and instances,
 * at most {@link #threads} runs execute at once, so that instances do not oversubscribe the processors. (Runs of tiny
 * models on the submitting thread are not counted.)
 *
 * <p>Threads pull work: a request queue that has a batch and a free instance enlists itself here; each thread takes the
 * queue that has waited longest and runs one batch of it. Models therefore take turns, and a batch is closed only when
 * a thread is ready to run it, so that it contains as many requests as possible.
 *
 * <p>Thread-safe: one short lock, which is never held during a run.
 */
public final class DeviceExecutor implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceExecutor.class);

    /** Marks the end of a thread. */
    private static final ReadyQueue END = () -> false;

    private final Clock clock;
    private final Timer timer;
    private final int threads;
    private final ThreadFactory factory;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition work = lock.newCondition();

    @GuardedBy("lock") private final ArrayDeque<ReadyQueue> line = new ArrayDeque<>();

    @GuardedBy("lock") private int started;

    @GuardedBy("lock") private boolean closed;

    /** Creates a pool on the system clock. Its threads start when they are first needed. */
    public DeviceExecutor(String name, int threads) {
        this(name, threads, Clock.system());
    }

    /** Creates a pool on the given clock, which must run as fast as the system clock. */
    public DeviceExecutor(String name, int threads, Clock clock) {
        this(atLeastOne(threads), clock, Timer.threaded(name + "-timer"), Threads.named(name));
    }

    /**
     * Creates a pool whose threads are bound to the policy's processors.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when threads cannot be bound to these processors
     */
    public DeviceExecutor(String name, int threads, Clock clock, HostPolicy policy) {
        this(atLeastOne(threads), clock, Timer.threaded(name + "-timer"), bound(Threads.named(name), policy));
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

    /** Creates a pool with the given timer; with 0 threads, runs execute only in {@link #runNext}. */
    public DeviceExecutor(String name, int threads, Clock clock, Timer timer) {
        this(threads, clock, timer, Threads.named(name));
    }

    private DeviceExecutor(int threads, Clock clock, Timer timer, ThreadFactory factory) {
        this.clock = clock;
        this.timer = timer;
        this.threads = threads;
        this.factory = factory;
    }

    /** Returns the maximum number of batches that this pool runs at once. */
    public int threads() {
        return threads;
    }

    /** Returns the number of request queues that wait for a thread. */
    public int waiting() {
        lock.lock();
        try {
            return line.size();
        } finally {
            lock.unlock();
        }
    }

    public Clock clock() {
        return clock;
    }

    public Timer timer() {
        return timer;
    }

    /** Adds a request queue to the end of the line for one run; false when the pool is closed. */
    public boolean enlist(ReadyQueue ready) {
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
     * Ends the threads when no request queue waits. Close the schedulers first: jobs of a scheduler that is still open
     * fail with UNAVAILABLE. Does not block.
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

    /** Runs one batch of the next request queue on the calling thread; false when no request queue waits. */
    public boolean runNext() {
        ReadyQueue ready;
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
        ReadyQueue again = null;
        while (again != END) {
            again = turn(again);
        }
    }

    /**
     * Runs one batch. Returns the queue that must wait for another run, null for none, or {@link #END} to end the
     * thread. This is a separate method so that a thread that waits in the loop has no reference to a queue in its
     * stack frames; such a reference would keep the classes of an unloaded model in memory.
     */
    private @Nullable ReadyQueue turn(@Nullable ReadyQueue again) {
        ReadyQueue ready = next(again);
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

    /** Appends {@code again} to the line, then waits for and returns the first queue; null to end the thread. */
    private @Nullable ReadyQueue next(@Nullable ReadyQueue again) {
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

    /** A request queue that waits for a thread. */
    public interface ReadyQueue {
        /** Runs at most one batch; returns true when the queue must wait for another run. */
        boolean runOne();
    }
}
