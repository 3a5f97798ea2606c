// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.polling.AspiredVersionsEmitter;
import io.nereid.repository.polling.EnsembleMembership;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Loader;
import io.nereid.spi.Source;
import java.util.ArrayList;
import java.util.HashMap;
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
 * The source for models that a control plane manages: it downloads the files and places the complete set of models with
 * {@link #place}. A model is read once, when it is new or its specification has changed; its files are not polled.
 *
 * <pre>{@code
 * ManagedModels source = new ManagedModels(backends);   // the engine sets the loaders and starts it
 * source.place(List.of(ManagedModel.of("iris", Path.of("/cache/iris"))));
 * }</pre>
 *
 * <p>The content of a directory is determined as KServe's runtimes do:
 *
 * <ul>
 *   <li>exactly one file that may be the model. Of several, those that no backend recognises are ignored; if more than
 *       one is left, the model is rejected with all names;
 *   <li>else directories whose names are whole numbers, each a version; the highest is served unless
 *       {@code config.pbtxt} has another version policy;
 *   <li>else directories with models in them, each served as {@code name/directory}. A
 *       {@linkplain ManagedModel#repository repository} is always read like this, unless it is a single model's
 *       directory itself.
 * </ul>
 *
 * <p>A {@code config.pbtxt} is honoured, except for its name. Steps of an ensemble name models of their own repository.
 * A model that cannot be served is emitted with its error, under the managed model's own name. If only the number of
 * instances changes, the model is not reloaded, provided its backend supports that.
 *
 * <p>Thread-safe: one lock guards reading and emitting.
 */
public final class ManagedModels implements Source {
    private static final Logger LOG = LoggerFactory.getLogger(ManagedModels.class);

    /** A managed model and its emitted versions, by name in the engine. */
    private record Emitted(ManagedModel placed, Map<String, List<AspiredVersion>> models) {}

    private final ManagedModelReader reader;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock") private Map<String, Emitted> emitted = new LinkedHashMap<>();

    /** What {@link #refresh} has seen last, by the managed model's name. */
    @GuardedBy("lock") private final Map<String, String> unsettled = new HashMap<>();

    @GuardedBy("lock") private @Nullable LoaderFactory loaders;

    @GuardedBy("lock") private @Nullable Target target;

    /**
     * Creates a source without models.
     *
     * @param backends the available backends; earlier ones win where several recognise the same files
     */
    public ManagedModels(List<Backend> backends) {
        this.reader = new ManagedModelReader(backends);
    }

    /** Sets the factory of loaders, before {@link #start}. Called by the engine. */
    public void loaders(LoaderFactory factory) {
        lock.lock();
        try {
            loaders = factory;
        } finally {
            lock.unlock();
        }
    }

    /** Sets the target. {@link #place} works from now on. */
    @Override
    public void start(Target to) {
        lock.lock();
        try {
            if (loaders == null) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the factory of loaders is not set");
            }
            target = to;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Replaces the set of managed models. Reads the directories of new and changed models on the calling thread, and
     * unloads the models that are not in the list.
     *
     * @return the names in the engine by the name of each managed model: its own, or one for each model of a repository
     * @throws ServingException FAILED_PRECONDITION before {@link #start} and after {@link #close}, INVALID_ARGUMENT for
     *     a duplicate name; nothing has changed then
     */
    public Map<String, List<String>> place(List<ManagedModel> all) {
        lock.lock();
        try {
            Target to = target;
            LoaderFactory factory = loaders;
            if (to == null || factory == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "the engine is not running, no model can be placed");
            }
            Set<String> names = new HashSet<>();
            for (ManagedModel placed : all) {
                if (!names.add(placed.name())) {
                    throw ServingException.invalidArgument("model '" + placed.name() + "' is placed twice");
                }
            }
            Map<String, Emitted> next = new LinkedHashMap<>();
            List<Emitted> changed = new ArrayList<>();
            for (ManagedModel placed : all) {
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

    /**
     * Reads the directories of all managed models again, on the calling thread, and loads what has changed; a version whose
     * files are the same stays as it is.
     *
     * @param settled whether a change counts only when a second call has seen the same files, because they may still be
     *     written
     * @throws ServingException FAILED_PRECONDITION before {@link #start} and after {@link #close}
     */
    public void refresh(boolean settled) {
        lock.lock();
        try {
            Target to = target;
            LoaderFactory factory = loaders;
            if (to == null || factory == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "the engine is not running, no model can be read again");
            }
            Map<String, Emitted> next = new LinkedHashMap<>();
            List<Emitted> changed = new ArrayList<>();
            emitted.forEach((name, before) -> {
                Emitted now = read(before.placed, factory);
                String files = fingerprint(now);
                boolean same = files.equals(fingerprint(before));
                boolean seen = files.equals(unsettled.get(name));
                if (same || settled && !seen) {
                    next.put(name, before);
                } else {
                    next.put(name, now);
                    changed.add(now);
                    before.models.keySet().stream()
                            .filter(model -> !now.models.containsKey(model))
                            .forEach(model -> to.aspire(model, List.of()));
                }
                unsettled.put(name, files);
            });
            emitted = next;
            unsettled.keySet().retainAll(next.keySet());
            changed.forEach(e -> e.models.forEach(to::aspire));
        } finally {
            lock.unlock();
        }
    }

    private static String fingerprint(Emitted of) {
        StringBuilder text = new StringBuilder();
        of.models.forEach((name, versions) -> {
            for (AspiredVersion version : versions) {
                Loader loader = version.loader();
                text.append(version.id())
                        .append('=')
                        .append(loader == null ? version.error() : loader.fingerprint())
                        .append('\n');
            }
        });
        return text.toString();
    }

    private Emitted read(ManagedModel placed, LoaderFactory factory) {
        EnsembleMembership ensembles = new EnsembleMembership();
        Map<String, StoredModel> stored = new LinkedHashMap<>();
        for (StoredModel model : reader.read(placed)) {
            stored.put(model.entry().name(), model);
            ensembles.note(model);
        }
        Map<String, List<AspiredVersion>> models = new LinkedHashMap<>();
        AspiredVersionsEmitter emitter = new AspiredVersionsEmitter(factory, ensembles);
        emitter.target(models::put);
        stored.forEach((name, model) -> {
            StoredModel checked = ensembles.checked(model, stored::containsKey);
            checked.problems().stream().filter(p -> !p.isError()).forEach(p -> LOG.info("model '{}': {}", name, p));
            var unused = emitter.accept(checked, new TrackedModel(name), false, null);
        });
        emitter.flush();
        return new Emitted(placed, models);
    }

    /** Stops emitting; models keep serving until the engine stops. */
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
