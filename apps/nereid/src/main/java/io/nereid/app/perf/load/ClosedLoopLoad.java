// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import io.nereid.base.Threads;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A number of clients, each of which sends its next request when it has the response to the one before. Thread-safe.
 *
 * <p>Over a network there are no threads: the end of a request sends the next one. In process each client has a thread, as the
 * model may run on it.
 */
final class ClosedLoopLoad implements ModelLoad {
    private final LoadTarget target;
    private final LoadRecorder recorder;
    private final LoadTimer timer;
    private final int clients;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicInteger running = new AtomicInteger();
    private volatile boolean stopped;

    ClosedLoopLoad(LoadTarget target, LoadRecorder recorder, LoadTimer timer, int clients) {
        this.target = target;
        this.recorder = recorder;
        this.timer = timer;
        this.clients = clients;
    }

    @Override
    public void start() {
        running.set(clients);
        if (!target.runsOnCaller()) {
            for (int i = 0; i < clients; i++) {
                new LoopClient().drive();
            }
            return;
        }
        ThreadPoolExecutor threads = Threads.pool("perf-client", clients);
        for (int i = 0; i < clients; i++) {
            threads.execute(this::runBlocking);
        }
        threads.shutdown();
    }

    @Override
    public void stop() {
        stopped = true;
    }

    @Override
    public boolean ended() {
        return running.get() == 0;
    }

    /** A client that waits for each response on its own thread. */
    private void runBlocking() {
        Thread client = Thread.currentThread();
        while (!stopped) {
            LoadRecorder.Measured request = recorder.begin(timer.nanos());
            AtomicBoolean ended = new AtomicBoolean();
            target.send(next.getAndIncrement() & Integer.MAX_VALUE, failure -> {
                request.done(failure);
                ended.set(true);
                LockSupport.unpark(client);
            });
            while (!ended.get()) {
                LockSupport.park(this);
            }
        }
        running.decrementAndGet();
    }

    /** One client without a thread. Its requests follow one another, so that it is on one thread at a time. */
    private final class LoopClient implements LoadTarget.Completion {
        /** Turns that are due: above 1 while a request has ended within {@link LoadTarget#send}. */
        private final AtomicInteger turns = new AtomicInteger();

        private LoadRecorder.@Nullable Measured current;

        /** Sends requests until one does not end at once: a loop, as a call from each end would overflow the stack. */
        void drive() {
            if (turns.getAndIncrement() != 0) {
                return;
            }
            do {
                if (stopped) {
                    running.decrementAndGet();
                    return;
                }
                LoadRecorder.Measured request = recorder.begin(timer.nanos());
                current = request;
                target.send(next.getAndIncrement() & Integer.MAX_VALUE, this);
            } while (turns.decrementAndGet() != 0);
        }

        @Override
        public void done(@Nullable String failure) {
            LoadRecorder.Measured request = current;
            if (request != null) {
                current = null;
                request.done(failure);
            }
            drive();
        }
    }
}
