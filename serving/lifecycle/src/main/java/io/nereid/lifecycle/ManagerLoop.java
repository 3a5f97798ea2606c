// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import io.nereid.lifecycle.policy.AspiredVersionPolicy.Step;
import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.lifecycle.serving.ServingMap;
import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.lifecycle.state.ModelDependencies;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.lifecycle.state.ServableRegistry;
import io.nereid.lifecycle.waiters.StateWaiters;
import io.nereid.lifecycle.waiters.WaitResult;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.VersionLabel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
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
 * The event loop of the manager. One thread, to which all state is confined, processes events one after the other: new
 * lists of aspired versions, results of loads and unloads, timers, and callers that wait. Since only this thread
 * changes state, the transitions need no locks and cannot interleave.
 *
 * <p>Each event is processed in four steps (see {@link #submit}):
 *
 * <ol>
 *   <li>the event changes states and starts loads, drains and unloads;
 *   <li>the changes are published: serving map, drains, listeners ({@link ServableRegistry#publish});
 *   <li>models that depend on what was published are loaded or reloaded, and these changes are published, until nothing
 *       changes any more;
 *   <li>waiting callers whose condition now holds are completed.
 * </ol>
 *
 * <p>Loads and unloads run on the threads of {@link LoadExecutor}, which report their results with {@link #submit}.
 */
final class ManagerLoop {
    static final String NO_LONGER_ASPIRED = "no longer aspired";

    /** The reason of a version that was unloaded because it was no longer aspired when its load ended. */
    static final String CANCELLED = "Loading of servable cancelled";

    private static final Logger LOG = LoggerFactory.getLogger(ManagerLoop.class);

    /** How long a version waits for a dependency that no source has mentioned yet. */
    private static final Duration GRACE = Duration.ofMillis(100);

    private final ManagerOptions options;
    private final Timer timer;
    private final ExecutorService thread = Threads.single("manager");
    private final CompletableFuture<Void> allEnded = new CompletableFuture<>();

    /** Models with versions that may not have ended; filled when the manager is closed. */
    private final ArrayDeque<ModelVersions> ending = new ArrayDeque<>();

    private final ServableRegistry registry = new ServableRegistry();
    private final StateWaiters waiters = new StateWaiters(registry);
    private final ModelDependencies dependencies = new ModelDependencies(registry);
    private final DependentReloader dependents = new DependentReloader(registry, dependencies, this);
    private final VersionTransition transition = new VersionTransition(registry, this);
    private final AspiredVersionsReconciler reconciler;
    private final LoadExecutor executor;
    private volatile boolean closing;

    /** Whether models with dependencies may start to load: readers can see the changes of the event. */
    private boolean published;

    ManagerLoop(ManagerOptions options, Clock clock) {
        this(options, clock, Timer.threaded("manager-timer"));
    }

    ManagerLoop(ManagerOptions options, Clock clock, Timer timer) {
        this.options = options;
        this.timer = timer;
        this.executor = new LoadExecutor(options, clock, timer, this);
        this.reconciler = new AspiredVersionsReconciler(options.policy(), registry, this);
    }

    ServingMap map() {
        return registry.map();
    }

    boolean closing() {
        return closing;
    }

    long memoryBytes() {
        return executor.memoryBytes();
    }

    long memoryLimit() {
        return executor.memoryLimit();
    }

    int loadThreads() {
        return executor.loadThreads();
    }

    void labels(String model, Map<String, VersionLabel> labels) {
        registry.labels(model, labels);
        // A caller may wait for a version that the label now refers to.
        submit(() -> {});
    }

    Runnable listen(Consumer<ServableState> listener) {
        return registry.listen(listener);
    }

    /**
     * Processes an event on the manager thread: changes states, publishes, handles dependent models, completes waiting
     * callers. An exception of the event is logged; the states that it changed before are published.
     */
    void submit(Runnable event) {
        try {
            thread.execute(() -> {
                // 1 and 2: the event, and what readers see of it.
                run(event);
                registry.publish();
                // 3: ensembles load only against published versions (see waits()), because their loaders look their
                // composing models up in the serving map. What they change may affect further ensembles.
                published = true;
                do {
                    run(() -> {
                        if (!closing) {
                            dependents.update();
                        }
                    });
                    if (!registry.dirty()) {
                        break;
                    }
                    registry.publish();
                } while (true);
                published = false;
                // 4: waiting callers, last, so that what they do next finds all changes of this event.
                if (waiters.check(dependencies)) {
                    executor.servingBegins();
                }
                if (closing) {
                    // From the front only: with thousands of models, a search through all of them for each event would
                    // be quadratic.
                    while (!ending.isEmpty() && allEnded(ending.element())) {
                        ending.remove();
                    }
                    if (ending.isEmpty()) {
                        allEnded.complete(null);
                    }
                }
            });
        } catch (RejectedExecutionException e) {
            LOG.debug("an event came after the manager was closed", e);
        }
    }

    private static void run(Runnable event) {
        try {
            event.run();
        } catch (RuntimeException e) {
            LOG.error("an event of the manager failed", e);
        }
    }

    @Nullable ModelVersions find(String name) {
        return registry.find(name);
    }

    void changed(ModelVersions model, ManagedVersion v) {
        registry.changed(model, v);
    }

    /** Processes a new list of aspired versions of a model. */
    void aspired(String name, List<AspiredVersion> list, boolean retry) {
        if (closing) {
            return;
        }
        ModelVersions model = registry.model(name);
        registry.changed(model);
        // First the versions that are missing from the list, then those on it; advance() decides about both together.
        Set<Long> listed = list.stream().map(a -> a.id().version()).collect(Collectors.toSet());
        for (ManagedVersion v : List.copyOf(model.versions)) {
            if (v.aspired && !listed.contains(v.id.version())) {
                stopAspiring(model, v);
            }
        }
        reconciler.reconcile(model, list, retry);
        transition.finishStaged(model);
        advance(model);
    }

    // ---- state transitions ----

    /**
     * Handles a version that is no longer aspired. One that is not loaded ends at once; a load in progress is cancelled
     * at the next opportunity. An available version stays available until the policy unloads it.
     */
    void stopAspiring(ModelVersions model, ManagedVersion v) {
        v.aspired = false;
        dropSuccessor(model, v);
        if (v.phase == Phase.TRACKED) {
            end(model, v, NO_LONGER_ASPIRED);
        } else if (v.phase == Phase.FAILED) {
            end(model, v, v.reason);
        } else if (v.loads()) {
            // A load cannot be interrupted: a load thread sees the flag before it starts, or its result is unloaded.
            v.cancelled = true;
            if (v.staged) {
                v.staged = false;
                startUnload(model, v);
            } else if (executor.stopWaitingForMemory(v)) {
                end(model, v, NO_LONGER_ASPIRED);
            } else {
                executor.retryNow(model, v);
            }
        }
    }

    /** Cancels the reload of a version that is in progress; the version itself is not affected. */
    void dropSuccessor(ModelVersions model, ManagedVersion v) {
        ManagedVersion successor = v.successor;
        if (successor == null) {
            return;
        }
        v.successor = null;
        successor.predecessor = null;
        successor.aspired = false;
        successor.cancelled = true;
        // Not started, or waiting for memory: its loader was not called, so there is nothing to unload.
        if (successor.phase == Phase.TRACKED || executor.stopWaitingForMemory(successor)) {
            successor.phase = Phase.GONE;
            return;
        }
        // Inserted before its predecessor, so that the predecessor, as the last, represents the number in the index.
        model.versions.add(0, successor);
        if (successor.staged) {
            successor.staged = false;
            startUnload(model, successor);
        } else {
            executor.retryNow(model, successor);
        }
    }

    /**
     * Reloads a version: loads its successor while it stays available, or after it was unloaded if the policy preserves
     * resources.
     *
     * @param renewal whether the reason is a change of its dependencies only
     */
    void reload(ModelVersions model, ManagedVersion v, Loader loader, boolean renewal) {
        // At most one reload at a time: a newer configuration takes the place of an older one.
        dropSuccessor(model, v);
        if (!renewal) {
            v.failedReload = null;
        }
        ManagedVersion successor = new ManagedVersion(loader.id(), loader);
        successor.renewal = renewal;
        if (!options.policy().reloadsBeside()) {
            // The policy unloads the old version, which is no longer aspired, before it loads the new one.
            v.aspired = false;
            add(model, successor);
            return;
        }
        dependsOnOthers(model, successor);
        v.successor = successor;
        successor.predecessor = v;
        // With dependencies, DependentReloader starts it when they have settled.
        if (successor.dependencies.isEmpty()) {
            startLoad(model, successor);
        }
    }

    void add(ModelVersions model, ManagedVersion v) {
        // The last state of an ended version with this number is no longer of interest.
        model.versions.removeIf(old -> old.phase == Phase.GONE && old.id.equals(v.id));
        model.versions.add(v);
        dependsOnOthers(model, v);
        registry.changed(model, v);
    }

    void replace(ModelVersions model, ManagedVersion old, ManagedVersion v) {
        old.phase = Phase.GONE;
        old.aspired = false;
        add(model, v);
    }

    /** Registers the dependencies of a new version; waits a short time for models that no source has mentioned yet. */
    private void dependsOnOthers(ModelVersions model, ManagedVersion v) {
        if (v.dependencies.isEmpty()) {
            return;
        }
        registry.addComposed(model);
        if (dependencies.anyUnknown(v)) {
            v.expectsUnknown = true;
            timer.after(GRACE.toNanos(), () -> submit(() -> v.expectsUnknown = false));
        }
    }

    /** Executes the steps that the policy returns, until it returns none. */
    void advance(ModelVersions model) {
        // Each step changes the phase of one version, so the next snapshot differs and the loop ends.
        while (true) {
            Step step = options.policy().next(model.snapshot(this::waits));
            if (step == null
                    || (step.kind() == Step.Kind.UNLOAD
                            && options.policy().allOrNothing()
                            && VersionTransition.reloadPending(model))) {
                return;
            }
            ManagedVersion v = model.versions.get(step.index());
            switch (step.kind()) {
                case LOAD -> startLoad(model, v);
                case UNLOAD -> startDrain(model, v);
            }
        }
    }

    /** Returns whether a version must wait for its dependencies. */
    private boolean waits(ManagedVersion v) {
        return !v.dependencies.isEmpty() && (!published || !dependencies.settled(v));
    }

    void startLoad(ModelVersions model, ManagedVersion v) {
        if (!v.dependencies.isEmpty()) {
            v.basis = dependencies.basis(v);
        }
        v.phase = Phase.LOADING;
        registry.changed(model, v);
        executor.load(model, v);
    }

    void startDrain(ModelVersions model, ManagedVersion v) {
        dropSuccessor(model, v);
        v.phase = Phase.DRAINING;
        registry.changed(model, v);
        registry.drain(v.live);
    }

    void startUnload(ModelVersions model, ManagedVersion v) {
        v.phase = Phase.UNLOADING;
        registry.changed(model, v);
        executor.unload(model, v);
    }

    /** Ends a version. Its last state stays in the index for a while, so that clients can read the reason. */
    private void end(ModelVersions model, ManagedVersion v, @Nullable String reason) {
        v.phase = Phase.GONE;
        v.reason = reason;
        v.live = null;
        registry.changed(model, v);
        if (model.shown(v.id.version()) != v) {
            model.versions.remove(v);
        } else if (!closing) {
            timer.after(
                    options.forgetAfter().toNanos(),
                    () -> submit(() -> {
                        if (model.versions.remove(v)) {
                            registry.changed(model);
                        }
                    }));
        }
    }

    // ---- results of loads and unloads ----

    void loaded(ModelVersions model, ManagedVersion v, Servable servable, long nanos) {
        v.loadNanos = nanos;
        v.reason = null;
        if (v.cancelled) {
            // Cancelled while it loaded. It has never been in the map, so it is unloaded without a drain.
            startUnload(model, v);
            return;
        }
        v.memoryBytes = servable.memoryBytes();
        if (v.memoryBytes >= 0) {
            executor.reserveMeasured(v, v.memoryBytes);
        }
        // The last handle may be closed on any thread, so the unload starts with an event.
        v.live = new LiveServable(servable, () -> submit(() -> startUnload(model, v)));
        if (model.atomic && !v.renewal) {
            v.staged = true;
        } else {
            transition.makeAvailable(model, v);
        }
        executor.memoryChanged();
        transition.finishStaged(model);
        advance(model);
    }

    void loadFailed(ModelVersions model, ManagedVersion v, String reason) {
        ManagedVersion predecessor = v.predecessor;
        v.phase = Phase.FAILED;
        v.reason = reason;
        if (predecessor != null) {
            v.predecessor = null;
            predecessor.successor = null;
            if (v.renewal) {
                // The models that the available version was built on are no longer available, so it cannot serve
                // either.
                predecessor.aspired = false;
                model.versions.add(predecessor.failedReload == null ? v : predecessor.failedReload);
                startDrain(model, predecessor);
                registry.changed(model, v);
            } else {
                transition.reject(model, predecessor, v, "reload failed: " + reason);
            }
        } else if (v.aspired) {
            registry.changed(model, v);
        } else {
            end(model, v, reason);
        }
        executor.memoryChanged();
        transition.finishStaged(model);
        advance(model);
    }

    void unloaded(ModelVersions model, ManagedVersion v, @Nullable String trouble) {
        String ended = v.cancelled ? CANCELLED : "unloaded";
        end(model, v, trouble == null ? ended : ended + ", with an error: " + trouble);
        executor.memoryChanged();
        advance(model);
    }

    // ---- waiting callers ----

    CompletableFuture<List<ServableState>> settled(List<String> names) {
        CompletableFuture<List<ServableState>> future = new CompletableFuture<>();
        submit(() -> {
            if (closing) {
                future.completeExceptionally(stopping());
            } else {
                List<ModelVersions> asked = new ArrayList<>();
                for (String name : names) {
                    ModelVersions model = registry.find(name);
                    if (model != null) {
                        asked.add(model);
                    }
                }
                waiters.awaitSettled(asked, future);
            }
        });
        if (thread.isShutdown()) {
            future.completeExceptionally(stopping());
        }
        return future;
    }

    CompletableFuture<WaitResult> reached(Collection<ModelRef> refs, Phase goal, Duration timeout) {
        CompletableFuture<WaitResult> future = new CompletableFuture<>();
        submit(() -> {
            if (closing) {
                future.completeExceptionally(stopping());
            } else {
                Runnable expire = waiters.awaitPhase(refs, goal, future);
                timer.after(timeout.toNanos(), () -> submit(expire));
            }
        });
        if (thread.isShutdown()) {
            future.completeExceptionally(stopping());
        }
        return future;
    }

    private static ServingException stopping() {
        return ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping; no model is loaded any more");
    }

    // ---- close ----

    boolean close(Duration patience) {
        if (thread.isShutdown()) {
            return allEnded.isDone();
        }
        submit(() -> {
            closing = true;
            ending.addAll(registry.models());
            for (ModelVersions model : List.copyOf(registry.models())) {
                for (ManagedVersion v : List.copyOf(model.versions)) {
                    if (v.aspired) {
                        stopAspiring(model, v);
                    }
                }
                for (ManagedVersion v : List.copyOf(model.versions)) {
                    if (v.phase == Phase.AVAILABLE) {
                        startDrain(model, v);
                    }
                }
                registry.changed(model);
            }
            waiters.fail(stopping());
        });
        boolean ended = await(patience);
        timer.close();
        executor.close();
        thread.shutdown();
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

    private static boolean allEnded(ModelVersions model) {
        return model.versions.stream().allMatch(ManagedVersion::ended);
    }
}
