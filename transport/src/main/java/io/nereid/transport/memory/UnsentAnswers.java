// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.memory;

import io.nereid.tensor.ByteBudget;

/**
 * The answers of one connection that its client has not taken yet. Beyond a small amount they are reserved in the
 * budget, and the client is observed: a client that takes nothing for the idle timeout, or is slow while the budget is
 * short, loses its connection. Confined to the connection's event loop.
 */
public abstract class UnsentAnswers extends ClientMemory {
    /** Fewer bytes than this are not reserved: a socket takes them in one or two writes. */
    private static final int FREE = 64 << 10;

    private final RequestMemory memory;
    private final ClientMemoryMonitor monitor;
    private final ByteBudget budget;
    private final long idleNanos;
    private long given;
    private long charged;

    /** @param idleNanos the time in which a client has to take something */
    protected UnsentAnswers(RequestMemory memory, ClientMemoryMonitor monitor, ByteBudget budget, long idleNanos) {
        this.memory = memory;
        this.monitor = monitor;
        this.budget = budget;
        this.idleNanos = idleNanos;
    }

    /** The bytes that wait now. */
    protected abstract long unsent();

    /** Closes the connection at once. */
    protected abstract void close();

    /** Counts bytes of an answer that have been handed to the connection; closes it when they are too many. */
    public final void written(long bytes) {
        given += bytes;
        settle();
        // one answer may be larger than any limit; a further one may not wait behind it
        if (charged > bytes && (charged - bytes > budget.limit() || memory.isOverrun())) {
            cut();
        }
    }

    /** Adapts the reservation to what waits now. */
    public final void settle() {
        long unsent = unsent();
        long charge = unsent > FREE ? unsent : 0;
        if (charge == charged) {
            return;
        }
        if (charge > charged) {
            budget.reserve(charge - charged);
        } else {
            budget.release(charged - charge);
        }
        charged = charge;
        if (charge > 0) {
            monitor.add(this);
        } else {
            monitor.remove(this);
        }
    }

    /** Whether there is a reservation to settle. */
    public final boolean isCharged() {
        return charged > 0;
    }

    /** Ends the accounting: the connection is closed. */
    public final void end() {
        monitor.remove(this);
        budget.release(charged);
        charged = 0;
    }

    @Override
    protected final long progress() {
        return given - unsent();
    }

    @Override
    protected final long held() {
        return charged;
    }

    @Override
    protected final void check(long now) {
        settle();
        if (charged > 0 && stillNanos(now) > idleNanos) {
            close();
        }
    }

    @Override
    protected final void cut() {
        end();
        close();
    }
}
