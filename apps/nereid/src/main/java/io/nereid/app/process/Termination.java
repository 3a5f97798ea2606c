// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import io.nereid.base.Threads;
import io.nereid.transport.ServiceManagerNotifier;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;

/**
 * The end of a server's process: on the first SIGTERM or SIGINT, or when the program exits otherwise, the server stops,
 * once. After a signal the exit status is 0 when everything in progress has ended, and 1 when some of it was aborted at
 * the time limit, as {@code tritonserver} has it; without a handler a JVM ends with 143, which process managers count as
 * a failure. Further signals have no effect. Thread-safe.
 *
 * <pre>{@code
 * Termination termination = Termination.install(() -> server.stop(limit));
 * return termination.await();
 * }</pre>
 */
public final class Termination {
    /** systemd's, where it has started this process. */
    private static final ServiceManagerNotifier MANAGER = new ServiceManagerNotifier(System.getenv("NOTIFY_SOCKET"));

    private final BooleanSupplier stop;
    private final AtomicBoolean begun = new AtomicBoolean();
    private final CompletableFuture<Integer> ended = new CompletableFuture<>();

    private Termination(BooleanSupplier stop) {
        this.stop = stop;
    }

    /**
     * Handles the signals from now on.
     *
     * @param stop stops the server; returns whether everything in progress has ended. Called once, on a thread of the
     *     JVM; the log may be closed by then
     */
    public static Termination install(BooleanSupplier stop) {
        Termination termination = new Termination(stop);
        Runtime.getRuntime().addShutdownHook(Threads.named("shutdown").newThread(termination::run));
        for (String signal : new String[] {"TERM", "INT"}) {
            boolean unused = SignalHandling.handle(signal, termination::exit);
        }
        return termination;
    }

    private void exit() {
        System.exit(run());
    }

    /** Stops the server, or waits until it has been stopped; returns the exit status. */
    private int run() {
        if (begun.compareAndSet(false, true)) {
            boolean unused = MANAGER.send("STOPPING=1");
            int status = 1;
            try {
                status = stop.getAsBoolean() ? 0 : 1;
            } finally {
                ended.complete(status);
            }
        }
        return ended.join();
    }

    /** Whether the server is being stopped, so that failures of what is in progress are a consequence. */
    public boolean begun() {
        return begun.get();
    }

    /** Completes with the exit status when the server has been stopped. */
    public CompletableFuture<Integer> ended() {
        return ended;
    }

    /** Notifies the service manager that the server has started: every model is available, or has failed. */
    public void started() {
        if (!begun()) {
            boolean unused = MANAGER.send("READY=1");
        }
    }

    /** Waits until the server has been stopped; returns the exit status. */
    public int await() {
        return ended.join();
    }
}
