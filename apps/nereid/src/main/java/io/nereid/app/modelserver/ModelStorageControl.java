// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.app.text.DownloadProgress;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.Engine;
import io.nereid.repository.ManagedModel;
import io.nereid.repository.ManagedModels;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import io.nereid.storage.Storage;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.StorageUri;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The model control API of a server whose models are loaded by storage URI, by its clients or from a {@link TrainedModelFile}: fetches
 * the files into the cache of the storage, and gives them to the engine as managed models. A load of a model that is there
 * fetches what has changed; the loaded version serves until the new one is available. Requests for models of repositories
 * pass through. Thread-safe.
 *
 * <pre>{@code
 * ModelStorageControl control = new ModelStorageControl(engine, models, storage, true);
 * control.load("iris", LoadOptions.ofStorage("gs://models/iris"));
 * }</pre>
 */
public final class ModelStorageControl implements ModelControl, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelStorageControl.class);

    private final Engine engine;
    private final ManagedModels source;
    private final Storage storage;
    /** Places and removes models one after the other: the source receives complete lists. */
    private final ExecutorService thread = Threads.single("model-storage");

    /** Models that were loaded by URI, by name; written on {@link #thread}. */
    @GuardedBy("this") private final Map<String, Placed> models = new LinkedHashMap<>();

    /** Versions that are not gone, by model. */
    @GuardedBy("this") private final Map<String, Set<Long>> alive = new HashMap<>();

    /** Unloads that wait for the end of the last version, by model. */
    @GuardedBy("this") private final Map<String, List<CompletableFuture<Void>>> ending = new HashMap<>();

    private final boolean byClients;
    private volatile boolean draining;
    private volatile boolean held;

    private record Placed(ManagedModel model, StorageLease lease) {}

    /**
     * Creates the API.
     *
     * @param source a source of the engine, for this object alone
     * @param storage closed with this object
     * @param byClients whether clients may name storage URIs, and unload such models
     */
    public ModelStorageControl(Engine engine, ManagedModels source, Storage storage, boolean byClients) {
        this.byClients = byClients;
        this.engine = engine;
        this.source = source;
        this.storage = storage;
        engine.onState(this::changed);
    }

    private void changed(ServableState state) {
        List<CompletableFuture<Void>> ended = List.of();
        synchronized (this) {
            String model = state.id().model();
            if (state.phase() != Phase.GONE && state.phase() != Phase.FAILED) {
                alive.computeIfAbsent(model, name -> new HashSet<>())
                        .add(state.id().version());
                return;
            }
            Set<Long> versions = alive.get(model);
            if (versions != null) {
                versions.remove(state.id().version());
                if (versions.isEmpty()) {
                    alive.remove(model);
                    List<CompletableFuture<Void>> waiting = ending.remove(model);
                    ended = waiting == null ? List.of() : waiting;
                }
            }
        }
        // Not on the engine's thread, which must not be held up.
        for (CompletableFuture<Void> one : ended) {
            one.completeAsync(() -> null, thread);
        }
    }

    @Override
    public boolean live() {
        return engine.live();
    }

    /** A model that a client has named and that is loading, or cannot be loaded, does not make the server unready. */
    @Override
    public boolean ready() {
        return !held && (engine.ready() || !draining && engine.live() && owns());
    }

    /** Keeps the server from being ready, or ends that. */
    void hold(boolean now) {
        held = now;
    }

    /** Begins the end: the server is not ready any more. */
    public void beginDrain() {
        draining = true;
    }

    private synchronized boolean owns() {
        return !models.isEmpty();
    }

    @Override
    public boolean ready(ModelRef model) {
        return engine.ready(model);
    }

    @Override
    public List<ModelStatus> index() {
        return engine.index();
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        String uri = options.storageUri();
        if (uri == null || !byClients) {
            return engine.load(model, options);
        }
        return fetch(model, uri, "");
    }

    /**
     * Loads a model, or brings one that is there up to date.
     *
     * @param format its format; empty to determine it by the files
     * @return ends when it is available
     */
    CompletionStage<Void> fetch(String model, String uri, String format) {
        String scheme = uri.substring(0, Math.max(0, uri.indexOf(':'))).toLowerCase(Locale.ROOT);
        if (scheme.equals("file") || scheme.equals("pvc")) {
            return CompletableFuture.failedStage(ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "storage URI '" + uri + "' names files of the server (expected: a store such as gs://models/iris)",
                    "upload the model to a store, or let the operator add it to the repository"));
        }
        return storage.fetch(
                        StorageRequest.of(uri), new DownloadProgress(StorageUri.shown(uri), LOG::info, Clock.system()))
                .thenComposeAsync(lease -> place(model, lease, format), thread);
    }

    private CompletionStage<Void> place(String model, StorageLease lease, String format) {
        Placed before;
        try {
            ManagedModel read = ModelServerFlags.served(
                            model, lease.path(), format, List.of("--model_name=" + model), System.getenv(), null)
                    .model();
            synchronized (this) {
                before = models.put(model, new Placed(read, lease));
            }
        } catch (RuntimeException e) {
            lease.close();
            return CompletableFuture.failedStage(e);
        }
        try {
            List<String> names = send().getOrDefault(model, List.of());
            if (!names.equals(List.of(model))) {
                throw ServingException.invalidArgument(
                        "the storage URI of model '" + model + "' has several models: " + String.join(", ", names)
                                + " (expected: one)",
                        "name the folder of one of them");
            }
        } catch (RuntimeException e) {
            restore(model, before, lease);
            var unused = send();
            return CompletableFuture.failedStage(e);
        }
        return engine.load(model, LoadOptions.NONE)
                .handleAsync(
                        (done, failure) -> {
                            if (failure == null) {
                                if (before != null) {
                                    before.lease.close();
                                }
                                return null;
                            }
                            restore(model, before, lease);
                            var unused = send();
                            throw ServingException.from(failure);
                        },
                        thread);
    }

    /** After a load that failed: what was there before is aspired again, unless another load has replaced it by now. */
    private synchronized void restore(String model, @Nullable Placed before, StorageLease failed) {
        Placed there = models.get(model);
        if (there != null && there.lease.equals(failed)) {
            if (before == null) {
                models.remove(model);
            } else {
                models.put(model, before);
            }
        }
        failed.close();
    }

    private Map<String, List<String>> send() {
        List<ManagedModel> all = new ArrayList<>();
        synchronized (this) {
            models.values().forEach(placed -> all.add(placed.model));
        }
        return source.place(all);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        if (!byClients && owns(model)) {
            return CompletableFuture.failedStage(ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot unload model '" + model + "': the service decides which models it has",
                    "delete its TrainedModel"));
        }
        return remove(model, dependents);
    }

    private synchronized boolean owns(String model) {
        return models.containsKey(model);
    }

    /** Unloads a model; ends when its last request has ended. */
    CompletionStage<Void> remove(String model, boolean dependents) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        thread.execute(() -> {
            try {
                Placed placed;
                boolean idle;
                synchronized (this) {
                    placed = models.remove(model);
                    idle = !alive.containsKey(model);
                    if (placed != null && !idle) {
                        ending.computeIfAbsent(model, name -> new ArrayList<>()).add(done);
                    }
                }
                if (placed == null) {
                    engine.unload(model, dependents).whenComplete((unused, failure) -> {
                        if (failure == null) {
                            done.complete(null);
                        } else {
                            done.completeExceptionally(failure);
                        }
                    });
                    return;
                }
                Object unusedNames = send();
                placed.lease.close();
                if (idle) {
                    done.complete(null);
                }
            } catch (RuntimeException e) {
                done.completeExceptionally(e);
            }
        });
        return done;
    }

    /** @return fails: such a server has no list of models */
    @Override
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> list, boolean dryRun) {
        if (owns()) {
            return CompletableFuture.failedStage(ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "the list of models cannot be replaced: models were loaded by storage URI",
                    "unload them first"));
        }
        return engine.configure(list, dryRun);
    }

    @Override
    public void close() {
        thread.shutdown();
        storage.close();
    }
}
