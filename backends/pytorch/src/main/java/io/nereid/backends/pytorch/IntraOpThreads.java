// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.pytorch.jni.JniUtils;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.WideRuns;
import io.nereid.base.Threads;
import java.util.ArrayDeque;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The threads of an operation of libtorch. libtorch uses GNU's OpenMP, which counts them for each thread that calls it, and gives
 * each of these a team of its own. Once the teams of a process have more threads than the machine, a team's threads no longer spin between
 * operations but sleep, and waking them for every operation makes a run of ResNet-18 a third longer. So runs with several threads are
 * made by threads of their own, as many as there are such runs at once, whichever threads ask for them. The last one that was used
 * is used next; one that has been idle for some seconds ends, and its team with it. Runs with one thread need no team. Thread-safe.
 *
 * @param count threads of an operation, 1 or more
 */
record IntraOpThreads(int count) implements WideRuns.RunVariant {
    private static final int KEPT_SECONDS = 10;
    private static final ThreadFactory CALLERS = Threads.named("pytorch-run");
    private static final Object SETTING = new Object();

    /** What a thread has set for itself; 0 for nothing. */
    private static final ThreadLocal<Integer> OF_THREAD = ThreadLocal.withInitial(() -> 0);

    /** The threads without a run; the last one is used next. */
    @GuardedBy("itself") private static final ArrayDeque<Caller> IDLE = new ArrayDeque<>();

    /** Runs with these threads per operation, and returns what the run returns or throws what it throws. */
    <T> T run(Supplier<T> run) {
        if (count == 1) {
            return runHere(run);
        }
        Call<T> call = new Call<>(() -> runHere(run));
        Caller caller;
        synchronized (IDLE) {
            caller = IDLE.pollLast();
        }
        if (caller == null) {
            caller = new Caller();
            CALLERS.newThread(caller).start();
        }
        caller.next.add(call);
        return call.result();
    }

    /** As {@link #run}, on this thread, whose team inherits the processors that the thread is bound to. */
    <T> T runHere(Supplier<T> run) {
        if (OF_THREAD.get() != count) {
            set();
        }
        return run.get();
    }

    private void set() {
        synchronized (SETTING) {
            // A thread's first operation takes over what was set last, on any thread: reading the number counts as one.
            JniUtils.getNumThreads();
            JniUtils.setNumThreads(count);
            if (count > 1) {
                // Threads that libtorch starts itself take it over, too. They have one.
                CountDownLatch done = new CountDownLatch(1);
                Threads.named("pytorch-threads")
                        .newThread(() -> {
                            JniUtils.setNumThreads(1);
                            done.countDown();
                        })
                        .start();
                await(done);
            }
        }
        OF_THREAD.set(count);
    }

    /** Waits although the thread is interrupted: a run has the memory of its inputs until it ends. */
    private static void await(CountDownLatch done) {
        boolean interrupted = false;
        while (done.getCount() > 0) {
            try {
                done.await();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Any number of runs may have them. */
    @Override
    public boolean hold() {
        return true;
    }

    /** Nothing is kept for them. */
    @Override
    public void drop() {}

    /** A run that another thread makes. */
    private static final class Call<T> {
        private final Supplier<T> run;
        private final CountDownLatch done = new CountDownLatch(1);
        private @Nullable T value;
        private @Nullable Throwable failure;

        Call(Supplier<T> run) {
            this.run = run;
        }

        void compute() {
            try {
                value = run.get();
            } catch (RuntimeException | Error e) {
                failure = e;
            }
        }

        void complete() {
            done.countDown();
        }

        @SuppressWarnings("NullAway") // The value is what the run returned, null included.
        T result() {
            await(done);
            if (failure instanceof RuntimeException e) {
                throw e;
            } else if (failure instanceof Error e) {
                throw e;
            }
            return value;
        }
    }

    /** A thread that makes runs, one after the other. */
    private static final class Caller implements Runnable {
        final BlockingQueue<Call<?>> next = new LinkedBlockingQueue<>();

        @Override
        public void run() {
            while (true) {
                Call<?> call = null;
                try {
                    call = next.poll(KEPT_SECONDS, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    // Left over from a run; it means nothing here.
                    continue;
                }
                if (call == null) {
                    synchronized (IDLE) {
                        if (IDLE.remove(this)) {
                            return;
                        }
                    }
                    // Taken in this moment: its call comes.
                    continue;
                }
                call.compute();
                // Before the one who waits goes on, so that its next run finds this thread.
                synchronized (IDLE) {
                    IDLE.addLast(this);
                }
                call.complete();
            }
        }
    }
}
