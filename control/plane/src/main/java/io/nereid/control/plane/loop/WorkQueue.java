// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.loop;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A work queue of keys, like that of Kubernetes' controllers. A key is processed by one thread at a time; a key that is
 * added while it is processed is processed once more, so that its latest state is always seen; a failed key is retried
 * with back-off. Thread-safe: guarded by one lock, which is never held during the work.
 *
 * @param <K> the type of the keys
 */
public final class WorkQueue<K> implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(WorkQueue.class);
    private static final int WORKERS = 8;

    private final EventLoop loop;
    private final Retries retries;
    private final Consumer<K> work;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock") private final Set<K> waiting = new LinkedHashSet<>();

    @GuardedBy("lock") private final Set<K> working = new LinkedHashSet<>();

    @GuardedBy("lock") private final Map<K, Backoff> failed = new HashMap<>();

    @GuardedBy("lock") private final Map<K, Due> due = new HashMap<>();

    @GuardedBy("lock") private boolean closed;

    /** A scheduled addition of a key. */
    private record Due(long nanos, EventLoop.Timer timer) {}

    public WorkQueue(EventLoop loop, Retries retries, Consumer<K> work) {
        this.loop = loop;
        this.retries = retries;
        this.work = work;
    }

    /** Adds a key; without effect while it is already waiting. */
    public void add(K key) {
        lock.lock();
        try {
            if (!closed && waiting.add(key)) {
                dispatch();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Adds a key after a delay; an earlier scheduled addition takes precedence. */
    public void addAfter(K key, Duration time) {
        lock.lock();
        try {
            long at = loop.clock().nanos() + time.toNanos();
            Due before = due.get(key);
            if (closed || (before != null && before.nanos - at <= 0)) {
                return;
            }
            if (before != null) {
                before.timer.cancel();
            }
            due.put(key, new Due(at, loop.after(time, () -> {
                lock.lock();
                try {
                    due.remove(key);
                } finally {
                    lock.unlock();
                }
                add(key);
            })));
        } finally {
            lock.unlock();
        }
    }

    /** Starts work up to the limit of workers. Called with the lock held. */
    @GuardedBy("lock") private void dispatch() {
        while (working.size() < WORKERS) {
            // A key that is being processed stays in the queue until its worker is done: never two workers on one key.
            K next = nextIdle();
            if (next == null) {
                return;
            }
            waiting.remove(next);
            working.add(next);
            loop.io(() -> run(next));
        }
    }

    /** The first waiting key that no worker is processing, or null. */
    @GuardedBy("lock") private @Nullable K nextIdle() {
        for (K key : waiting) {
            if (!working.contains(key)) {
                return key;
            }
        }
        return null;
    }

    private void run(K key) {
        RuntimeException error = null;
        try {
            work.accept(key);
        } catch (RuntimeException e) {
            error = e;
        }
        done(key, error);
    }

    private void done(K key, @Nullable RuntimeException error) {
        Duration wait = null;
        lock.lock();
        try {
            working.remove(key);
            if (error == null) {
                failed.remove(key);
            } else {
                wait = failed.computeIfAbsent(key, k -> new Backoff(retries.shortest(), retries.longest()))
                        .next();
            }
            if (!closed) {
                dispatch();
            }
        } finally {
            lock.unlock();
        }
        if (wait != null && error != null) {
            LOG.warn(
                    "{}: {}; retried in {} ms",
                    key,
                    ServingException.from(error).describe(),
                    wait.toMillis(),
                    error);
            addAfter(key, wait);
        }
    }

    /** Drops the waiting keys; does not wait for those that are being processed. */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            waiting.clear();
            due.values().forEach(d -> d.timer.cancel());
            due.clear();
        } finally {
            lock.unlock();
        }
    }
}
