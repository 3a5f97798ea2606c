// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
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
 * <p>Threads pull work: a request queue that has a batch and a free instance enlists itself here; each thread takes a
 * queue and runs one batch of it. A batch is closed only when a thread is ready to run it, so that it contains as many
 * requests as possible.
 *
 * <p><b>Turns.</b> A thread takes the model with the fewest runs in progress, and among equal ones the model that has
 * waited longest. A model therefore gets the same number of turns whether it has one instance or many.
 *
 * <p><b>Long runs.</b> A run that has lasted {@link #LONG_NANOS} while another model waits no longer counts against the
 * limit: a spare thread takes the waiting model, and the kernel shares the processors. Spare threads are only for
 * models that have less than their share, which is the number of threads divided by the number of models with work, at
 * least one. A model alone therefore never has more runs than there are threads. Nothing looks for long runs while no
 * model waits for another; otherwise the timer does, once in {@link #LONG_NANOS}. Spare threads end when they have been
 * idle for some seconds.
 *
 * <p>Thread-safe: one short lock, which is never held during a run.
 */
public final class DeviceExecutor implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceExecutor.class);

    /** The duration after which a run no longer keeps other models from running. */
    static final long LONG_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /** How long a thread that is not kept waits for work before it ends. */
    static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** More than any sum of instances. A thread is started only when all existing ones wait. */
    private static final int MOST_WAITING = 4096;

    private final Clock clock;
    private final Timer timer;
    private final int threads;
    private final int kept;
    private final boolean lendsThreads;
    private final long idleNanos;
    private final ThreadFactory factory;
    private final ReentrantLock lock = new ReentrantLock();

    /** The models with waiting queues; the first has waited longest. */
    @GuardedBy("lock") private @Nullable ModelRuns first;

    @GuardedBy("lock") private @Nullable ModelRuns last;

    /** Enlisted queues that wait. */
    @GuardedBy("lock") private int waiting;

    /** Models that wait or run. */
    @GuardedBy("lock") private int models;

    @GuardedBy("lock") private final List<Worker> workers = new ArrayList<>();

    /** Workers that wait for work. The last one is woken first, so that the others can end. */
    @GuardedBy("lock") private final ArrayDeque<Worker> idle = new ArrayDeque<>();

    /** Workers that were woken or started and have not looked for work yet. */
    @GuardedBy("lock") private int waking;

    /** Runs in progress, among them the long ones. */
    @GuardedBy("lock") private int busy;

    @GuardedBy("lock") private int longRuns;

    /** Threads beyond those that run or will be taken by what waits, as of the last begin or end of a run; written under the lock. */
    private volatile int idleThreads;

    /** Whether the timer will look for long runs. */
    @GuardedBy("lock") private boolean watching;

    @GuardedBy("lock") private boolean closed;

    /** Creates a pool on the system clock. Its threads start when they are first needed. */
    public DeviceExecutor(String name, int threads) {
        this(name, threads, Clock.system());
    }

    /** Creates a pool on the given clock, which must run as fast as the system clock. */
    public DeviceExecutor(String name, int threads, Clock clock) {
        this(name, atLeastOne(threads), clock, Timer.threaded(name + "-timer"));
    }

    /**
     * Creates a pool whose threads are bound to the policy's processors.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when threads cannot be bound to these processors
     */
    public DeviceExecutor(String name, int threads, Clock clock, HostPolicy policy) {
        this(
                atLeastOne(threads),
                threads,
                IDLE_NANOS,
                clock,
                Timer.threaded(name + "-timer"),
                bound(Threads.named(name), policy),
                false);
    }

    /** Creates a pool with the given timer; with 0 threads, runs execute only in {@link #runNext}. */
    public DeviceExecutor(String name, int threads, Clock clock, Timer timer) {
        this(threads, threads, IDLE_NANOS, clock, timer, Threads.named(name));
    }

    /**
     * Creates a pool.
     *
     * @param kept threads that stay when they are idle
     * @param idleNanos how long the others stay
     */
    DeviceExecutor(int threads, int kept, long idleNanos, Clock clock, Timer timer, ThreadFactory factory) {
        this(threads, kept, idleNanos, clock, timer, factory, true);
    }

    /** As above; {@code lendsThreads}: whether a run may use the processors of idle threads, with threads of its own. */
    private DeviceExecutor(
            int threads,
            int kept,
            long idleNanos,
            Clock clock,
            Timer timer,
            ThreadFactory factory,
            boolean lendsThreads) {
        this.lendsThreads = lendsThreads;
        this.clock = clock;
        this.timer = timer;
        this.threads = threads;
        this.idleThreads = threads;
        this.kept = kept;
        this.idleNanos = idleNanos;
        this.factory = factory;
    }

    /**
     * Creates a pool for runs that wait for something else than a processor: it has a thread for every run, which ends
     * when it is idle.
     */
    public static DeviceExecutor forWaitingRuns(String name, Clock clock) {
        return new DeviceExecutor(
                MOST_WAITING, 0, IDLE_NANOS, clock, Timer.threaded(name + "-timer"), Threads.named(name), false);
    }

    /**
     * As {@link #forWaitingRuns(String, Clock)}, with threads that are bound to the policy's processors.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when threads cannot be bound to these processors
     */
    public static DeviceExecutor forWaitingRuns(String name, Clock clock, HostPolicy policy) {
        return new DeviceExecutor(
                MOST_WAITING,
                0,
                IDLE_NANOS,
                clock,
                Timer.threaded(name + "-timer"),
                bound(Threads.named(name), policy),
                false);
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

    /** Returns the maximum number of batches that this pool runs at once, apart from long ones. */
    public int threads() {
        return threads;
    }

    /**
     * Returns how many runs could begin now at once beside those in progress and those that wait: 0 when the device is busy, and for
     * threads that are bound to processors, since the threads that a library starts are not. Without a lock: the answer may be out
     * of date when it is used.
     */
    public int idleThreads() {
        return lendsThreads ? idleThreads : 0;
    }

    @GuardedBy("lock") private void countIdle() {
        idleThreads = Math.max(0, threads - busy - waiting);
    }

    /** Returns the number of request queues that wait for a thread. */
    public int waiting() {
        lock.lock();
        try {
            return waiting;
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

    /** Adds a request queue to the line of its model for one run; false when the pool is closed. */
    public boolean enlist(ReadyQueue ready) {
        lock.lock();
        try {
            if (closed) {
                return false;
            }
            add(ready);
            if (busy + waking - longRuns < threads && (longRuns == 0 || pick() != null)) {
                wake();
            } else {
                watch();
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
            idle.forEach(worker -> worker.work.signal());
        } finally {
            lock.unlock();
        }
        timer.close();
    }

    /** Runs one batch of the next request queue on the calling thread; false when no request queue waits. */
    public boolean runNext() {
        ModelRuns model;
        ReadyQueue ready;
        lock.lock();
        try {
            model = pick();
            if (model == null) {
                return false;
            }
            ready = poll(model);
            model.running++;
        } finally {
            lock.unlock();
        }
        boolean again = ready.runOne();
        lock.lock();
        try {
            if (again && !closed) {
                add(ready);
            }
            ran(model);
        } finally {
            lock.unlock();
        }
        return true;
    }

    // ---- the line of models ----

    @GuardedBy("lock") private void add(ReadyQueue ready) {
        ModelRuns model = ready.runs();
        if (model.idle()) {
            models++;
        }
        boolean linked = !model.ready.isEmpty();
        model.ready.add(ready);
        waiting++;
        if (!linked) {
            append(model);
        }
    }

    /** Removes the next queue of a model, which goes to the end of the line if more of its queues wait. */
    @GuardedBy("lock") private ReadyQueue poll(ModelRuns model) {
        ReadyQueue ready = model.ready.remove();
        waiting--;
        unlink(model);
        if (!model.ready.isEmpty()) {
            append(model);
        }
        return ready;
    }

    /** Counts the end of a run. If its queue waits again, it must have been added before. */
    @GuardedBy("lock") private void ran(ModelRuns model) {
        model.running--;
        if (model.idle()) {
            models--;
        }
    }

    /**
     * Returns the model whose turn it is; null if none may run. Passes over models with runs in progress only, so that
     * the line may be long.
     */
    @GuardedBy("lock") private @Nullable ModelRuns pick() {
        ModelRuns best = first;
        for (ModelRuns m = first; m != null && best != null && best.running > 0; m = m.next) {
            if (m.running < best.running) {
                best = m;
            }
        }
        if (best == null || threads == 0 || busy < threads) {
            return best;
        }
        return busy - longRuns < threads && best.running < share() ? best : null;
    }

    /** Returns the number of runs that a model may have while others have long ones. */
    @GuardedBy("lock") private int share() {
        return Math.max(1, threads / Math.max(1, models));
    }

    @GuardedBy("lock") private void append(ModelRuns model) {
        model.previous = last;
        model.next = null;
        if (last == null) {
            first = model;
        } else {
            last.next = model;
        }
        last = model;
    }

    @GuardedBy("lock") private void unlink(ModelRuns model) {
        if (model.previous == null) {
            first = model.next;
        } else {
            model.previous.next = model.next;
        }
        if (model.next == null) {
            last = model.previous;
        } else {
            model.next.previous = model.previous;
        }
        model.previous = null;
        model.next = null;
    }

    // ---- threads ----

    /** Wakes an idle worker, or starts one. */
    @GuardedBy("lock") private void wake() {
        Worker worker = idle.pollLast();
        if (worker != null) {
            worker.woken = true;
            waking++;
            worker.work.signal();
            return;
        }
        Worker fresh = new Worker(lock.newCondition());
        factory.newThread(() -> work(fresh)).start();
        // Only now: a thread that could not be started must not count.
        workers.add(fresh);
        waking++;
    }

    private void work(Worker worker) {
        boolean more = true;
        while (more) {
            more = turn(worker);
        }
    }

    /**
     * Runs one batch; false to end the thread. This is a separate method so that a thread that waits has no reference
     * to a queue in its stack frames; such a reference would keep the classes of an unloaded model in memory.
     */
    private boolean turn(Worker worker) {
        ReadyQueue ready = next(worker);
        if (ready == null) {
            return false;
        }
        try {
            worker.again = ready.runOne() ? ready : null;
        } catch (Throwable t) {
            LOG.error("a queue failed on thread {}", Thread.currentThread().getName(), t);
        }
        return true;
    }

    /** Ends the worker's run, then waits for and returns the next queue; null to end the thread. */
    private @Nullable ReadyQueue next(Worker worker) {
        lock.lock();
        try {
            ended(worker);
            while (true) {
                if (worker.woken) {
                    worker.woken = false;
                    waking--;
                }
                ModelRuns model = pick();
                if (model != null) {
                    return begin(worker, model);
                }
                if (closed || !await(worker)) {
                    workers.remove(worker);
                    return null;
                }
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock") private ReadyQueue begin(Worker worker, ModelRuns model) {
        ReadyQueue ready = poll(model);
        model.running++;
        busy++;
        countIdle();
        worker.model = model;
        if (first != null) {
            if (longRuns > 0 && waking == 0 && pick() != null) {
                wake();
            } else {
                watch();
            }
        }
        return ready;
    }

    /** Counts the end of the worker's run, if it had one, and adds its queue to the line if it waits for another. */
    @GuardedBy("lock") private void ended(Worker worker) {
        ModelRuns model = worker.model;
        if (model == null) {
            return;
        }
        if (worker.again != null) {
            add(worker.again);
            worker.again = null;
        }
        worker.model = null;
        worker.seen = false;
        busy--;
        countIdle();
        if (worker.isLong) {
            worker.isLong = false;
            longRuns--;
        }
        ran(model);
    }

    /** Waits until the worker is woken; false when it must end, because it was idle for too long. */
    @GuardedBy("lock") private boolean await(Worker worker) {
        idle.addLast(worker);
        long left = idleNanos;
        while (!worker.woken && !closed) {
            if (workers.size() <= kept) {
                worker.work.awaitUninterruptibly();
            } else if (left > 0) {
                try {
                    left = worker.work.awaitNanos(left);
                } catch (InterruptedException e) {
                    // An interrupt of an earlier run does not concern this thread: it goes on to wait.
                    LOG.trace(
                            "{} was interrupted while idle",
                            Thread.currentThread().getName());
                }
            } else {
                idle.remove(worker);
                return false;
            }
        }
        idle.remove(worker);
        return true;
    }

    // ---- long runs ----

    /** Has the timer look for long runs, if a model waits for the runs of others. */
    @GuardedBy("lock") private void watch() {
        if (watching || closed || models <= 1 || first == null || threads == 0 || busy - longRuns < threads) {
            return;
        }
        watching = true;
        for (Worker worker : workers) {
            worker.seen = worker.model != null;
        }
        timer.after(LONG_NANOS, this::findLongRuns);
    }

    /** Called by the timer: the runs that {@link #watch} has seen and that have not ended are long. */
    private void findLongRuns() {
        lock.lock();
        try {
            watching = false;
            for (Worker worker : workers) {
                if (worker.seen && !worker.isLong) {
                    worker.isLong = true;
                    longRuns++;
                }
            }
            watch();
            // One is sufficient: a worker that begins a run wakes the next one.
            if (waking == 0 && busy - longRuns < threads && pick() != null) {
                wake();
            }
        } finally {
            lock.unlock();
        }
    }

    /** A request queue that waits for a thread. */
    public interface ReadyQueue {
        /** Runs at most one batch; returns true when the queue must wait for another run. */
        boolean runOne();

        /** Returns the model's record at the executor: always the same object. */
        ModelRuns runs();
    }

    /** A thread of the pool. Guarded by the pool's lock. */
    private static final class Worker {
        final Condition work;
        /** The queue that waits for another run after this one. Used by the thread itself only. */
        @Nullable ReadyQueue again;

        /** Whether it counts as waking. */
        boolean woken = true;

        /** The model whose run is in progress. */
        @Nullable ModelRuns model;
        /** Whether the run was in progress when {@link #watch} looked last. */
        boolean seen;

        boolean isLong;

        Worker(Condition work) {
            this.work = work;
        }
    }
}
