// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.layout.ChecksumAgent;
import io.nereid.repository.layout.OverrideDirectory;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Loader;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source.Target;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Collects the aspired versions of models during a poll or a request, and emits them to the target at its end. Order
 * matters for ensembles: first the models to unload, ensembles before their members; then the others, members before
 * their ensembles. Guarded by the source's lock.
 */
public final class AspiredVersionsEmitter {
    private static final Logger LOG = LoggerFactory.getLogger(AspiredVersionsEmitter.class);
    private static final String DUPLICATE = "duplicate";

    private final LoaderFactory loaders;
    private final EnsembleMembership ensembles;
    private final Map<String, List<AspiredVersion>> round = new LinkedHashMap<>();
    private final List<OverrideDirectory> retired = new ArrayList<>();
    private @Nullable Target target;

    public AspiredVersionsEmitter(LoaderFactory loaders, EnsembleMembership ensembles) {
        this.loaders = loaders;
        this.ensembles = ensembles;
    }

    public void target(Target newTarget) {
        target = newTarget;
    }

    /** Emits all collected lists. */
    public void flush() {
        List<String> order = ensembles.membersFirst(round.keySet());
        for (int i = order.size() - 1; i >= 0; i--) {
            if (list(order.get(i)).isEmpty()) {
                emit(order.get(i));
            }
        }
        for (String name : order) {
            if (!list(name).isEmpty()) {
                emit(name);
            }
        }
        round.clear();
        retired.forEach(OverrideDirectory::retire);
        retired.clear();
    }

    private List<AspiredVersion> list(String name) {
        return round.getOrDefault(name, List.of());
    }

    private void emit(String name) {
        if (target != null) {
            target.aspire(name, list(name));
        }
    }

    /**
     * Accepts the stored state of a model and emits its versions. A model that cannot be served as stored keeps its
     * loaded versions.
     *
     * @param vanished whether the stored versions vanished, so that loaded versions are not kept
     * @param scratch the directory of overridden files, or null
     * @return the model, with the problems of its checksums
     */
    public StoredModel accept(
            StoredModel stored, TrackedModel t, boolean vanished, @Nullable OverrideDirectory scratch) {
        StoredModel model = stored.loadable() ? ChecksumAgent.verified(stored) : stored;
        t.accepted = stored.fingerprint();
        t.pending = null;
        report(t, model.problems());
        if (!model.loadable() && t.serving && !vanished) {
            LOG.warn("model '{}' keeps its loaded versions, because the stored ones cannot be served", t.name);
            return model;
        }
        t.at(model.entry());
        emit(t, model.loadable() ? aspired(t, model, scratch) : failures(model));
        keep(t, model.loadable() ? scratch : null);
        return model;
    }

    /** Emits the completely written versions of a model; a later poll accepts the others. */
    void acceptPartly(StoredModel model, TrackedModel t, List<Version> settled) {
        t.at(model.entry());
        if (settled.isEmpty() || !model.loadable()) {
            int stored = model.versions().size();
            long number = stored == 0 ? 1 : model.versions().get(stored - 1).version();
            emit(
                    t,
                    List.of(AspiredVersion.failed(
                            model.id(number),
                            ServingException.of(
                                    ErrorCode.UNAVAILABLE,
                                    "model '" + t.name + "' is still being written at "
                                            + model.entry().place(),
                                    "it is loaded when its files stop changing"))));
            return;
        }
        StoredModel part =
                new StoredModel(model.entry(), model.config(), model.backend(), settled, model.problems(), true, "", 0);
        emit(t, aspired(t, part, null));
    }

    /** Emits an empty list, which unloads the model. */
    public void drop(TrackedModel t) {
        emit(t, List.of());
        keep(t, null);
    }

    /** Reports several models with one name. None is served, unless one was served before the others appeared. */
    public void duplicate(List<ModelEntry> entries, TrackedModel t) {
        List<Problem> problems = new ArrayList<>();
        for (ModelEntry e : entries) {
            problems.add(new Problem(Problem.Severity.ERROR, e.place(), 0, 0, duplicateText(t.name), places(entries)));
        }
        report(t, problems);
        if (!t.serving && !DUPLICATE.equals(t.accepted)) {
            t.accepted = DUPLICATE;
            ServingException reason =
                    ServingException.invalidArgument(DUPLICATE, duplicateText(t.name) + ": " + places(entries));
            emit(t, List.of(AspiredVersion.failed(new ServableId(t.name, 1), reason)));
        }
    }

    public static ServingException duplicate(String name, List<ModelEntry> entries) {
        return ServingException.invalidArgument(duplicateText(name), places(entries));
    }

    public static String duplicateText(String name) {
        return "model '" + name + "' is not unique across all model repositories";
    }

    public static String places(List<ModelEntry> entries) {
        return "rename or remove all but one of "
                + String.join(
                        ", ", entries.stream().map(e -> e.place().toString()).toList());
    }

    private void emit(TrackedModel t, List<AspiredVersion> list) {
        t.emitted = list;
        t.serving = list.stream().anyMatch(a -> a.loader() != null);
        round.put(t.name, list);
    }

    private void keep(TrackedModel t, @Nullable OverrideDirectory scratch) {
        if (t.scratch != null && t.scratch != scratch) {
            retired.add(t.scratch);
        }
        t.scratch = scratch;
    }

    /** Records the problems of a model, and logs them if they changed. */
    public static void report(TrackedModel t, List<Problem> problems) {
        if (!problems.equals(t.problems)) {
            t.problems = problems;
            for (Problem p : problems) {
                LOG.warn("model '{}': {}", t.name, p);
            }
        }
    }

    private static List<AspiredVersion> failures(StoredModel model) {
        ServingException error = ProblemCollector.refusal(model.problems());
        List<Version> wanted = model.aspired();
        return wanted.isEmpty()
                ? List.of(AspiredVersion.failed(model.id(1), error))
                : wanted.stream()
                        .map(v -> AspiredVersion.failed(model.id(v.version()), error))
                        .toList();
    }

    /** An unreadable version keeps its emitted loader, if any, so that it keeps serving. */
    private List<AspiredVersion> aspired(TrackedModel t, StoredModel model, @Nullable OverrideDirectory scratch) {
        List<AspiredVersion> list = new ArrayList<>();
        for (Version v : model.aspired()) {
            ServableId id = model.id(v.version());
            if (v.error() == null) {
                list.add(aspired(model, v, scratch));
            } else {
                LOG.warn("model '{}': {}", id.model(), v.error().describe());
                list.add(t.emitted.stream()
                        .filter(a -> a.id().equals(id) && a.loader() != null)
                        .findFirst()
                        .orElse(AspiredVersion.failed(id, v.error())));
            }
        }
        return list;
    }

    private AspiredVersion aspired(StoredModel model, Version v, @Nullable OverrideDirectory scratch) {
        ServableId id = model.id(v.version());
        ModelLocation where = new ModelLocation(id, model.entry().directory(), v.directory());
        Backend backend = model.backend();
        try {
            Loader loader = backend == null
                    ? loaders.ensemble(where, model.config(), v.fingerprint())
                    : loaders.create(where, model.config(), backend, v.fingerprint());
            return AspiredVersion.of(scratch == null ? loader : scratch.guard(loader));
        } catch (ServingException e) {
            return AspiredVersion.failed(id, e);
        }
    }
}
