// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.options.EngineOptions;
import io.nereid.lifecycle.ServableManager;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.SourceArbiter;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListChange.Action;
import io.nereid.spi.management.ModelListEntry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Applies the model list ({@code model_config_list}): replaces it, waits for the models that it loads, and moves
 * version labels. Thread-safe: a single thread applies one list after the other; it never blocks, because every wait
 * is a future.
 */
public final class ModelListController implements AutoCloseable {
    /** The name of the model list in messages about models that several sources provide. */
    static final String LIST = "the list of models";

    private static final Logger LOG = LoggerFactory.getLogger(ModelListController.class);

    private final FileSystemStoragePathSource source;
    private final SourceArbiter gate;
    private final ServableManager manager;
    private final Duration timeout;
    private final VersionLabels labels;
    private final ScheduledExecutorService executor = Threads.timer("configure");
    private final List<Consumer<List<ModelListEntry>>> listeners = new CopyOnWriteArrayList<>();
    private final ReentrantLock lock = new ReentrantLock();
    /** Completes when the last list has been applied; the next one starts then. Guarded by the lock. */
    @GuardedBy("lock") private CompletableFuture<?> last = CompletableFuture.completedFuture(null);

    ModelListController(
            FileSystemStoragePathSource source, SourceArbiter gate, ServableManager manager, EngineOptions options) {
        this.source = source;
        this.gate = gate;
        this.manager = manager;
        this.timeout = options.reloadTimeout();
        this.labels = new VersionLabels(manager, options.labelAssignmentPolicy());
    }

    public void onConfigured(Consumer<List<ModelListEntry>> listener) {
        listeners.add(listener);
    }

    /** Applies the initial list and starts polling its models. */
    void start() {
        gate.start(LIST, source);
        manager.listen(this::stepped);
        run(() -> {
            labels.assign(source.models());
            labels.settled();
        });
        notifyListeners();
    }

    private void stepped(ServableState state) {
        if (state.phase() == Phase.AVAILABLE) {
            run(() -> labels.update(state.id().model()));
        }
    }

    private void run(Runnable task) {
        try {
            executor.execute(task);
        } catch (RejectedExecutionException closed) {
            LOG.debug("labels are not updated, because the server is stopping");
        }
    }

    /** The names of the list's models. */
    List<String> names() {
        return source.models().stream().map(ModelListEntry::name).toList();
    }

    boolean lists(String model) {
        return source.models().stream().anyMatch(m -> m.name().equals(model));
    }

    /** Polls a model of the list now and returns its versions. */
    List<ServableId> load(String model) {
        return source.load(model);
    }

    /** See {@link io.nereid.spi.management.ModelControl#configure}. */
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> next, boolean dryRun) {
        List<ModelListEntry> models = List.copyOf(next);
        CompletableFuture<List<ModelListChange>> mine;
        // chain onto the previous list, whatever its result, so that lists are applied in the order of the calls
        lock.lock();
        try {
            mine = last.handle((r, e) -> null)
                    .thenComposeAsync(ignored -> dryRun ? planned(models) : apply(models), executor);
            last = mine;
        } finally {
            lock.unlock();
        }
        return mine.exceptionallyCompose(ModelListController::failed);
    }

    private static CompletionStage<List<ModelListChange>> failed(Throwable failure) {
        Throwable cause = failure instanceof CompletionException c && c.getCause() != null ? c.getCause() : failure;
        return CompletableFuture.failedStage(
                cause instanceof RejectedExecutionException
                        ? ServingException.of(
                                ErrorCode.UNAVAILABLE, "the server is stopping and accepts no further model list")
                        : ServingException.from(cause));
    }

    /** Computes the changes of a list and validates it. */
    private List<ModelListChange> plan(List<ModelListEntry> models) {
        List<ModelListChange> plan = source.plan(models);
        labels.check(models, plan);
        return plan;
    }

    private CompletableFuture<List<ModelListChange>> planned(List<ModelListEntry> models) {
        return CompletableFuture.completedFuture(plan(models));
    }

    private CompletableFuture<List<ModelListChange>> apply(List<ModelListEntry> models) {
        List<ModelListChange> plan = plan(models);
        LOG.info("applying a model list with {} models: {}", models.size(), summary(plan));
        labels.assign(models);
        List<ModelListChange> changes;
        try {
            changes = source.configure(models);
        } catch (RuntimeException e) {
            labels.assign(source.models());
            labels.settled();
            throw e;
        }
        CompletableFuture<Void> waited = waited(changes);
        return waited.handleAsync(
                (done, late) -> {
                    labels.settled();
                    List<ModelListChange> report =
                            changes.stream().map(this::reported).toList();
                    notifyListeners();
                    return report;
                },
                executor);
    }

    private static String summary(List<ModelListChange> plan) {
        List<String> changed = plan.stream()
                .filter(c -> c.action() != Action.KEPT)
                .map(c -> c.model() + " " + c.action())
                .toList();
        return changed.isEmpty() ? "no changes" : String.join(", ", changed);
    }

    /** Completes when all changed models are available or have failed; fails after the timeout. */
    private CompletableFuture<Void> waited(List<ModelListChange> changes) {
        List<ModelRef> loading = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (ModelListChange change : changes) {
            if (change.action() != Action.KEPT && owned(change)) {
                change.load().forEach(v -> loading.add(ModelRef.exact(change.model(), v)));
                names.add(change.model());
            }
        }
        CompletableFuture<Void> settled = manager.waitUntil(loading, Phase.AVAILABLE, timeout)
                .thenCompose(reached -> manager.settled(names))
                .<Void>thenApply(states -> null)
                .toCompletableFuture();
        ScheduledFuture<?> alarm = executor.schedule(
                () -> settled.completeExceptionally(
                        ServingException.of(ErrorCode.DEADLINE_EXCEEDED, "not completed within " + timeout)),
                timeout.toNanos(),
                TimeUnit.NANOSECONDS);
        return settled.whenComplete((done, e) -> alarm.cancel(false));
    }

    private boolean owned(ModelListChange change) {
        String owner = gate.owner(change.model());
        return owner == null || owner.equals(LIST);
    }

    /** Adds the result to a change. */
    private ModelListChange reported(ModelListChange change) {
        ServingException error = change.error();
        if (error == null && change.action() != Action.REMOVED) {
            error = owned(change)
                    ? failure(change)
                    : ServingException.of(
                            ErrorCode.ALREADY_EXISTS,
                            "model '" + change.model() + "' of the list is not served, because "
                                    + gate.owner(change.model()) + " provided a model of that name first",
                            "give one of them another name");
        }
        return error == change.error()
                ? change
                : new ModelListChange(change.model(), change.action(), change.load(), change.unload(), error);
    }

    private @Nullable ServingException failure(ModelListChange change) {
        String model = change.model();
        List<ServableState> states = manager.states(model);
        List<String> reasons = new ArrayList<>();
        boolean late = false;
        for (long version : change.load()) {
            ServableState state = states.stream()
                    .filter(s -> s.id().version() == version)
                    .findFirst()
                    .orElse(null);
            if (state == null || state.phase().compareTo(Phase.AVAILABLE) < 0) {
                late = true;
                reasons.add("version " + version + " is not available after " + timeout.toMillis() + " ms");
            } else if (state.reason() != null) {
                reasons.add("version " + version + ": " + state.reason());
            }
        }
        boolean serves = states.stream().anyMatch(s -> s.phase() == Phase.AVAILABLE);
        if (!reasons.isEmpty()) {
            return ServingException.of(
                    late ? ErrorCode.DEADLINE_EXCEEDED : ErrorCode.FAILED_PRECONDITION,
                    "model '" + model + "' did not become available as listed: " + String.join("; ", reasons),
                    late
                            ? "loading continues; query the model's status"
                            : serves ? "the previous versions remain available" : "no version of it is available");
        }
        if (change.action() != Action.KEPT && !serves) {
            return ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Could not find any versions of model " + model,
                    "its base path should contain a directory named by a number; it is polled again");
        }
        List<String> pending = labels.pending(model);
        if (!pending.isEmpty()) {
            return ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "the labels " + pending + " of model '" + model
                            + "' have not moved, because their versions are not available",
                    "they move when the versions become available");
        }
        return null;
    }

    private void notifyListeners() {
        List<ModelListEntry> models = source.models();
        for (Consumer<List<ModelListEntry>> listener : listeners) {
            try {
                listener.accept(models);
            } catch (RuntimeException e) {
                LOG.error("a listener for the model list failed", e);
            }
        }
    }

    @Override
    public void close() {
        source.close();
        executor.shutdown();
    }
}
