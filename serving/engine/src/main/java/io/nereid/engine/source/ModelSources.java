// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.loading.EmbeddedLoader;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.lifecycle.ServableManager;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.ManagedModels;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.SourceArbiter;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source;
import io.nereid.spi.management.LoadOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;

/**
 * All sources of an engine's models: the model list, the repositories and the sources of the embedding application, in
 * front of one lifecycle manager. Thread-safe: explicit loads and unloads run on a thread of their own.
 */
public final class ModelSources implements AutoCloseable {
    private static final String REPOSITORY = "the repository";

    private final ServableManager manager;
    private final RepositorySource repository;
    private final ModelListController modelList;
    private final List<Source> others;
    private final LoaderFactory loaders;
    private final ServableFactory servables;
    private final AspiredVersionsRecorder remembered;
    private final SourceArbiter gate;
    private final ExecutorService control = Threads.single("control");

    public ModelSources(
            EngineOptions options,
            List<Backend> backends,
            LoaderFactory loaders,
            ServableFactory servables,
            ServableManager manager,
            Clock clock) {
        GpuInventory gpus = GpuInventory.of(options.devices());
        this.manager = manager;
        this.servables = servables;
        this.remembered = new AspiredVersionsRecorder(manager);
        this.gate = new SourceArbiter(remembered);
        this.modelList = new ModelListController(
                new FileSystemStoragePathSource(
                        options.servedModels(), backends, loaders, options.modelListSource(), gpus, clock),
                gate,
                manager,
                options);
        this.repository = new RepositorySource(
                options.repositories(),
                backends,
                loaders,
                options.repository().withScratch(options.scratch()),
                gpus,
                clock);
        this.others = List.copyOf(options.sources());
        this.loaders = loaders;
    }

    /** Starts all sources. Where several provide the same model, the first one wins. */
    public void start() {
        modelList.start();
        gate.start(REPOSITORY, repository);
        for (int i = 0; i < others.size(); i++) {
            Source.Target target = gate.as("source " + (i + 1));
            if (others.get(i) instanceof ManagedModels placed) {
                placed.loaders(loaders);
                placed.start(target);
            } else {
                others.get(i).start(EmbeddedLoader.target(target, servables));
            }
        }
    }

    public ModelListController modelList() {
        return modelList;
    }

    /** The names of all known models, loaded or not, sorted. */
    public Set<String> names() {
        Set<String> names = new TreeSet<>(repository.names());
        names.addAll(modelList.names());
        names.addAll(remembered.models());
        return names;
    }

    /** The source of the models that lie in the repositories. */
    public RepositorySource repository() {
        return repository;
    }

    /** See {@link io.nereid.spi.management.ModelControl#load(String, LoadOptions)}. */
    public CompletionStage<Void> load(String model, LoadOptions options) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        control.execute(() -> {
            try {
                List<ServableId> versions = read(model, options);
                manager.settled(model).whenComplete((states, e) -> finish(model, versions, states, done, e));
            } catch (RuntimeException e) {
                done.completeExceptionally(e);
            }
        });
        return done;
    }

    private List<ServableId> read(String model, LoadOptions options) {
        String owner = other(model);
        if (owner == null) {
            manager.retry(model);
            return repository.load(model, options.config(), options.files());
        }
        if (options.config() != null || !options.files().isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + model + "' comes from " + owner + ", which defines its configuration and its files",
                    "load it without a configuration and files, or change them there");
        }
        if (owner.equals(ModelListController.LIST)) {
            manager.retry(model);
            return modelList.load(model);
        }
        // only the model's source can reload it: wait for the versions that it aspires now
        return remembered.versions(model);
    }

    /** The source that provides a model, when it is not the repository; otherwise null. */
    private @Nullable String other(String model) {
        String owner = gate.owner(model);
        if (owner == null && modelList.lists(model)) {
            return ModelListController.LIST;
        }
        return owner == null || owner.equals(REPOSITORY) ? null : owner;
    }

    private static void finish(
            String model,
            List<ServableId> versions,
            @Nullable List<ServableState> states,
            CompletableFuture<Void> done,
            @Nullable Throwable failure) {
        if (states == null) {
            done.completeExceptionally(failure == null ? new IllegalStateException("no states") : failure);
            return;
        }
        StringBuilder reasons = new StringBuilder();
        for (ServableState state : states) {
            if (versions.contains(state.id()) && (state.phase() == Phase.FAILED || state.reason() != null)) {
                reasons.append("version ").append(state.id().version()).append(" is at UNAVAILABLE state: ");
                reasons.append(state.reason()).append(";\n");
            }
        }
        if (reasons.isEmpty() && !versions.isEmpty()) {
            done.complete(null);
        } else {
            String text = versions.isEmpty() ? "no version is available" : reasons.toString();
            done.completeExceptionally(
                    ServingException.invalidArgument("load failed for model '" + model + "': " + text));
        }
    }

    /** See {@link io.nereid.spi.management.ModelControl#unload(String, boolean)}. */
    public CompletionStage<Void> unload(String model, boolean dependents) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        control.execute(() -> {
            try {
                String owner = other(model);
                if (owner != null) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "model '" + model + "' comes from " + owner + ", which would load it again at once",
                            "remove it there");
                }
                repository.unload(model, dependents);
                manager.settled(model).whenComplete((states, e) -> {
                    if (e != null) {
                        done.completeExceptionally(e);
                    } else {
                        done.complete(null);
                    }
                });
            } catch (RuntimeException e) {
                done.completeExceptionally(e);
            }
        });
        return done;
    }

    /** Stops all sources. */
    @Override
    public void close() {
        List<Source> all = new ArrayList<>(others);
        all.add(repository);
        for (Source source : all) {
            source.close();
        }
        modelList.close();
        control.shutdown();
    }
}
