// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The queued jobs of a model by priority level. Iteration with {@link #head} and {@link #next} visits all levels as one
 * sequence, highest priority (lowest number) first; in each level, jobs that were delayed after a timeout follow the
 * others. Only levels with jobs are linked, so that iteration and insertion do not depend on the number of levels,
 * which may be very large. Guarded by the queue's lock.
 */
final class PriorityLevelQueue {
    /** Number of levels above which empty ones are removed, since clients choose the priority of each request. */
    private static final int KEPT = 64;

    private final long levels;
    private final long defaultLevel;
    private final QueuePolicy defaultPolicy;
    private final Map<Long, QueuePolicy> policies;
    private final PolicyQueue usual;
    private final Map<Long, PolicyQueue> others = new HashMap<>();
    private final TimeoutHeap expiries = new TimeoutHeap();
    private @Nullable PolicyQueue first;
    private int size;
    private long rows;

    PriorityLevelQueue(ModelConfig config) {
        DynamicBatching batching = config.batching() == null ? DynamicBatching.EAGER : config.batching();
        this.levels = batching.priorityLevels();
        this.defaultLevel = levels == 0 ? 0 : batching.defaultPriority();
        this.defaultPolicy = config.queue();
        this.policies = batching.levelQueues();
        this.usual = new PolicyQueue(defaultLevel, policies.getOrDefault(defaultLevel, defaultPolicy));
    }

    /** Returns the level of a job; an absent priority, and one above the number of levels, means the default level. */
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

    /** Returns the number of rows of all queued jobs. */
    long rows() {
        return rows;
    }

    @Nullable
    QueuedJob head() {
        return first == null ? null : first.head();
    }

    /** Returns the job after {@code e}: in its list, in the delayed list of its level, or in the next level. */
    @Nullable
    QueuedJob next(QueuedJob e) {
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

    /** Returns whether {@code a}, which was just appended to its list, comes before {@code b}. */
    boolean precedes(QueuedJob a, QueuedJob b) {
        PolicyQueue left = a.level;
        PolicyQueue right = b.level;
        if (left == null || right == null) {
            return false;
        }
        return left == right
                ? a.line == left.timely && b.line == left.delayed
                : Long.compareUnsigned(left.priority, right.priority) < 0;
    }

    void append(PolicyQueue level, QueuedJob e, long now) {
        e.state = QueuedJob.State.QUEUED;
        e.level = level;
        e.expiry = QueuedJob.earlier(e.deadline, level.timeout(e.job, now));
        if (level.size() == 0) {
            link(level);
        }
        level.timely.append(e);
        if (e.expiry != QueuedJob.NEVER) {
            expiries.add(e);
        }
        size++;
        rows += e.rows;
    }

    void remove(QueuedJob e, QueuedJob.State because) {
        PolicyQueue level = e.level;
        QueuedJobList line = e.line;
        if (level == null || line == null) {
            throw new IllegalStateException("a job is not in the queue that it leaves: " + e.state);
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

    /** Notes that a batch has taken some, but not all, rows of a queued job. */
    void shrink(QueuedJob e, int by) {
        e.rows -= by;
        rows -= by;
    }

    /** Returns when the next job times out; {@link QueuedJob#NEVER} for none. */
    long nextExpiry() {
        QueuedJob next = expiries.next();
        return next == null ? QueuedJob.NEVER : next.expiry;
    }

    /**
     * Handles all jobs that have timed out. A job whose own deadline has passed is removed with state TAKEN. For the
     * others the level's policy decides: REJECT removes them with state TIMED_OUT, DELAY moves them to the delayed
     * list, where only their own deadline still counts.
     *
     * @param refused receives the removed jobs, which the caller must fail
     */
    void expire(long now, List<QueuedJob> timedOut) {
        for (QueuedJob e = expiries.next(); e != null && e.expiry - now <= 0; e = expiries.next()) {
            PolicyQueue level = e.level;
            QueuedJobList line = e.line;
            if (e.late(now)) {
                remove(e, QueuedJob.State.TAKEN);
                timedOut.add(e);
            } else if (level != null && line != null && level.delays()) {
                expiries.remove(e);
                line.remove(e);
                level.delayed.append(e);
                e.expiry = e.deadline;
                if (e.deadline != QueuedJob.NEVER) {
                    expiries.add(e);
                }
            } else {
                remove(e, QueuedJob.State.TIMED_OUT);
                timedOut.add(e);
            }
        }
    }

    /** Inserts a level that has become non-empty before the first one with a lower priority. */
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
