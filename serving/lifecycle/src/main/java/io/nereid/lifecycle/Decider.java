// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.lifecycle.TransitionPolicy.Step;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source.Aspired;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides and has it done. All state but the published map is confined to the deciding thread; pools load and unload and
 * report back to it. After each decision it publishes, in this order: the new map, the draining of what left the map, the
 * news, and what has settled.
 */
final class Decider {
    private static final Logger LOG = LoggerFactory.getLogger(Decider.class);

    private final ManagerOptions options;
    private final Clock clock;
    private final MemoryLedger ledger;
    private final Delays delays;
    private final ExecutorService deciding = Threads.single("manager");
    private final ExecutorService loads;
    private final ExecutorService unloads;
    private final CopyOnWriteArrayList<Consumer<ServableState>> listeners = new CopyOnWriteArrayList<>();
    private final CompletableFuture<Void> allEnded = new CompletableFuture<>();
    private volatile ServingMap map = ServingMap.EMPTY;
    private volatile boolean closing;

    private final Map<String, Model> models = new LinkedHashMap<>();
    private final Map<String, Model> changed = new LinkedHashMap<>();
    private final List<ServableState> news = new ArrayList<>();
    private final List<Live> toDrain = new ArrayList<>();
    private final List<Settling> settlings = new ArrayList<>();
    private final List<Version> waitingForMemory = new ArrayList<>();
    private final List<Version> waitingForRetry = new ArrayList<>();

    Decider(ManagerOptions options, Clock clock) {
        this(options, clock, Delays.threaded("manager-timer"));
    }

    Decider(ManagerOptions options, Clock clock, Delays delays) {
        this.options = options;
        this.clock = clock;
        this.delays = delays;
        this.ledger = new MemoryLedger(options.memoryLimitBytes());
        this.loads = Threads.pool("load", options.loadThreads());
        this.unloads = Threads.pool("unload", options.unloadThreads());
    }

    ServingMap map() {
        return map;
    }

    boolean closing() {
        return closing;
    }

    long memoryBytes() {
        return ledger.used();
    }

    Runnable listen(Consumer<ServableState> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }

    /** Runs a decision, then publishes what came of it. */
    void decide(Runnable decision) {
        try {
            deciding.execute(() -> {
                try {
                    decision.run();
                } catch (RuntimeException e) {
                    LOG.error("a decision failed", e);
                }
                publish();
            });
        } catch (RejectedExecutionException e) {
            LOG.debug("closed before a report came", e);
        }
    }

    // ---- on the deciding thread: what is wanted ----

    void aspired(String name, List<Aspired> list, boolean retry) {
        if (closing) {
            return;
        }
        Model model = models.computeIfAbsent(name, Model::new);
        changed.put(name, model);
        Set<Long> wanted = list.stream().map(a -> a.id().version()).collect(Collectors.toSet());
        for (Version v : List.copyOf(model.versions)) {
            if (v.aspired && !wanted.contains(v.id.version())) {
                unwant(model, v);
            }
        }
        for (Aspired a : list) {
            Version v = model.current(a.id().version());
            Loader loader = a.loader();
            if (loader != null) {
                want(model, v, loader, retry);
            } else {
                ServingException error = a.error();
                refuse(
                        model,
                        v,
                        a,
                        error == null ? "the source gives neither a loader nor a reason" : error.describe());
            }
        }
        advance(model);
    }

    private void unwant(Model model, Version v) {
        v.aspired = false;
        dropSuccessor(model, v);
        if (v.phase == Phase.TRACKED) {
            end(model, v, "no longer wanted");
        } else if (v.phase == Phase.FAILED) {
            end(model, v, v.reason);
        } else if (v.loads()) {
            v.unwanted = true;
            if (waitingForMemory.remove(v)) {
                end(model, v, "no longer wanted");
            }
            retryNow(model, v);
        }
    }

    private void want(Model model, @Nullable Version v, Loader loader, boolean retry) {
        if (v == null) {
            add(model, new Version(loader.id(), loader));
            return;
        }
        boolean same = v.loader != null && v.fingerprint.equals(loader.fingerprint());
        switch (v.phase) {
            case AVAILABLE -> {
                if (same) {
                    dropSuccessor(model, v);
                    v.rejected = null;
                    if (!v.aspired || v.reason != null) {
                        v.aspired = true;
                        v.reason = null;
                        changed(model, v);
                    }
                } else {
                    v.aspired = true;
                    reload(model, v, loader, retry);
                }
            }
            case LOADING, WARMING -> {
                if (!same) {
                    unwant(model, v);
                    add(model, new Version(loader.id(), loader));
                }
            }
            case FAILED -> {
                if (!same || retry) {
                    replace(model, v, new Version(loader.id(), loader));
                }
            }
            case TRACKED -> {
                if (!same) {
                    replace(model, v, new Version(loader.id(), loader));
                }
            }
            case DRAINING, UNLOADING, GONE -> add(model, new Version(loader.id(), loader));
        }
    }

    private void reload(Model model, Version v, Loader loader, boolean retry) {
        String fingerprint = loader.fingerprint();
        if (v.successor != null && v.successor.fingerprint.equals(fingerprint)) {
            return;
        }
        dropSuccessor(model, v);
        if (fingerprint.equals(v.rejected) && !retry) {
            return;
        }
        Version successor = new Version(loader.id(), loader);
        if (!options.policy().reloadsBeside()) {
            v.aspired = false;
            add(model, successor);
            return;
        }
        v.successor = successor;
        successor.predecessor = v;
        startLoad(model, successor);
    }

    /** Gives up the load that goes on beside a version. */
    private void dropSuccessor(Model model, Version v) {
        Version successor = v.successor;
        if (successor == null) {
            return;
        }
        v.successor = null;
        successor.predecessor = null;
        successor.aspired = false;
        successor.unwanted = true;
        if (waitingForMemory.remove(successor)) {
            successor.phase = Phase.GONE;
        } else {
            // Before the version it would have followed, which stands for the number in the index.
            model.versions.add(0, successor);
            retryNow(model, successor);
        }
    }

    private void refuse(Model model, @Nullable Version v, Aspired a, String reason) {
        if (v == null || v.phase == Phase.TRACKED || v.phase == Phase.FAILED) {
            if (v != null && v.phase == Phase.FAILED && v.loader == null && reason.equals(v.reason)) {
                return;
            }
            Version failed = new Version(a.id(), null);
            failed.phase = Phase.FAILED;
            failed.reason = reason;
            if (v == null) {
                add(model, failed);
            } else {
                replace(model, v, failed);
            }
        } else if (v.phase == Phase.AVAILABLE) {
            dropSuccessor(model, v);
            v.aspired = true;
            if (!reason.equals(v.reason)) {
                v.reason = reason;
                changed(model, v);
            }
        }
    }

    private void add(Model model, Version v) {
        model.versions.removeIf(old -> old.phase == Phase.GONE && old.id.equals(v.id));
        model.versions.add(v);
        changed(model, v);
    }

    private void replace(Model model, Version old, Version v) {
        old.phase = Phase.GONE;
        old.aspired = false;
        add(model, v);
    }

    // ---- on the deciding thread: what comes next ----

    private void advance(Model model) {
        while (true) {
            Step step = options.policy().next(model.snapshot());
            if (step == null) {
                return;
            }
            Version v = model.versions.get(step.index());
            switch (step.kind()) {
                case LOAD -> startLoad(model, v);
                case UNLOAD -> startDrain(model, v);
            }
        }
    }

    private void startLoad(Model model, Version v) {
        v.phase = Phase.LOADING;
        changed(model, v);
        execute(loads, () -> load(model, v));
    }

    private void startDrain(Model model, Version v) {
        dropSuccessor(model, v);
        v.phase = Phase.DRAINING;
        changed(model, v);
        if (v.live != null) {
            toDrain.add(v.live);
        }
    }

    private void startUnload(Model model, Version v) {
        v.phase = Phase.UNLOADING;
        changed(model, v);
        execute(unloads, () -> {
            @Nullable String trouble = unload(v);
            decide(() -> {
                end(model, v, trouble == null ? "unloaded" : "unloaded, with an error: " + trouble);
                memoryFreed();
                advance(model);
            });
        });
    }

    private void end(Model model, Version v, @Nullable String reason) {
        v.phase = Phase.GONE;
        v.reason = reason;
        v.live = null;
        changed(model, v);
        if (model.shown(v.id.version()) != v) {
            model.versions.remove(v);
        } else if (!closing) {
            delays.after(
                    options.forgetAfter(),
                    () -> decide(() -> {
                        if (model.versions.remove(v)) {
                            changed.put(model.name, model);
                        }
                    }));
        }
    }

    private void loaded(Model model, Version v, Servable servable, long nanos) {
        v.loadNanos = nanos;
        v.reason = null;
        if (v.unwanted) {
            startUnload(model, v);
            return;
        }
        v.memoryBytes = servable.memoryBytes();
        if (v.memoryBytes >= 0) {
            ledger.correct(v.booked, v.memoryBytes);
            v.booked = v.memoryBytes;
        }
        v.live = new Live(servable, () -> decide(() -> startUnload(model, v)));
        Version predecessor = v.predecessor;
        if (predecessor != null) {
            predecessor.successor = null;
            predecessor.aspired = false;
            v.predecessor = null;
            model.versions.add(v);
            startDrain(model, predecessor);
        }
        v.phase = Phase.AVAILABLE;
        changed(model, v);
        advance(model);
    }

    private void loadFailed(Model model, Version v, String reason) {
        Version predecessor = v.predecessor;
        if (predecessor != null) {
            v.phase = Phase.FAILED;
            v.reason = reason;
            v.predecessor = null;
            predecessor.successor = null;
            predecessor.rejected = v.fingerprint;
            predecessor.reason = "reload failed: " + reason;
            changed(model, predecessor);
        } else if (v.aspired) {
            v.phase = Phase.FAILED;
            v.reason = reason;
            changed(model, v);
        } else {
            end(model, v, reason);
        }
        memoryFreed();
        advance(model);
    }

    private void refusedMemory(Model model, Version v, ServingException refusal, long estimate) {
        if (v.unwanted) {
            loadFailed(model, v, "no longer wanted");
        } else if (ledger.fits(estimate)) {
            // Freed since it was refused.
            execute(loads, () -> load(model, v));
        } else if (anythingLeaving()) {
            waitingForMemory.add(v);
            v.reason = "waits for memory: " + refusal.getMessage();
            changed(model, v);
        } else {
            loadFailed(model, v, refusal.describe());
        }
    }

    private boolean anythingLeaving() {
        return models.values().stream()
                .flatMap(m -> m.versions.stream())
                .anyMatch(v -> v.phase == Phase.DRAINING || v.phase == Phase.UNLOADING || (v.unwanted && v.loads()));
    }

    private void memoryFreed() {
        List<Version> again = List.copyOf(waitingForMemory);
        waitingForMemory.clear();
        for (Version v : again) {
            Model model = models.get(v.id.model());
            if (model != null) {
                execute(loads, () -> load(model, v));
            }
        }
    }

    // ---- on the pools ----

    private void load(Model model, Version v) {
        Loader loader = v.loader;
        if (loader == null || v.unwanted) {
            if (v.attempts > 0) {
                unload(v);
            }
            decide(() -> loadFailed(model, v, "no longer wanted"));
            return;
        }
        long began = clock.nanos();
        boolean touched = v.attempts > 0;
        try {
            if (!touched) {
                long estimate = Math.max(0, loader.estimateBytes());
                ServingException refusal = ledger.reserve(v.id, estimate);
                if (refusal != null) {
                    decide(() -> refusedMemory(model, v, refusal, estimate));
                    return;
                }
                v.booked = estimate;
                touched = true;
            }
            v.attempts++;
            Servable servable = loader.load();
            if (!v.unwanted) {
                decide(() -> {
                    v.phase = Phase.WARMING;
                    v.reason = null;
                    changed(model, v);
                });
                loader.warm();
            }
            long nanos = clock.nanos() - began;
            decide(() -> loaded(model, v, servable, nanos));
        } catch (Throwable t) {
            String reason = reason(t);
            if (!(t instanceof ServingException)) {
                LOG.warn("loading {} failed", v.id, t);
            }
            if (v.attempts > 0 && v.attempts <= options.loadRetries() && !v.unwanted) {
                retryLater(model, v, reason);
                return;
            }
            if (touched) {
                unload(v);
            }
            decide(() -> loadFailed(model, v, reason));
        }
    }

    private void retryLater(Model model, Version v, String reason) {
        decide(() -> {
            v.phase = Phase.LOADING;
            v.reason = "attempt " + v.attempts + " of " + (options.loadRetries() + 1) + " failed: " + reason;
            changed(model, v);
            waitingForRetry.add(v);
            if (v.unwanted) {
                retryNow(model, v);
            } else {
                delays.after(options.retryInterval(), () -> decide(() -> retryNow(model, v)));
            }
        });
    }

    private void retryNow(Model model, Version v) {
        if (waitingForRetry.remove(v)) {
            execute(loads, () -> load(model, v));
        }
    }

    private @Nullable String unload(Version v) {
        try {
            if (v.loader != null) {
                v.loader.unload();
            }
            return null;
        } catch (Throwable t) {
            LOG.error("unloading {} failed", v.id, t);
            return reason(t);
        } finally {
            ledger.correct(v.booked, 0);
            v.booked = 0;
        }
    }

    private static String reason(Throwable t) {
        if (t instanceof ServingException e) {
            return e.describe();
        }
        String message = t.getMessage();
        return t.getClass().getSimpleName() + (message == null ? "" : ": " + message);
    }

    private static void execute(ExecutorService pool, Runnable task) {
        try {
            pool.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("closed before a task began", e);
        }
    }

    // ---- on the deciding thread: telling others ----

    private void changed(Model model, Version v) {
        changed.put(model.name, model);
        if (model.shown(v.id.version()) == v) {
            news.add(v.state());
        }
    }

    private void publish() {
        if (!changed.isEmpty()) {
            Map<String, ServingMap.@Nullable Entry> entries = new HashMap<>();
            for (Model model : changed.values()) {
                boolean empty = model.versions.isEmpty();
                entries.put(model.name, empty ? null : model.entry());
                if (empty) {
                    models.remove(model.name);
                }
            }
            changed.clear();
            map = map.with(entries);
        }
        toDrain.forEach(Live::drain);
        toDrain.clear();
        for (ServableState state : List.copyOf(news)) {
            for (Consumer<ServableState> listener : listeners) {
                try {
                    listener.accept(state);
                } catch (RuntimeException e) {
                    LOG.error("a listener failed on {}", state, e);
                }
            }
        }
        news.clear();
        for (Settling settling : List.copyOf(settlings)) {
            if (settling.check()) {
                settlings.remove(settling);
            }
        }
        if (closing && !allEnded.isDone() && models.values().stream().allMatch(Decider::allEnded)) {
            allEnded.complete(null);
        }
    }

    CompletableFuture<List<ServableState>> settled(List<String> names) {
        CompletableFuture<List<ServableState>> future = new CompletableFuture<>();
        Runnable begin = () -> {
            if (closing) {
                future.completeExceptionally(stopping());
            } else {
                List<Model> asked = new ArrayList<>();
                for (String name : names) {
                    Model model = models.get(name);
                    if (model != null) {
                        asked.add(model);
                    }
                }
                settlings.add(new Settling(asked, future));
            }
        };
        decide(begin);
        if (deciding.isShutdown()) {
            future.completeExceptionally(stopping());
        }
        return future;
    }

    private static ServingException stopping() {
        return ServingException.of(Code.UNAVAILABLE, "the server is stopping; no model is loaded any more");
    }

    // ---- the end ----

    boolean close(Duration patience) {
        if (deciding.isShutdown()) {
            return allEnded.isDone();
        }
        decide(() -> {
            closing = true;
            for (Model model : List.copyOf(models.values())) {
                for (Version v : List.copyOf(model.versions)) {
                    if (v.aspired) {
                        unwant(model, v);
                    }
                }
                for (Version v : List.copyOf(model.versions)) {
                    if (v.phase == Phase.AVAILABLE) {
                        startDrain(model, v);
                    }
                }
                changed.put(model.name, model);
            }
            settlings.forEach(s -> s.fail(stopping()));
            settlings.clear();
        });
        boolean ended = await(patience);
        delays.close();
        loads.shutdownNow();
        unloads.shutdownNow();
        deciding.shutdown();
        return ended;
    }

    private boolean await(Duration patience) {
        try {
            allEnded.get(patience.toNanos(), TimeUnit.NANOSECONDS);
            return true;
        } catch (TimeoutException e) {
            LOG.warn("some models are still in use after {} s; leaving them", patience.toSeconds());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            LOG.error("closing failed", e);
        }
        return false;
    }

    private static boolean allEnded(Model model) {
        return model.versions.stream().allMatch(Version::ended);
    }
}
