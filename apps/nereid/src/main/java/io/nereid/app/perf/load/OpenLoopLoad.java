// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import io.nereid.base.Threads;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Requests at the times of a schedule, whatever the responses do. Latency counts from the time at which a request was due, so that
 * a server that stalls does not hide the requests that it holds up (coordinated omission). Thread-safe.
 */
final class OpenLoopLoad implements ModelLoad {
    /** Threads that run models of this process, of which more would only take turns on the cores. */
    private static final int CALLERS = Math.max(16, 4 * Runtime.getRuntime().availableProcessors());

    private final LoadTarget target;
    private final LoadRecorder recorder;
    private final LoadTimer timer;
    private final ArrivalSchedule schedule;
    private final int most;
    private final AtomicInteger inFlight = new AtomicInteger();
    private final @Nullable ThreadPoolExecutor callers;
    private volatile boolean stopped;
    private volatile boolean sending = true;
    private volatile @Nullable Thread sender;

    /** @param most the most requests in flight; further ones wait, and their latency counts */
    OpenLoopLoad(LoadTarget target, LoadRecorder recorder, LoadTimer timer, ArrivalSchedule schedule, int most) {
        this.target = target;
        this.recorder = recorder;
        this.timer = timer;
        this.schedule = schedule;
        this.most = most;
        this.callers = target.runsOnCaller() ? Threads.pool("perf-client", CALLERS) : null;
    }

    @Override
    public void start() {
        Threads.named("perf-sender").newThread(this::run).start();
    }

    /** Sends until {@link #stop}. */
    void run() {
        sender = Thread.currentThread();
        try {
            long start = timer.nanos();
            int index = 0;
            while (!stopped) {
                long due = start + schedule.next();
                while (timer.nanos() - due < 0 && !stopped) {
                    timer.park(due);
                }
                while (inFlight.get() >= most && !stopped) {
                    timer.park(timer.nanos() + 1_000_000L);
                }
                if (!stopped) {
                    send(index, due);
                    index = index + 1 & Integer.MAX_VALUE;
                }
            }
        } finally {
            sending = false;
        }
    }

    private void send(int index, long due) {
        inFlight.incrementAndGet();
        LoadRecorder.Measured request = recorder.begin(due);
        Runnable action = () -> {
            request.sent();
            target.send(index, failure -> {
                request.done(failure);
                inFlight.decrementAndGet();
            });
        };
        if (callers == null) {
            action.run();
        } else {
            callers.execute(action);
        }
    }

    @Override
    public void stop() {
        stopped = true;
        Thread waiting = sender;
        if (waiting != null) {
            LockSupport.unpark(waiting);
        }
        if (callers != null) {
            callers.shutdown();
        }
    }

    @Override
    public boolean ended() {
        return !sending && inFlight.get() == 0;
    }
}
