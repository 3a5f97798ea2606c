// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Units;
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
 * Loads and unloads on pools of its own, as often as told and as memory allows, and reports to the decider. Called on the
 * deciding thread, to which its lists are confined.
 */
final class Work {
    private static final Logger LOG = LoggerFactory.getLogger(Work.class);

    private final ManagerOptions options;
    private final Clock clock;
    private final Delays delays;
    private final Decider decider;
    private final MemoryLedger ledger;
    private final LoadPriority priority;
    /** Not those of the decider, whom nothing of this concerns. */
    private final Delays looks = Delays.threaded("load-look");

    private final ThreadPoolExecutor loads;
    private final ExecutorService unloads;
    private final List<Version> waitingForMemory = new ArrayList<>();
    private final List<Version> waitingForRetry = new ArrayList<>();

    Work(ManagerOptions options, Clock clock, Delays delays, Decider decider) {
        this.options = options;
        this.clock = clock;
        this.delays = delays;
        this.decider = decider;
        this.ledger = new MemoryLedger(options.memoryLimitBytes());
        this.priority = new LoadPriority(options.loadNiceness(), LoadPriority.system(), clock, looks);
        this.loads = Threads.pool("load", Math.max(options.loadThreads(), options.initialLoadThreads()));
        this.unloads = Threads.pool("unload", options.unloadThreads());
    }

    long memoryBytes() {
        return ledger.used();
    }

    long memoryLimit() {
        return ledger.limit();
    }

    /** From here on, as many loads at once as there should be while models serve. */
    void servingBegins() {
        if (loads.getMaximumPoolSize() > options.loadThreads()) {
            loads.setCorePoolSize(options.loadThreads());
            loads.setMaximumPoolSize(options.loadThreads());
        }
    }

    /** Most loads at once, now: a thread that is to go may take one more. */
    int loadThreads() {
        return Math.max(loads.getMaximumPoolSize(), loads.getPoolSize());
    }

    void load(Model model, Version v) {
        boolean served = model.versions.stream().anyMatch(other -> other.phase == Phase.AVAILABLE);
        execute(loads, () -> loadNow(model, v, served));
    }

    void unload(Model model, Version v) {
        execute(unloads, () -> {
            @Nullable String trouble = unloadNow(v);
            decider.decide(() -> decider.unloaded(model, v, trouble));
        });
    }

    /** Books what a loaded version really takes. */
    void book(Version v, long bytes) {
        long estimate = ledger.booked(v);
        if (estimate > 0 && bytes > estimate) {
            LOG.warn(
                    "{} takes {}, more than the {} that were estimated",
                    v.id,
                    Units.formatBytes(bytes),
                    Units.formatBytes(estimate));
        }
        ledger.correct(v, bytes);
    }

    /** Whether a version waited for memory, which it does no longer: it has not been touched. */
    boolean stopWaitingForMemory(Version v) {
        return waitingForMemory.remove(v);
    }

    /** Lets a version that waits for its next attempt have it now. */
    void retryNow(Model model, Version v) {
        if (waitingForRetry.remove(v)) {
            load(model, v);
        }
    }

    /** Tries those again that did not fit: memory was freed, or will not be after all. */
    void memoryChanged() {
        List<Version> again = List.copyOf(waitingForMemory);
        waitingForMemory.clear();
        for (Version v : again) {
            Model model = decider.find(v.id.model());
            if (model != null) {
                load(model, v);
            }
        }
    }

    private void refusedMemory(Model model, Version v, ServingException refusal, long estimate) {
        if (v.unwanted) {
            decider.loadFailed(model, v, Decider.NO_LONGER_WANTED);
        } else if (ledger.fits(estimate)) {
            // Freed since it was refused.
            load(model, v);
        } else if (ledger.everFits(estimate) && memoryIsMoving(v)) {
            v.reason = "waits for memory: " + refusal.getMessage();
            waitingForMemory.add(v);
            decider.changed(model, v);
        } else {
            decider.loadFailed(model, v, refusal.describe());
        }
    }

    /** Whether some of what is booked for others will be given back, or may turn out to be too much. */
    private boolean memoryIsMoving(Version except) {
        return ledger.holders().stream()
                .anyMatch(v -> v != except
                        && (v.phase == Phase.DRAINING || v.phase == Phase.UNLOADING || (v.loads() && !v.staged)));
    }

    private void loadNow(Model model, Version v, boolean served) {
        Loader loader = v.loader;
        if (loader == null || v.unwanted) {
            if (v.touched) {
                unloadNow(v);
            }
            decider.decide(() -> decider.loadFailed(model, v, Decider.NO_LONGER_WANTED));
            return;
        }
        long began = clock.nanos();
        v.attempts++;
        try {
            if (!v.touched) {
                long estimate = Math.max(0, loader.estimateBytes());
                ServingException refusal = ledger.reserve(v, estimate);
                if (refusal != null) {
                    // Waiting for memory is not an attempt.
                    v.attempts--;
                    decider.decide(() -> refusedMemory(model, v, refusal, estimate));
                    return;
                }
                v.touched = true;
            }
            Servable servable = givingWay(model, v, loader, served);
            long nanos = clock.nanos() - began;
            decider.decide(() -> decider.loaded(model, v, servable, nanos));
        } catch (Throwable t) {
            String reason = reason(t);
            if (!(t instanceof ServingException)) {
                LOG.warn("loading {} failed", v.id, t);
            }
            if (v.attempts <= options.loadRetries() && !v.unwanted && worthRetrying(t)) {
                retryLater(model, v, reason);
                return;
            }
            if (v.touched) {
                unloadNow(v);
            }
            decider.decide(() -> decider.loadFailed(model, v, reason));
        }
    }

    private Servable givingWay(Model model, Version v, Loader loader, boolean served) {
        int lowered = priority.lower(LoadPriority.hurries(served, ledger.booked(v)));
        try {
            Servable servable = loader.load();
            if (!v.unwanted) {
                decider.decide(() -> {
                    v.phase = Phase.WARMING;
                    v.reason = null;
                    decider.changed(model, v);
                });
                loader.warm();
            }
            return servable;
        } finally {
            priority.restore(lowered);
        }
    }

    /** Whether another attempt could go better. What is wrong in itself stays wrong until the files change. */
    private static boolean worthRetrying(Throwable t) {
        return !(t instanceof ServingException e)
                || !(e.code() == ErrorCode.INVALID_ARGUMENT
                        || e.code() == ErrorCode.UNIMPLEMENTED
                        || e.code() == ErrorCode.OUT_OF_RANGE);
    }

    private void retryLater(Model model, Version v, String reason) {
        decider.decide(() -> {
            v.phase = Phase.LOADING;
            v.reason = "attempt " + v.attempts + " of " + (options.loadRetries() + 1) + " failed: " + reason;
            decider.changed(model, v);
            waitingForRetry.add(v);
            if (v.unwanted) {
                retryNow(model, v);
            } else {
                delays.after(options.retryInterval(), () -> decider.decide(() -> retryNow(model, v)));
            }
        });
    }

    private @Nullable String unloadNow(Version v) {
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
            ledger.correct(v, 0);
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
        looks.close();
    }

    private static void execute(ExecutorService pool, Runnable task) {
        try {
            pool.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("closed before a task began", e);
        }
    }
}
