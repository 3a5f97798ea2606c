// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.memory;

import io.nereid.base.Clock;
import io.nereid.tensor.ByteBudget;
import io.netty.channel.EventLoop;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * The memory for requests of one server: the budget, the part of it that may be allocated ahead of the bytes received,
 * and the monitors of the event loops. Thread-safe.
 */
public final class RequestMemory {
    private static final long MOST_SAMPLE_MILLIS = 1000;
    private static final long LEAST_SAMPLE_MILLIS = 20;

    private final ByteBudget budget;
    private final ByteBudget ahead;
    private final Clock clock;
    private final long graceNanos;
    private final long sampleMillis;
    private final long share;
    private final Map<EventLoop, ClientMemoryMonitor> monitors = new ConcurrentHashMap<>();

    /**
     * Creates the memory of a server.
     *
     * @param grace the time after which a body has to have arrived at {@link ClientMemory#SLOW} bytes per second; a
     *     body without a byte for half of it is late too
     * @param largest the largest body
     */
    public RequestMemory(ByteBudget budget, Clock clock, Duration grace, long largest) {
        this.budget = budget;
        this.ahead = new ByteBudget(budget.limit() / 4);
        this.clock = clock;
        this.graceNanos = grace.toNanos();
        this.sampleMillis = Math.max(LEAST_SAMPLE_MILLIS, Math.min(MOST_SAMPLE_MILLIS, grace.toMillis() / 4));
        this.share = Math.max(budget.limit() / 2, Math.min(budget.limit(), 2 * largest));
        budget.onShortage(this::shortage);
    }

    /** The whole budget. */
    public ByteBudget budget() {
        return budget;
    }

    /** The part of the budget of one connection with many streams: a half, if that is enough for two large bodies. */
    public ByteBudget connectionShare() {
        return budget.share(share);
    }

    /** Counts bytes that were allocated and have not arrived. */
    public ByteBudget ahead() {
        return ahead;
    }

    /** The monitor of an event loop. */
    public ClientMemoryMonitor monitor(EventLoop loop) {
        ClientMemoryMonitor known = monitors.get(loop);
        return known != null ? known : monitors.computeIfAbsent(loop, l -> new ClientMemoryMonitor(this, l));
    }

    /** Soon cuts slow clients, if there are any, until {@code wanted} bytes are left, and an eighth of the budget. */
    public void shortage(long wanted) {
        for (ClientMemoryMonitor monitor : monitors.values()) {
            monitor.shortage(wanted > budget.limit() ? 0 : wanted);
        }
    }

    /** Whether less than {@code wanted} bytes or an eighth of the budget are left. */
    boolean isShort(long wanted) {
        return budget.left() < Math.max(wanted, budget.limit() / 8);
    }

    /** Whether answers that wait have taken the budget a second time, so that another one is too many. */
    boolean isOverrun() {
        return budget.left() < -budget.limit();
    }

    long nanos() {
        return clock.nanos();
    }

    long sampleMillis() {
        return sampleMillis;
    }

    /** Whether a body is late that has had {@code elapsed} nanoseconds, of which the last {@code still} without a byte. */
    public boolean isLate(long elapsed, long still, long received) {
        return still > graceNanos / 2
                || elapsed - graceNanos > received / ClientMemory.SLOW * TimeUnit.SECONDS.toNanos(1);
    }
}
