// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the periodic checks of an event loop's connections, such as that of the idle timeout, by one timer. With a timer for
 * each, ten thousand idle connections would wake the loop hundreds of times a second. The checks are divided into slots, and
 * each tick runs those of one slot, so that many connections do not keep the loop for long. Without connections there are not
 * any ticks.
 *
 * <p>Confined to the event loop.
 */
public final class ConnectionChecks {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionChecks.class);
    private static final int MOST_SLOTS = 16;
    private static final int LEAST_SLOTS = 2;
    private static final long SHORT_TICK_MILLIS = 250;

    private final EventLoop loop;
    private final long tickMillis;
    private final List<List<Check>> slots = new ArrayList<>();
    private int next;
    private int size;
    private @Nullable ScheduledFuture<?> timer;

    ConnectionChecks(EventLoop loop, long periodMillis) {
        int count = (int) Math.max(LEAST_SLOTS, Math.min(MOST_SLOTS, periodMillis / SHORT_TICK_MILLIS));
        this.loop = loop;
        this.tickMillis = Math.max(1, periodMillis / count);
        for (int i = 0; i < count; i++) {
            slots.add(new ArrayList<>());
        }
    }

    /** The check of one connection. Confined to the event loop. */
    public final class Check {
        private final Runnable action;
        private final List<Check> slot;
        /** Its place in the slot; -1 when it has ended. */
        private int index;

        private Check(Runnable action, List<Check> slot) {
            this.action = action;
            this.slot = slot;
            this.index = slot.size();
        }

        /** Ends the check; does nothing when it has ended already. */
        public void end() {
            if (index < 0) {
                return;
            }
            Check last = slot.remove(slot.size() - 1);
            if (last != this) {
                last.index = index;
                slot.set(index, last);
            }
            index = -1;
            if (--size == 0 && timer != null) {
                timer.cancel(false);
                timer = null;
            }
        }
    }

    /** Runs an action once in each period until the check ends, for the first time when nearly a period has passed. */
    public Check begin(Runnable action) {
        // the slot whose turn was last comes again after all others
        Check check = new Check(action, slots.get((next + slots.size() - 1) % slots.size()));
        check.slot.add(check);
        if (size++ == 0) {
            timer = loop.scheduleAtFixedRate(this::tick, tickMillis, tickMillis, TimeUnit.MILLISECONDS);
        }
        return check;
    }

    private void tick() {
        List<Check> slot = slots.get(next);
        next = (next + 1) % slots.size();
        // from the end: a check that ends itself is replaced by one that has run already
        for (int i = slot.size() - 1; i >= 0; i--) {
            if (i < slot.size()) {
                run(slot.get(i));
            }
        }
    }

    private static void run(Check check) {
        try {
            check.action.run();
        } catch (RuntimeException e) {
            // The checks of the other connections go on.
            LOG.error("the check of a connection failed", e);
        }
    }
}
