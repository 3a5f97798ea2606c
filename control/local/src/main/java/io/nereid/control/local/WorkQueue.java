// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

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
 * Keys to work on: each is worked on by one thread at a time, as often as it takes to see its latest state, and again after a
 * while when it failed. Thread-safe: one lock, never held while work is done.
 *
 * @param <K> the keys
 */
final class WorkQueue<K> implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(WorkQueue.class);
    private static final int WORKERS = 4;

    private final Loop loop;
    private final LocalSettings.Retries retries;
    private final Consumer<K> work;
    private final ReentrantLock lock = new ReentrantLock();
    private final Set<K> waiting = new LinkedHashSet<>();
    private final Set<K> working = new LinkedHashSet<>();
    private final Map<K, Backoff> failed = new HashMap<>();
    private final Map<K, Due> due = new HashMap<>();
    private boolean closed;

    /** When a key is to be worked on again. */
    private record Due(long nanos, Loop.Timer timer) {}

    WorkQueue(Loop loop, LocalSettings.Retries retries, Consumer<K> work) {
        this.loop = loop;
        this.retries = retries;
        this.work = work;
    }

    /** Has a key worked on soon. */
    void add(K key) {
        lock.lock();
        try {
            if (!closed && waiting.add(key)) {
                dispatch();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Has a key worked on after a time, or earlier if that was asked for before. */
    void addAfter(K key, Duration time) {
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

    private void dispatch() {
        while (working.size() < WORKERS) {
            K next = waiting.stream()
                    .filter(k -> !working.contains(k))
                    .findFirst()
                    .orElse(null);
            if (next == null) {
                return;
            }
            waiting.remove(next);
            working.add(next);
            loop.io(() -> run(next));
        }
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
                    "{}: {}; tried again in {} ms",
                    key,
                    ServingException.from(error).describe(),
                    wait.toMillis(),
                    error);
            addAfter(key, wait);
        }
    }

    /** Forgets what is waiting; what is worked on is not waited for. */
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
