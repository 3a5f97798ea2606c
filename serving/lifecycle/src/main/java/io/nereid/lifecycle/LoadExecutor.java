// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import io.nereid.base.Units;
import io.nereid.lifecycle.resources.LoadThreadPriority;
import io.nereid.lifecycle.resources.MemoryTracker;
import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads and unloads versions on its own thread pools, with retries and within the memory limit, and reports the results
 * to the {@link ManagerLoop}. Methods are called on the manager thread, to which the lists are confined, except for
 * {@code loadNow} and {@code unloadNow}, which run on the pools.
 */
final class LoadExecutor {
    private static final Logger LOG = LoggerFactory.getLogger(LoadExecutor.class);

    private final ManagerOptions options;
    private final Clock clock;
    private final Timer timer;
    private final ManagerLoop loop;
    private final MemoryTracker ledger;
    private final LoadThreadPriority priority;
    /** Runs the checks of {@link #priority}; separate from {@link #timer}, whose tasks are events of the manager. */
    private final Timer priorityTimer = Timer.threaded("load-priority");

    private final ThreadPoolExecutor loads;
    private final ExecutorService unloads;
    private final List<ManagedVersion> waitingForMemory = new ArrayList<>();
    private final List<ManagedVersion> waitingForRetry = new ArrayList<>();

    LoadExecutor(ManagerOptions options, Clock clock, Timer timer, ManagerLoop loop) {
        this.options = options;
        this.clock = clock;
        this.timer = timer;
        this.loop = loop;
        this.ledger = new MemoryTracker(options.memoryLimitBytes());
        this.priority =
                new LoadThreadPriority(options.loadNiceness(), LoadThreadPriority.system(), clock, priorityTimer);
        priority.prepare();
        this.loads = Threads.pool("load", Math.max(options.loadThreads(), options.initialLoadThreads()));
        this.unloads = Threads.pool("unload", options.unloadThreads());
    }

    long memoryBytes() {
        return ledger.used();
    }

    long memoryLimit() {
        return ledger.limit();
    }

    /** Reduces the number of load threads after the initial models have settled. */
    void servingBegins() {
        if (loads.getMaximumPoolSize() > options.loadThreads()) {
            loads.setCorePoolSize(options.loadThreads());
            loads.setMaximumPoolSize(options.loadThreads());
        }
    }

    /** Returns the current maximum number of concurrent loads; a surplus thread may finish one more load. */
    int loadThreads() {
        return Math.max(loads.getMaximumPoolSize(), loads.getPoolSize());
    }

    void load(ModelVersions model, ManagedVersion v) {
        boolean served = model.versions.stream().anyMatch(other -> other.phase == Phase.AVAILABLE);
        execute(loads, () -> loadNow(model, v, served));
    }

    void unload(ModelVersions model, ManagedVersion v) {
        execute(unloads, () -> {
            @Nullable String trouble = unloadNow(v);
            loop.submit(() -> loop.unloaded(model, v, trouble));
        });
    }

    /** Replaces the estimate of a loaded version by its measured size. */
    void reserveMeasured(ManagedVersion v, long bytes) {
        long estimate = ledger.reserved(v);
        // Without a limit, nothing depends on the estimate.
        if (ledger.limit() > 0 && estimate > 0 && bytes > estimate) {
            LOG.warn(
                    "{} takes {}, more than the {} that were estimated",
                    v.id,
                    Units.formatBytes(bytes),
                    Units.formatBytes(estimate));
        }
        ledger.set(v, bytes);
    }

    /** Stops a version from waiting for memory; returns whether it did wait. Its loader has not been called then. */
    boolean stopWaitingForMemory(ManagedVersion v) {
        return waitingForMemory.remove(v);
    }

    /** Starts the next attempt of a version that waits for it, without further delay. */
    void retryNow(ModelVersions model, ManagedVersion v) {
        if (waitingForRetry.remove(v)) {
            load(model, v);
        }
    }

    /** Tries versions again that wait for memory, after the reservations have changed. */
    void memoryChanged() {
        List<ManagedVersion> again = List.copyOf(waitingForMemory);
        waitingForMemory.clear();
        for (ManagedVersion v : again) {
            ModelVersions model = loop.find(v.id.model());
            if (model != null) {
                load(model, v);
            }
        }
    }

    private void memoryRejected(ModelVersions model, ManagedVersion v, ServingException error, long estimate) {
        if (v.cancelled) {
            loop.loadFailed(model, v, ManagerLoop.NO_LONGER_ASPIRED);
        } else if (ledger.fits(estimate)) {
            // Freed in the meantime.
            load(model, v);
        } else if (ledger.everFits(estimate) && memoryMayBeFreed(v)) {
            v.reason = "waits for memory: " + error.getMessage();
            waitingForMemory.add(v);
            loop.changed(model, v);
        } else {
            loop.loadFailed(model, v, error.describe());
        }
    }

    /**
     * Returns whether reserved memory of other versions may become free: they are unloading, or their load may fail.
     */
    private boolean memoryMayBeFreed(ManagedVersion except) {
        return ledger.holders().stream()
                .anyMatch(v -> v != except
                        && (v.phase == Phase.DRAINING || v.phase == Phase.UNLOADING || (v.loads() && !v.staged)));
    }

    private void loadNow(ModelVersions model, ManagedVersion v, boolean served) {
        Loader loader = v.loader;
        if (loader == null || v.cancelled) {
            if (v.loadCalled) {
                unloadNow(v);
            }
            loop.submit(() -> loop.loadFailed(model, v, ManagerLoop.NO_LONGER_ASPIRED));
            return;
        }
        long began = clock.nanos();
        v.attempts++;
        try {
            if (!v.loadCalled) {
                long estimate = Math.max(0, loader.estimateBytes());
                ServingException error = ledger.reserve(v, estimate);
                if (error != null) {
                    // Waiting for memory does not count as an attempt.
                    v.attempts--;
                    loop.submit(() -> memoryRejected(model, v, error, estimate));
                    return;
                }
                v.loadCalled = true;
            }
            Servable servable = loadAndWarm(model, v, loader, served);
            long nanos = clock.nanos() - began;
            loop.submit(() -> loop.loaded(model, v, servable, nanos));
        } catch (Throwable t) {
            // Also Errors, such as a missing native library: a load must not end the thread without a result.
            String reason = reason(t);
            if (!(t instanceof ServingException)) {
                LOG.warn("loading {} failed", v.id, t);
            }
            if (v.attempts <= options.loadRetries() && !v.cancelled && worthRetrying(t)) {
                retryLater(model, v, reason);
                return;
            }
            if (v.loadCalled) {
                unloadNow(v);
            }
            loop.submit(() -> loop.loadFailed(model, v, reason));
        }
    }

    private Servable loadAndWarm(ModelVersions model, ManagedVersion v, Loader loader, boolean served) {
        int lowered = priority.lower(LoadThreadPriority.hurries(served, ledger.reserved(v)));
        try {
            Servable servable = loader.load();
            if (!v.cancelled) {
                loop.submit(() -> {
                    v.phase = Phase.WARMING;
                    v.reason = null;
                    loop.changed(model, v);
                });
                loader.warm();
            }
            return servable;
        } finally {
            priority.restore(lowered);
        }
    }

    /** Returns whether another attempt can succeed. Invalid files stay invalid until they change. */
    private static boolean worthRetrying(Throwable t) {
        return !(t instanceof ServingException e)
                || !(e.code() == ErrorCode.INVALID_ARGUMENT
                        || e.code() == ErrorCode.UNIMPLEMENTED
                        || e.code() == ErrorCode.OUT_OF_RANGE);
    }

    private void retryLater(ModelVersions model, ManagedVersion v, String reason) {
        loop.submit(() -> {
            v.phase = Phase.LOADING;
            v.reason = "attempt " + v.attempts + " of " + (options.loadRetries() + 1) + " failed: " + reason;
            loop.changed(model, v);
            waitingForRetry.add(v);
            if (v.cancelled) {
                retryNow(model, v);
            } else {
                timer.after(options.retryInterval().toNanos(), () -> loop.submit(() -> retryNow(model, v)));
            }
        });
    }

    private @Nullable String unloadNow(ManagedVersion v) {
        int lowered = priority.lower(false);
        try {
            if (v.loader != null) {
                v.loader.unload();
            }
            return null;
        } catch (Throwable t) {
            LOG.error("unloading {} failed", v.id, t);
            return reason(t);
        } finally {
            priority.restore(lowered);
            ledger.set(v, 0);
        }
    }

    static String reason(Throwable t) {
        if (t instanceof ServingException e) {
            return e.describe();
        }
        String message = t.getMessage();
        return t.getClass().getSimpleName() + (message == null ? "" : ": " + message);
    }

    void close() {
        loads.shutdownNow();
        unloads.shutdownNow();
        priorityTimer.close();
    }

    private static void execute(ExecutorService pool, Runnable task) {
        try {
            pool.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("a task was submitted after the manager was closed", e);
        }
    }
}
