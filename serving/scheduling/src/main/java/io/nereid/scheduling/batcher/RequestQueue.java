// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.scheduling.execution.QueueTimer;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The queued jobs of a model in the order in which they run, with the priority levels, queue policies and timeouts of
 * Triton ({@code ModelQueuePolicy}).
 *
 * <p>One doubly linked list holds all jobs. Its order is: levels by priority (lowest number first); within a level, the
 * jobs that are within the level's timeout before those that were delayed after it; within both, arrival order. A
 * {@link Level} refers to the last job of each of its two parts, which is where the next job is inserted. Only levels
 * with jobs are linked to each other, so that insertion does not depend on the number of configured levels, which may
 * be very large.
 *
 * <p>Holds no lock of its own: guarded by the batcher's lock.
 */
final class RequestQueue {
    /** Number of levels above which empty ones are removed, since clients choose the priority of each request. */
    private static final int KEPT_LEVELS = 64;

    private static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE / 2);

    private long levels;
    private long defaultPriority;
    private QueuePolicy defaultPolicy;
    private Map<Long, QueuePolicy> policies;
    /** The level of the default priority; the only one of models without priorities. */
    private Level defaultLevel;

    private final Map<Long, Level> otherLevels = new HashMap<>();
    private final TimeoutHeap timeouts = new TimeoutHeap();
    /** The first level with jobs. */
    private @Nullable Level firstLevel;

    private @Nullable QueuedJob head;
    private int size;
    private long rows;

    RequestQueue(ModelConfig config) {
        DynamicBatching batching = config.batching() == null ? DynamicBatching.EAGER : config.batching();
        this.levels = batching.priorityLevels();
        this.defaultPriority = levels == 0 ? 0 : batching.defaultPriority();
        this.defaultPolicy = config.queue();
        this.policies = batching.levelQueues();
        this.defaultLevel = new Level(defaultPriority, policies.getOrDefault(defaultPriority, defaultPolicy));
    }

    private Level level(long priority) {
        return new Level(priority, policies.getOrDefault(priority, defaultPolicy));
    }

    /**
     * Applies the priority levels and queue policies of another configuration. The queued jobs keep their arrival, and get the level and the
     * timeout that they would have had with it; {@link #expire} then removes those that have waited longer. A level may have more jobs than
     * its new maximum until they have left.
     */
    void configure(ModelConfig config) {
        DynamicBatching batching = config.batching() == null ? DynamicBatching.EAGER : config.batching();
        List<QueuedJob> jobs = new ArrayList<>(size);
        for (QueuedJob e = head; e != null; e = e.next) {
            jobs.add(e);
        }
        jobs.forEach(e -> remove(e, QueuedJob.State.QUEUED));
        levels = batching.priorityLevels();
        defaultPriority = levels == 0 ? 0 : batching.defaultPriority();
        defaultPolicy = config.queue();
        policies = batching.levelQueues();
        defaultLevel = level(defaultPriority);
        otherLevels.clear();
        for (QueuedJob e : jobs) {
            boolean delayed = e.delayed;
            long limit = e.limit;
            e.delayed = false;
            Level level = levelOf(e.job);
            append(level, e, e.since);
            if (delayed) {
                timeouts.remove(e);
                delay(level, e);
                e.expiry = e.deadline;
                if (e.deadline != QueuedJob.NEVER) {
                    timeouts.add(e);
                }
            }
            if (limit != QueuedJob.NEVER) {
                limit(e, limit);
            }
        }
    }

    /** Returns the level of a job; an absent priority, and one above the number of levels, means the default level. */
    Level levelOf(InferenceJob job) {
        if (levels == 0) {
            return defaultLevel;
        }
        long priority = job.request().options().priority();
        if (priority == 0 || priority == defaultPriority || Long.compareUnsigned(priority, levels) > 0) {
            return defaultLevel;
        }
        Level level = otherLevels.get(priority);
        if (level == null) {
            if (otherLevels.size() >= KEPT_LEVELS) {
                otherLevels.values().removeIf(l -> l.size == 0);
            }
            level = level(priority);
            otherLevels.put(priority, level);
        }
        return level;
    }

    int size() {
        return size;
    }

    /** Returns whether the job at the head is of a more urgent level than the default. */
    boolean urgent() {
        Level level = firstLevel;
        return levels > 0 && level != null && Long.compareUnsigned(level.priority, defaultPriority) < 0;
    }

    boolean isEmpty() {
        return size == 0;
    }

    /** Returns the number of rows of all queued jobs. */
    long rows() {
        return rows;
    }

    /** Returns the first job; {@link QueuedJob#next} leads to the others. Null if the queue is empty. */
    @Nullable QueuedJob head() {
        return head;
    }

    /**
     * Returns when the jobs of a batch have arrived.
     *
     * @param chosen the jobs; null for the first ones of the queue
     */
    long[] arrivals(int count, @Nullable List<QueuedJob> chosen) {
        long[] arrivals = new long[count];
        if (chosen != null) {
            for (int i = 0; i < count; i++) {
                arrivals[i] = chosen.get(i).since;
            }
            return arrivals;
        }
        QueuedJob e = head;
        for (int i = 0; i < count && e != null; i++, e = e.next) {
            arrivals[i] = e.since;
        }
        return arrivals;
    }

    /** Returns whether {@code a} comes before {@code b}, which has arrived earlier. Both are queued. */
    boolean precedes(QueuedJob a, QueuedJob b) {
        Level left = a.level;
        Level right = b.level;
        if (left == null || right == null) {
            return false;
        }
        return left == right ? !a.delayed && b.delayed : Long.compareUnsigned(left.priority, right.priority) < 0;
    }

    /** Queues a job behind the others of its level that have not been delayed. */
    void append(Level level, QueuedJob e, long now) {
        e.state = QueuedJob.State.QUEUED;
        e.level = level;
        e.expiry = QueueTimer.earlier(e.deadline, level.timeout(e.job, now));
        if (level.size == 0) {
            link(level);
        }
        insert(e, level.lastTimely != null ? level.lastTimely : lastBefore(level));
        level.lastTimely = e;
        level.size++;
        if (e.expiry != QueuedJob.NEVER) {
            timeouts.add(e);
        }
        size++;
        rows += e.rows;
    }

    /** Returns the number of jobs that run before one that is appended to a level now. */
    int ahead(Level level) {
        if (levels == 0) {
            return size;
        }
        int count = 0;
        for (Level l = firstLevel; l != null && Long.compareUnsigned(l.priority, level.priority) <= 0; l = l.next) {
            count += l.size;
        }
        return count;
    }

    /** Sets the time at which a queued job is refused, unless it is taken before. */
    void limit(QueuedJob e, long at) {
        e.limit = at;
        long expiry = QueueTimer.earlier(e.expiry, at);
        if (expiry != e.expiry) {
            timeouts.remove(e);
            e.expiry = expiry;
            timeouts.add(e);
        }
    }

    /**
     * Removes jobs with state REFUSED, so that {@code most} are left: those of the most urgent levels, and the newest of
     * a level. Jobs that must not be refused stay as well.
     *
     * @param refused receives the removed jobs, which the caller must fail
     */
    void refuseAllBut(int most, List<QueuedJob> refused) {
        int left = most;
        Level of = null;
        int drop = 0;
        QueuedJob next;
        for (QueuedJob e = head; e != null; e = next) {
            next = e.next;
            Level level = e.level;
            if (level != null && level != of) {
                of = level;
                drop = Math.max(0, level.size - left);
                left -= level.size - drop;
            }
            if (drop > 0 && level != null) {
                drop--;
                // A job that has begun to run in parts stays.
                if (e.job.refusable() && !level.limits(e.job) && e.rows == Math.max(1, e.job.batchSize())) {
                    remove(e, QueuedJob.State.REFUSED);
                    refused.add(e);
                }
            }
        }
    }

    /** Removes a job from any position, and sets its state. */
    void remove(QueuedJob e, QueuedJob.State because) {
        Level level = e.level;
        if (level == null) {
            throw new IllegalStateException("a job is not in the queue that it leaves: " + e.state);
        }
        e.state = because;
        unlink(level, e);
        e.level = null;
        if (--level.size == 0) {
            unlink(level);
        }
        timeouts.remove(e);
        size--;
        rows -= e.rows;
    }

    /** Records that a batch has taken some, but not all, rows of a queued job. */
    void shrink(QueuedJob e, int by) {
        e.rows -= by;
        rows -= by;
        if (e.limit != QueuedJob.NEVER) {
            // It has begun to run, so it must not be refused any more.
            timeouts.remove(e);
            e.limit = QueuedJob.NEVER;
            e.expiry = e.deadline;
            if (e.expiry != QueuedJob.NEVER) {
                timeouts.add(e);
            }
        }
    }

    /** Returns when the next job times out; {@link QueuedJob#NEVER} for none. */
    long nextExpiry() {
        QueuedJob next = timeouts.next();
        return next == null ? QueuedJob.NEVER : next.expiry;
    }

    /**
     * Handles all jobs that have timed out. A job whose own deadline has passed is removed with state TAKEN. For the
     * others the level's policy decides: REJECT removes them with state TIMED_OUT, DELAY moves them behind the others
     * of their level, where only their own deadline still counts. A job whose {@link #limit} has passed is removed with
     * state REFUSED.
     *
     * @param timedOut receives the removed jobs, which the caller must fail
     */
    void expire(long now, List<QueuedJob> timedOut) {
        for (QueuedJob e = timeouts.next(); e != null && e.expiry - now <= 0; e = timeouts.next()) {
            Level level = e.level;
            if (e.late(now)) {
                remove(e, QueuedJob.State.TAKEN);
                timedOut.add(e);
            } else if (e.limit != QueuedJob.NEVER && e.limit - now <= 0) {
                remove(e, QueuedJob.State.REFUSED);
                timedOut.add(e);
            } else if (level != null && level.delays) {
                timeouts.remove(e);
                delay(level, e);
                e.expiry = e.deadline;
                if (e.deadline != QueuedJob.NEVER) {
                    timeouts.add(e);
                }
            } else {
                remove(e, QueuedJob.State.TIMED_OUT);
                timedOut.add(e);
            }
        }
    }

    private void delay(Level level, QueuedJob e) {
        unlink(level, e);
        e.delayed = true;
        QueuedJob last = level.lastDelayed != null ? level.lastDelayed : level.lastTimely;
        insert(e, last != null ? last : lastBefore(level));
        level.lastDelayed = e;
    }

    // ---- links between jobs ----

    /** Returns the last job of the levels before {@code level}; null if there is none. */
    private static @Nullable QueuedJob lastBefore(Level level) {
        Level before = level.previous;
        if (before == null) {
            return null;
        }
        return before.lastDelayed != null ? before.lastDelayed : before.lastTimely;
    }

    /** Inserts a job behind {@code previous}, or as the first if that is null. */
    private void insert(QueuedJob e, @Nullable QueuedJob previous) {
        QueuedJob next = previous == null ? head : previous.next;
        e.previous = previous;
        e.next = next;
        if (previous == null) {
            head = e;
        } else {
            previous.next = e;
        }
        if (next != null) {
            next.previous = e;
        }
    }

    private void unlink(Level level, QueuedJob e) {
        QueuedJob previous = e.previous;
        QueuedJob next = e.next;
        // If it was the last of its part, the job before it now is, unless that belongs to another part.
        if (e == level.lastTimely || e == level.lastDelayed) {
            QueuedJob last =
                    previous != null && previous.level == level && previous.delayed == e.delayed ? previous : null;
            if (e.delayed) {
                level.lastDelayed = last;
            } else {
                level.lastTimely = last;
            }
        }
        if (previous == null) {
            head = next;
        } else {
            previous.next = next;
        }
        if (next != null) {
            next.previous = previous;
        }
        e.previous = null;
        e.next = null;
    }

    // ---- links between levels ----

    /** Inserts a level that has become non-empty before the first one with a lower priority. */
    private void link(Level level) {
        Level before = null;
        Level after = firstLevel;
        while (after != null && Long.compareUnsigned(after.priority, level.priority) < 0) {
            before = after;
            after = after.next;
        }
        level.previous = before;
        level.next = after;
        if (before == null) {
            firstLevel = level;
        } else {
            before.next = level;
        }
        if (after != null) {
            after.previous = level;
        }
    }

    private void unlink(Level level) {
        if (level.previous == null) {
            firstLevel = level.next;
        } else {
            level.previous.next = level.next;
        }
        if (level.next != null) {
            level.next.previous = level.previous;
        }
        level.previous = null;
        level.next = null;
    }

    /** Converts to nanoseconds, limited to {@link #FOREVER} so that sums with the clock do not overflow. */
    static long nanos(Duration time) {
        return time.compareTo(FOREVER) < 0 ? Math.max(0, time.toNanos()) : FOREVER.toNanos();
    }

    /** A priority level: its queue policy, and its part of the queue. Guarded by the batcher's lock. */
    static final class Level {
        private final long priority;
        private final int maxSize;
        private final long defaultTimeout;
        private final boolean override;
        /** Whether a timeout delays a job instead of rejecting it. */
        private final boolean delays;

        private int size;
        /** The last job that has not been delayed; null for none. */
        private @Nullable QueuedJob lastTimely;
        /** The last job that was delayed after a timeout; null for none. */
        private @Nullable QueuedJob lastDelayed;

        /** Neighbours among the levels with jobs. */
        private @Nullable Level previous;

        private @Nullable Level next;

        private Level(long priority, QueuePolicy policy) {
            this.priority = priority;
            this.maxSize = policy.maxSize();
            this.defaultTimeout = nanos(policy.defaultTimeout());
            this.override = policy.allowTimeoutOverride();
            this.delays = policy.onTimeout() == TimeoutAction.DELAY;
        }

        int size() {
            return size;
        }

        /** Returns whether the policy has a maximum size. */
        boolean limited() {
            return maxSize > 0;
        }

        /** Returns whether a job has a timeout that limits its wait. */
        boolean limits(InferenceJob job) {
            return override && job.request().options().timeoutNanos() > 0;
        }

        boolean full() {
            return maxSize > 0 && size >= maxSize;
        }

        /**
         * Returns the time until which a job that arrives now may wait; {@link QueuedJob#NEVER} for no limit. The
         * timeout of the request overrides the default only if the policy allows that, and only to a shorter one.
         */
        private long timeout(InferenceJob job, long now) {
            long timeout = defaultTimeout;
            if (override) {
                long requested = job.request().options().timeoutNanos();
                if (requested > 0 && (timeout == 0 || requested < timeout)) {
                    timeout = requested;
                }
            }
            return timeout == 0 || timeout >= FOREVER.toNanos() ? QueuedJob.NEVER : now + timeout;
        }
    }
}
