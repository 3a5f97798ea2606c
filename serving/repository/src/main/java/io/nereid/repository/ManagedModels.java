// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.polling.AspiredVersionsEmitter;
import io.nereid.repository.polling.EnsembleMembership;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.Source;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Models that somebody else has put on this machine and names one by one, whole set by whole set. They are read once, when
 * they are new or have changed; what becomes of their files afterwards is not watched.
 *
 * <p>What a directory holds is found out as KServe's runtimes do:
 *
 * <ul>
 *   <li>exactly one file that may be the model; of several, those that surely are none do not count, and what is left is
 *       refused with all names;
 *   <li>else directories whose names are whole numbers, each a version; the highest is served where no {@code config.pbtxt}
 *       says otherwise;
 *   <li>else directories with models in them, each served as {@code name/directory}. A {@linkplain PlacedModel#repository
 *       repository} is always read so, unless it is a single model's directory itself.
 * </ul>
 *
 * <p>A {@code config.pbtxt} is honoured, whatever name it gives. Steps of an ensemble name models of their own repository.
 * What cannot be served is emitted with the reason, under the placed model's own name. A model of which only the number of
 * instances changes is not loaded anew where its backend can help it.
 *
 * <p>Thread-safe: one lock guards reading and emitting.
 */
public final class ManagedModels implements Source {
    private static final Logger LOG = LoggerFactory.getLogger(ManagedModels.class);

    /**
     * One placed model. Immutable.
     *
     * @param name its name in the engine; may hold slashes
     * @param directory where its files lie; or a single file
     * @param repository whether the directory holds a directory for each of several models, as Triton has them; each is served as
     *     {@code name/directory}
     * @param backend the backend or platform that must run it where no stored configuration says so; empty for whatever its
     *     files are
     * @param modelFile the file that is the model; empty for the only one of its kind
     * @param parameters set in the model's configuration, stronger than what is stored
     * @param instances how many run at once; multiplies what the stored configuration says. Another number reloads nothing
     * @param batching how requests are joined where the stored configuration does not say it; null for not at all
     * @param maxBatchSize most rows of a batch, where {@code batching} holds and the stored configuration says nothing; 0 for
     *     what the backend finds
     * @param config the whole configuration as JSON in Triton's words, in the place of a stored one; empty for that
     * @param expectedFiles patterns of the files that may be the model, such as {@code *.joblib}; empty for the backend's own
     */
    public record PlacedModel(
            String name,
            Path directory,
            boolean repository,
            String backend,
            String modelFile,
            Map<String, String> parameters,
            int instances,
            @Nullable Batching batching,
            int maxBatchSize,
            String config,
            List<String> expectedFiles) {
        /** Keeps copies. */
        public PlacedModel {
            parameters = Map.copyOf(parameters);
            expectedFiles = List.copyOf(expectedFiles);
        }

        /** A model of which nothing is known but where it lies. */
        public static PlacedModel of(String name, Path directory) {
            return new PlacedModel(name, directory, false, "", "", Map.of(), 1, null, 0, "", List.of());
        }

        /** This model with another number of instances. */
        public PlacedModel withInstances(int count) {
            return new PlacedModel(
                    name,
                    directory,
                    repository,
                    backend,
                    modelFile,
                    parameters,
                    count,
                    batching,
                    maxBatchSize,
                    config,
                    expectedFiles);
        }
    }

    /** A placed model and what was emitted for it, by name in the engine. */
    private record Emitted(PlacedModel placed, Map<String, List<Aspired>> models) {}

    private final ManagedModelReader reader;
    private final ReentrantLock lock = new ReentrantLock();
    private Map<String, Emitted> emitted = new LinkedHashMap<>();
    private @Nullable LoaderFactory loaders;
    private @Nullable Target target;

    /**
     * Serves nothing yet.
     *
     * @param backends what can run models; earlier ones win where several recognise the same files
     */
    public ManagedModels(List<Backend> backends) {
        this.reader = new ManagedModelReader(backends);
    }

    /** Gives it what makes the loader of every version emitted; before {@link #start}. The engine does that. */
    public void loaders(LoaderFactory factory) {
        lock.lock();
        try {
            loaders = factory;
        } finally {
            lock.unlock();
        }
    }

    /** Begins to emit; nothing is placed before. */
    @Override
    public void start(Target to) {
        lock.lock();
        try {
            if (loaders == null) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "nobody has said what makes loaders");
            }
            target = to;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Serves these and no others. Reads the directories of those that are new or have changed; may take as long as that.
     *
     * @return the names in the engine by the name of each placed model: its own, or one for each model of a repository
     * @throws ServingException FAILED_PRECONDITION before {@link #start} and after {@link #close}, INVALID_ARGUMENT when a name
     *     comes twice; nothing has changed then
     */
    public Map<String, List<String>> place(List<PlacedModel> all) {
        lock.lock();
        try {
            Target to = target;
            LoaderFactory factory = loaders;
            if (to == null || factory == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "the engine is not running, no model can be placed");
            }
            Set<String> names = new HashSet<>();
            for (PlacedModel placed : all) {
                if (!names.add(placed.name())) {
                    throw ServingException.invalidArgument("model '" + placed.name() + "' is placed twice");
                }
            }
            Map<String, Emitted> next = new LinkedHashMap<>();
            List<Emitted> changed = new ArrayList<>();
            for (PlacedModel placed : all) {
                Emitted before = emitted.get(placed.name());
                if (before != null && before.placed.equals(placed)) {
                    next.put(placed.name(), before);
                } else {
                    Emitted now = read(placed, factory);
                    next.put(placed.name(), now);
                    changed.add(now);
                }
            }
            Set<String> served = new HashSet<>();
            next.values().forEach(e -> served.addAll(e.models.keySet()));
            Map<String, Emitted> before = emitted;
            emitted = next;
            before.values()
                    .forEach(e -> e.models.keySet().forEach(name -> {
                        if (!served.contains(name)) {
                            to.aspire(name, List.of());
                        }
                    }));
            changed.forEach(e -> e.models.forEach(to::aspire));
            Map<String, List<String>> result = new LinkedHashMap<>();
            next.forEach((name, e) -> result.put(name, List.copyOf(e.models.keySet())));
            return result;
        } finally {
            lock.unlock();
        }
    }

    private Emitted read(PlacedModel placed, LoaderFactory factory) {
        EnsembleMembership ensembles = new EnsembleMembership();
        Map<String, StoredModel> stored = new LinkedHashMap<>();
        for (StoredModel model : reader.read(placed)) {
            stored.put(model.entry().name(), model);
            ensembles.note(model);
        }
        Map<String, List<Aspired>> models = new LinkedHashMap<>();
        AspiredVersionsEmitter emitter = new AspiredVersionsEmitter(factory, ensembles);
        emitter.target(models::put);
        stored.forEach((name, model) -> {
            StoredModel checked = ensembles.checked(model, stored::containsKey);
            checked.problems().stream().filter(p -> !p.isError()).forEach(p -> LOG.info("model '{}': {}", name, p));
            var unused = emitter.takeUp(checked, new TrackedModel(name), false, null);
        });
        emitter.flush();
        return new Emitted(placed, models);
    }

    /** Emits nothing any more; what was placed goes on until the engine ends. */
    @Override
    public void close() {
        lock.lock();
        try {
            target = null;
        } finally {
            lock.unlock();
        }
    }
}
