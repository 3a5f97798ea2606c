// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.ModelConfig.Queue;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What waits: the priority levels of a queue, read as one line from the most urgent level's head on, in each level the
 * jobs that have waited too long behind the others. Guarded by the queue's lock.
 */
final class Levels {
    /** Empty levels beyond so many are forgotten: clients choose how many there are. */
    private static final int KEPT = 64;

    private final long levels;
    private final long defaultLevel;
    private final Queue defaultPolicy;
    private final Map<Long, Queue> policies;
    private final PolicyQueue usual;
    private final Map<Long, PolicyQueue> others = new HashMap<>();
    private final Expiries expiries = new Expiries();
    private @Nullable PolicyQueue first;
    private int size;
    private long rows;

    Levels(ModelConfig config) {
        Batching batching = config.batching() == null ? Batching.EAGER : config.batching();
        this.levels = batching.priorityLevels();
        this.defaultLevel = levels == 0 ? 0 : batching.defaultPriority();
        this.defaultPolicy = config.queue();
        this.policies = batching.levelQueues();
        this.usual = new PolicyQueue(defaultLevel, policies.getOrDefault(defaultLevel, defaultPolicy));
    }

    /** The level that a job belongs to. */
    PolicyQueue of(InferenceJob job) {
        if (levels == 0) {
            return usual;
        }
        long priority = job.request().options().priority();
        if (priority == 0 || priority == defaultLevel || Long.compareUnsigned(priority, levels) > 0) {
            return usual;
        }
        PolicyQueue level = others.get(priority);
        if (level == null) {
            if (others.size() >= KEPT) {
                others.values().removeIf(l -> l.size() == 0);
            }
            level = new PolicyQueue(priority, policies.getOrDefault(priority, defaultPolicy));
            others.put(priority, level);
        }
        return level;
    }

    int size() {
        return size;
    }

    boolean isEmpty() {
        return size == 0;
    }

    /** Rows of all that waits. */
    long rows() {
        return rows;
    }

    @Nullable Entry head() {
        return first == null ? null : first.head();
    }

    /** Who is served after {@code e}. */
    @Nullable Entry next(Entry e) {
        if (e.next != null) {
            return e.next;
        }
        PolicyQueue level = e.level;
        if (level == null) {
            return null;
        }
        if (e.line == level.timely && level.delayed.head != null) {
            return level.delayed.head;
        }
        return level.next == null ? null : level.next.head();
    }

    /** Whether {@code a}, the newest of its line, is served before {@code b}. */
    boolean overtakes(Entry a, Entry b) {
        PolicyQueue left = a.level;
        PolicyQueue right = b.level;
        if (left == null || right == null) {
            return false;
        }
        return left == right
                ? a.line == left.timely && b.line == left.delayed
                : Long.compareUnsigned(left.priority, right.priority) < 0;
    }

    void append(PolicyQueue level, Entry e, long now) {
        e.state = Entry.State.QUEUED;
        e.level = level;
        e.expiry = Entry.earlier(e.deadline, level.timeout(e.job, now));
        if (level.size() == 0) {
            link(level);
        }
        level.timely.append(e);
        if (e.expiry != Entry.NEVER) {
            expiries.add(e);
        }
        size++;
        rows += e.rows;
    }

    void remove(Entry e, Entry.State because) {
        PolicyQueue level = e.level;
        Line line = e.line;
        if (level == null || line == null) {
            throw new IllegalStateException("an entry leaves a line in which it is not: " + e.state);
        }
        e.state = because;
        line.remove(e);
        e.level = null;
        if (level.size() == 0) {
            unlink(level);
        }
        if (e.expiryIndex >= 0) {
            expiries.remove(e);
        }
        size--;
        rows -= e.rows;
    }

    /** Some rows of a waiting entry, but not all, are taken. */
    void shrink(Entry e, int by) {
        e.rows -= by;
        rows -= by;
    }

    /** When the next entry has waited too long; {@link Entry#NEVER} for none. */
    long nextExpiry() {
        Entry next = expiries.next();
        return next == null ? Entry.NEVER : next.expiry;
    }

    /**
     * Lets go of what has waited too long: to the caller, as TAKEN when the job's own deadline has passed, or TIMED_OUT;
     * or to the end of its level.
     */
    void expire(long now, List<Entry> refused) {
        for (Entry e = expiries.next(); e != null && e.expiry - now <= 0; e = expiries.next()) {
            PolicyQueue level = e.level;
            Line line = e.line;
            if (e.late(now)) {
                remove(e, Entry.State.TAKEN);
                refused.add(e);
            } else if (level != null && line != null && level.delays()) {
                expiries.remove(e);
                line.remove(e);
                level.delayed.append(e);
                e.expiry = e.deadline;
                if (e.deadline != Entry.NEVER) {
                    expiries.add(e);
                }
            } else {
                remove(e, Entry.State.TIMED_OUT);
                refused.add(e);
            }
        }
    }

    private void link(PolicyQueue level) {
        PolicyQueue before = null;
        PolicyQueue after = first;
        while (after != null && Long.compareUnsigned(after.priority, level.priority) < 0) {
            before = after;
            after = after.next;
        }
        level.previous = before;
        level.next = after;
        if (before == null) {
            first = level;
        } else {
            before.next = level;
        }
        if (after != null) {
            after.previous = level;
        }
    }

    private void unlink(PolicyQueue level) {
        if (level.previous == null) {
            first = level.next;
        } else {
            level.previous.next = level.next;
        }
        if (level.next != null) {
            level.next.previous = level.previous;
        }
        level.previous = null;
        level.next = null;
    }
}
