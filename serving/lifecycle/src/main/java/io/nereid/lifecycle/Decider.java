// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.lifecycle.Manager.Reached;
import io.nereid.lifecycle.TransitionPolicy.Step;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source.Aspired;
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
 * Takes every step there is: one thread, to which all state is confined, hears of wishes and of what the pools have done,
 * and decides what comes next. After each decision it publishes, then looks after what depends on what was published, then
 * tells those who wait for models to settle.
 */
final class Decider {
    static final String NO_LONGER_WANTED = "no longer wanted";

    /** Of what has loaded when nobody wanted it any more. */
    static final String CANCELLED = "Loading of servable cancelled";

    private static final Logger LOG = LoggerFactory.getLogger(Decider.class);

    /** How long a version waits for a dependency that nobody has mentioned. */
    private static final Duration GRACE = Duration.ofMillis(100);

    private final ManagerOptions options;
    private final Delays delays;
    private final ExecutorService deciding = Threads.single("manager");
    private final CompletableFuture<Void> allEnded = new CompletableFuture<>();

    /** Models that may not have ended; filled when closing begins. */
    private final ArrayDeque<Model> ending = new ArrayDeque<>();

    private final Board board = new Board();
    private final Waiters waiters = new Waiters(board);
    private final Dependencies dependencies = new Dependencies(board);
    private final Dependents dependents = new Dependents(board, dependencies, this);
    private final Takeover takeover = new Takeover(board, this);
    private final Wishes wishes;
    private final Work work;
    private volatile boolean closing;

    /** Whether dependents may be started: readers see what was decided before. */
    private boolean published;

    Decider(ManagerOptions options, Clock clock) {
        this(options, clock, Delays.threaded("manager-timer"));
    }

    Decider(ManagerOptions options, Clock clock, Delays delays) {
        this.options = options;
        this.delays = delays;
        this.work = new Work(options, clock, delays, this);
        this.wishes = new Wishes(options.policy(), board, this);
    }

    ServingMap map() {
        return board.map();
    }

    boolean closing() {
        return closing;
    }

    long memoryBytes() {
        return work.memoryBytes();
    }

    long memoryLimit() {
        return work.memoryLimit();
    }

    int loadThreads() {
        return work.loadThreads();
    }

    void labels(String model, Map<String, Label> labels) {
        board.labels(model, labels);
        // Somebody may wait for what a label stands for.
        decide(() -> {});
    }

    Runnable listen(Consumer<ServableState> listener) {
        return board.listen(listener);
    }

    /** Runs a decision, then publishes what came of it. */
    void decide(Runnable decision) {
        try {
            deciding.execute(() -> {
                run(decision);
                board.publish();
                published = true;
                do {
                    run(() -> {
                        if (!closing) {
                            dependents.look();
                        }
                    });
                    if (!board.dirty()) {
                        break;
                    }
                    board.publish();
                } while (true);
                published = false;
                if (waiters.check(dependencies)) {
                    work.servingBegins();
                }
                if (closing) {
                    while (!ending.isEmpty() && allEnded(ending.element())) {
                        ending.remove();
                    }
                    if (ending.isEmpty()) {
                        allEnded.complete(null);
                    }
                }
            });
        } catch (RejectedExecutionException e) {
            LOG.debug("closed before a report came", e);
        }
    }

    private static void run(Runnable decision) {
        try {
            decision.run();
        } catch (RuntimeException e) {
            LOG.error("a decision failed", e);
        }
    }

    @Nullable
    Model find(String name) {
        return board.find(name);
    }

    void changed(Model model, Version v) {
        board.changed(model, v);
    }

    /** A list of wanted versions came. */
    void aspired(String name, List<Aspired> list, boolean retry) {
        if (closing) {
            return;
        }
        Model model = board.model(name);
        board.changed(model);
        Set<Long> wanted = list.stream().map(a -> a.id().version()).collect(Collectors.toSet());
        for (Version v : List.copyOf(model.versions)) {
            if (v.aspired && !wanted.contains(v.id.version())) {
                unwant(model, v);
            }
        }
        wishes.want(model, list, retry);
        takeover.conclude(model);
        advance(model);
    }

    // ---- steps ----

    /** Ends a version that is no longer wanted as soon as that can be; one that serves goes on until its policy says so. */
    void unwant(Model model, Version v) {
        v.aspired = false;
        dropSuccessor(model, v);
        if (v.phase == Phase.TRACKED) {
            end(model, v, NO_LONGER_WANTED);
        } else if (v.phase == Phase.FAILED) {
            end(model, v, v.reason);
        } else if (v.loads()) {
            v.unwanted = true;
            if (v.staged) {
                v.staged = false;
                startUnload(model, v);
            } else if (work.stopWaitingForMemory(v)) {
                end(model, v, NO_LONGER_WANTED);
            } else {
                work.retryNow(model, v);
            }
        }
    }

    /** Gives up the load that goes on beside a version. */
    void dropSuccessor(Model model, Version v) {
        Version successor = v.successor;
        if (successor == null) {
            return;
        }
        v.successor = null;
        successor.predecessor = null;
        successor.aspired = false;
        successor.unwanted = true;
        if (successor.phase == Phase.TRACKED || work.stopWaitingForMemory(successor)) {
            successor.phase = Phase.GONE;
            return;
        }
        // Before the version it would have followed, which stands for the number in the index.
        model.versions.add(0, successor);
        if (successor.staged) {
            successor.staged = false;
            startUnload(model, successor);
        } else {
            work.retryNow(model, successor);
        }
    }

    /** Loads {@code loader} beside a version, which it is to follow, or after it where the policy wants that. */
    void reload(Model model, Version v, Loader loader, boolean renewal) {
        dropSuccessor(model, v);
        if (!renewal) {
            v.refused = null;
        }
        Version successor = new Version(loader.id(), loader);
        successor.renewal = renewal;
        if (!options.policy().reloadsBeside()) {
            v.aspired = false;
            add(model, successor);
            return;
        }
        dependsOnOthers(model, successor);
        v.successor = successor;
        successor.predecessor = v;
        if (successor.dependencies.isEmpty()) {
            startLoad(model, successor);
        }
    }

    void add(Model model, Version v) {
        model.versions.removeIf(old -> old.phase == Phase.GONE && old.id.equals(v.id));
        model.versions.add(v);
        dependsOnOthers(model, v);
        board.changed(model, v);
    }

    void replace(Model model, Version old, Version v) {
        old.phase = Phase.GONE;
        old.aspired = false;
        add(model, v);
    }

    private void dependsOnOthers(Model model, Version v) {
        if (v.dependencies.isEmpty()) {
            return;
        }
        board.composes(model);
        if (dependencies.anyUnknown(v)) {
            v.expectsUnknown = true;
            delays.after(GRACE, () -> decide(() -> v.expectsUnknown = false));
        }
    }

    void advance(Model model) {
        while (true) {
            Step step = options.policy().next(model.snapshot(this::waits));
            if (step == null
                    || (step.kind() == Step.Kind.UNLOAD
                            && options.policy().allOrNothing()
                            && Takeover.undecided(model))) {
                return;
            }
            Version v = model.versions.get(step.index());
            switch (step.kind()) {
                case LOAD -> startLoad(model, v);
                case UNLOAD -> startDrain(model, v);
            }
        }
    }

    private boolean waits(Version v) {
        return !v.dependencies.isEmpty() && (!published || !dependencies.settled(v));
    }

    void startLoad(Model model, Version v) {
        if (!v.dependencies.isEmpty()) {
            v.basis = dependencies.basis(v);
        }
        v.phase = Phase.LOADING;
        board.changed(model, v);
        work.load(model, v);
    }

    void startDrain(Model model, Version v) {
        dropSuccessor(model, v);
        v.phase = Phase.DRAINING;
        board.changed(model, v);
        board.drain(v.live);
    }

    void startUnload(Model model, Version v) {
        v.phase = Phase.UNLOADING;
        board.changed(model, v);
        work.unload(model, v);
    }

    private void end(Model model, Version v, @Nullable String reason) {
        v.phase = Phase.GONE;
        v.reason = reason;
        v.live = null;
        board.changed(model, v);
        if (model.shown(v.id.version()) != v) {
            model.versions.remove(v);
        } else if (!closing) {
            delays.after(
                    options.forgetAfter(),
                    () -> decide(() -> {
                        if (model.versions.remove(v)) {
                            board.changed(model);
                        }
                    }));
        }
    }

    // ---- what the pools report ----

    void loaded(Model model, Version v, Servable servable, long nanos) {
        v.loadNanos = nanos;
        v.reason = null;
        if (v.unwanted) {
            startUnload(model, v);
            return;
        }
        v.memoryBytes = servable.memoryBytes();
        if (v.memoryBytes >= 0) {
            work.book(v, v.memoryBytes);
        }
        v.live = new Live(servable, () -> decide(() -> startUnload(model, v)));
        if (model.together && !v.renewal) {
            v.staged = true;
        } else {
            takeover.show(model, v);
        }
        work.memoryChanged();
        takeover.conclude(model);
        advance(model);
    }

    void loadFailed(Model model, Version v, String reason) {
        Version predecessor = v.predecessor;
        v.phase = Phase.FAILED;
        v.reason = reason;
        if (predecessor != null) {
            v.predecessor = null;
            predecessor.successor = null;
            if (v.renewal) {
                // What the one that serves was built on is no longer there.
                predecessor.aspired = false;
                model.versions.add(predecessor.refused == null ? v : predecessor.refused);
                startDrain(model, predecessor);
                board.changed(model, v);
            } else {
                takeover.reject(model, predecessor, v, "reload failed: " + reason);
            }
        } else if (v.aspired) {
            board.changed(model, v);
        } else {
            end(model, v, reason);
        }
        work.memoryChanged();
        takeover.conclude(model);
        advance(model);
    }

    void unloaded(Model model, Version v, @Nullable String trouble) {
        String ended = v.unwanted ? CANCELLED : "unloaded";
        end(model, v, trouble == null ? ended : ended + ", with an error: " + trouble);
        work.memoryChanged();
        advance(model);
    }

    // ---- who waits ----

    CompletableFuture<List<ServableState>> settled(List<String> names) {
        CompletableFuture<List<ServableState>> future = new CompletableFuture<>();
        decide(() -> {
            if (closing) {
                future.completeExceptionally(stopping());
            } else {
                List<Model> asked = new ArrayList<>();
                for (String name : names) {
                    Model model = board.find(name);
                    if (model != null) {
                        asked.add(model);
                    }
                }
                waiters.add(new Settling(asked, future));
            }
        });
        if (deciding.isShutdown()) {
            future.completeExceptionally(stopping());
        }
        return future;
    }

    CompletableFuture<Reached> reached(Collection<ModelRef> refs, Phase goal, Duration timeout) {
        CompletableFuture<Reached> future = new CompletableFuture<>();
        decide(() -> {
            if (closing) {
                future.completeExceptionally(stopping());
            } else {
                Waiting waiting = new Waiting(refs, goal, future);
                waiters.add(waiting);
                delays.after(timeout, () -> decide(() -> waiters.expire(waiting)));
            }
        });
        if (deciding.isShutdown()) {
            future.completeExceptionally(stopping());
        }
        return future;
    }

    private static ServingException stopping() {
        return ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping; no model is loaded any more");
    }

    // ---- the end ----

    boolean close(Duration patience) {
        if (deciding.isShutdown()) {
            return allEnded.isDone();
        }
        decide(() -> {
            closing = true;
            ending.addAll(board.models());
            for (Model model : List.copyOf(board.models())) {
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
                board.changed(model);
            }
            waiters.fail(stopping());
        });
        boolean ended = await(patience);
        delays.close();
        work.close();
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
