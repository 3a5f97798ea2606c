// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.base.Clock;
import io.nereid.repository.layout.ListedModelTraits;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.polling.ModelScanner.Found;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads models and accepts those that have changed and settled. Guarded by the source's lock.
 */
public final class ModelPoller {
    private static final Logger LOG = LoggerFactory.getLogger(ModelPoller.class);

    /** Polls in a row that must find nothing before a model is unloaded. */
    public static final int CONFIRMATIONS = 3;

    private final RepositoryLayout layout;
    private final EnsembleMembership ensembles;
    private final AspiredVersionsEmitter emitter;
    private final Duration settle;
    private final int confirmations;
    private final Clock clock;
    private final Map<String, TrackedModel> tracked = new TreeMap<>();
    private long reads;

    /**
     * Creates a poller without models.
     *
     * @param settle how long files must have been unchanged to be accepted
     * @param confirmations polls in a row that must find nothing before a model is unloaded
     */
    public ModelPoller(
            RepositoryLayout layout,
            EnsembleMembership ensembles,
            AspiredVersionsEmitter emitter,
            Duration settle,
            int confirmations,
            Clock clock) {
        this.layout = layout;
        this.ensembles = ensembles;
        this.emitter = emitter;
        this.settle = settle;
        this.confirmations = confirmations;
        this.clock = clock;
    }

    public Collection<TrackedModel> all() {
        return tracked.values();
    }

    public TrackedModel of(String name) {
        return tracked.computeIfAbsent(name, TrackedModel::new);
    }

    public @Nullable TrackedModel find(String name) {
        return tracked.get(name);
    }

    public void remove(String name) {
        tracked.remove(name);
        ensembles.forget(name);
    }

    // ---- reading ----

    /** Reads these models, except those that are missing or ambiguous. */
    public Map<String, StoredModel> read(Collection<String> names, Found found) {
        Map<String, StoredModel> models = new TreeMap<>();
        for (String name : names) {
            readInto(models, name, found);
        }
        models.replaceAll((name, model) -> checked(model, found));
        return models;
    }

    /** As {@link #read}, with all direct and indirect members of ensembles. */
    public Map<String, StoredModel> readWithMembers(Collection<String> names, Found found) {
        Map<String, StoredModel> models = new TreeMap<>();
        Deque<String> toRead = new ArrayDeque<>(names);
        while (!toRead.isEmpty()) {
            String name = toRead.remove();
            if (!models.containsKey(name) && readInto(models, name, found)) {
                toRead.addAll(ensembles.of(name));
            }
        }
        models.replaceAll((name, model) -> checked(model, found));
        return models;
    }

    private boolean readInto(Map<String, StoredModel> models, String name, Found found) {
        ModelEntry entry = found.only(name);
        if (entry == null || overridden(name)) {
            return false;
        }
        reads++;
        models.put(name, noted(layout.read(entry)));
        return true;
    }

    /** Reads a model with an overridden configuration. */
    public StoredModel read(ModelEntry entry, String json, Found found) {
        return checked(noted(layout.read(entry, json)), found);
    }

    private StoredModel noted(StoredModel model) {
        ensembles.note(model);
        return model;
    }

    private StoredModel checked(StoredModel model, Found found) {
        return ensembles.checked(model, name -> found.only(name) != null || overridden(name));
    }

    private boolean overridden(String name) {
        TrackedModel t = tracked.get(name);
        return t != null && t.overridden;
    }

    /** Models read so far by their names. */
    public long reads() {
        return reads;
    }

    // ---- at the start ----

    /**
     * Accepts a model if its files are older than the settle time, or if it is unchanged in the {@code second} read
     * after that time; the second read accepts at least the completely written versions. Returns whether the model is
     * done.
     */
    public boolean acceptAtStart(StoredModel model, boolean second) {
        TrackedModel t = of(model.entry().name());
        boolean settled = settledAtStart(model.newestMillis())
                || (second && model.fingerprint().equals(t.pending));
        if (settled) {
            emitter.accept(model, t, false, null);
            return true;
        }
        t.pending = model.fingerprint();
        t.pendingSince = clock.nanos();
        if (second) {
            List<Version> written = model.versions().stream()
                    .filter(v -> settledAtStart(v.newestMillis()))
                    .toList();
            emitter.acceptPartly(model, t, written);
        }
        return second;
    }

    /** Accepts the completely written versions of a model, if there are any; later polls accept the others. */
    public void acceptWritten(StoredModel model) {
        List<Version> written = model.versions().stream()
                .filter(v -> settledAtStart(v.newestMillis()))
                .toList();
        if (model.loadable() && !written.isEmpty()) {
            emitter.acceptPartly(model, of(model.entry().name()), written);
        }
    }

    private boolean settledAtStart(long newestMillis) {
        return settle.isZero() || newestMillis <= clock.millis() - settle.toMillis();
    }

    // ---- later ----

    /**
     * Accepts a model if it has changed and settled: two polls at least the settle time apart gave the same
     * fingerprint. A model whose versions vanished needs the number of confirmations, since a storage may be briefly
     * unavailable.
     */
    public void poll(StoredModel model) {
        TrackedModel t = of(model.entry().name());
        boolean vanished = model.entry().served() == null
                ? model.versions().isEmpty() && t.serving && model.readable()
                : ListedModelTraits.vanished(model, t);
        t.missing = vanished ? t.missing + 1 : 0;
        if (model.fingerprint().equals(t.accepted)) {
            t.pending = null;
            return;
        }
        if (!model.fingerprint().equals(t.pending)) {
            t.pending = model.fingerprint();
            t.pendingSince = clock.nanos();
        }
        boolean settled = clock.nanos() - t.pendingSince >= settle.toNanos();
        if (settled && (!vanished || t.missing >= confirmations)) {
            emitter.accept(model, t, vanished, null);
        }
    }

    /**
     * Unloads models that are no longer in the repository. If the root became empty, or the model's directory still
     * exists, this needs the number of confirmations; an unreadable root never counts. Returns whether a model is missing.
     */
    public boolean missing(Found found) {
        boolean missed = false;
        List<String> gone = new ArrayList<>();
        for (TrackedModel t : tracked.values()) {
            if (found.has(t.name) || t.scratch != null) {
                continue;
            }
            missed = true;
            if (t.root == null || !found.unreadable().contains(t.root)) {
                t.missing++;
                boolean doubtful = t.root != null
                        && (found.empty().contains(t.root) || (t.directory != null && Files.isDirectory(t.directory)));
                if (!doubtful || t.missing >= confirmations) {
                    gone.add(t.name);
                }
            }
        }
        for (String name : gone) {
            TrackedModel t = tracked.remove(name);
            ensembles.forget(name);
            if (t != null && !t.emitted.isEmpty()) {
                LOG.info("model '{}' is no longer in the repository", name);
                emitter.drop(t);
            }
        }
        return missed;
    }
}
