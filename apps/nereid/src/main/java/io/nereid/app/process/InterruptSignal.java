// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Ctrl-C (SIGINT) as a request to end with what has been done so far. A second one ends the process at once. Thread-safe.
 *
 * <pre>{@code
 * try (InterruptSignal interrupt = InterruptSignal.listen()) {
 *     while (!interrupt.received()) { ... }
 * }
 * }</pre>
 */
public final class InterruptSignal implements AutoCloseable {
    /** The exit code of a command that was ended by Ctrl-C: 128 and the number of the signal. */
    public static final int EXIT_CODE = 130;

    private final AtomicBoolean received = new AtomicBoolean();
    private final @Nullable Runnable restore;

    private InterruptSignal() {
        restore = SignalHandling.replace("INT", this::signal);
    }

    /** Listens until {@link #close}, which restores what the signal did before. */
    public static InterruptSignal listen() {
        return new InterruptSignal();
    }

    private void signal() {
        if (!received.compareAndSet(false, true)) {
            Runtime.getRuntime().halt(EXIT_CODE);
        }
    }

    /** Whether the signal has come. */
    public boolean received() {
        return received.get();
    }

    @Override
    public void close() {
        if (restore != null) {
            restore.run();
        }
    }
}
