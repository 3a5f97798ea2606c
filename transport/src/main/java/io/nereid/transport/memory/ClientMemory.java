// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.memory;

import java.net.SocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * Memory that the server holds until a client goes on: a body that it sends, or answers that it takes. While it is
 * listed at its event loop's {@link ClientMemoryMonitor}, the monitor samples how fast the client is, asks for a check of
 * the time limits, and cuts the slowest ones when the budget is short. Confined to the event loop.
 */
public abstract class ClientMemory {
    /** A client below this rate, in bytes per second, is slow. */
    public static final int SLOW = 64 << 10;

    @Nullable ClientMemory previous;

    @Nullable ClientMemory next;

    boolean listed;

    /** When the present sample began, and {@link #progress()} at that time. */
    private long sampleNanos;

    private long sampleProgress;

    /** When {@link #progress()} was last seen to change. */
    private long movedNanos;

    /** Bytes per second in the sample before; negative before the first one is complete. */
    private long rate;

    /** Starts the measurement. */
    final void begin(long now) {
        sampleNanos = now;
        movedNanos = now;
        sampleProgress = progress();
        rate = -1;
    }

    /** Completes a sample. */
    final void sample(long now) {
        long elapsed = now - sampleNanos;
        if (elapsed <= 0) {
            return;
        }
        long progress = progress();
        long bytes = Math.max(0, progress - sampleProgress);
        if (bytes > 0) {
            movedNanos = now;
        }
        rate = (long) (bytes * 1e9 / elapsed);
        sampleNanos = now;
        sampleProgress = progress;
    }

    final long rate() {
        return rate;
    }

    /** Whether the client was observed for a whole sample and is slow. */
    public final boolean isSlow() {
        return rate >= 0 && rate < SLOW;
    }

    /** For how long the client has neither sent nor taken a byte, in nanoseconds. */
    protected final long stillNanos(long now) {
        return now - movedNanos;
    }

    /** Bytes that the client has sent or taken; grows with time. */
    protected abstract long progress();

    /** Bytes that are held now. */
    protected abstract long held();

    /** The client's address. */
    protected abstract SocketAddress client();

    /** Runs after each sample: applies time limits, and gives back what is held without need. */
    protected abstract void check(long now);

    /** Gives everything back: refuses the request, or closes the connection, as the budget is short. */
    protected abstract void cut();
}
