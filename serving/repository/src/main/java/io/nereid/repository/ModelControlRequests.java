// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.config.ModelConfigReader;
import io.nereid.repository.layout.OverrideDirectory;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.polling.AspiredVersionsEmitter;
import io.nereid.repository.polling.EnsembleMembership;
import io.nereid.repository.polling.ModelPoller;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source.Aspired;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Does what clients ask for: loads, with other configurations and files or without, and unloads. Guarded by the source's lock. */
final class ModelControlRequests {
    private final ModelPoller watch;
    private final EnsembleMembership ensembles;
    private final AspiredVersionsEmitter emitter;
    private final DesiredModels wanted;
    private final Path scratchParent;

    ModelControlRequests(
            ModelPoller watch,
            EnsembleMembership ensembles,
            AspiredVersionsEmitter emitter,
            DesiredModels wanted,
            Path scratchParent) {
        this.watch = watch;
        this.ensembles = ensembles;
        this.emitter = emitter;
        this.wanted = wanted;
        this.scratchParent = scratchParent;
    }

    /** Loads what is stored. */
    List<ServableId> load(String model, Found found) {
        List<ModelEntry> entries = found.models().get(model);
        if (entries == null) {
            throw found.notFound(model);
        }
        wanted.ask(model);
        TrackedModel t = watch.of(model);
        if (entries.size() > 1) {
            emitter.duplicate(entries, t);
            throw AspiredVersionsEmitter.duplicate(model, entries);
        }
        t.overridden = false;
        Map<String, StoredModel> models = watch.readWithMembers(List.of(model), found);
        StoredModel stored = models.remove(model);
        if (stored == null) {
            throw found.notFound(model);
        }
        return takeUp(stored, t, models, null);
    }

    /** Loads with another configuration, and from other files if there are any. */
    List<ServableId> load(String model, String config, Map<String, byte[]> files, Found found) {
        OverrideDirectory scratch =
                files.isEmpty() ? null : OverrideDirectory.write(scratchParent, model, new TreeMap<>(files));
        boolean kept = false;
        try {
            ModelEntry entry = scratch == null ? found.only(model) : scratch.entry();
            if (entry == null) {
                List<ModelEntry> entries = found.models().get(model);
                throw entries == null ? found.notFound(model) : AspiredVersionsEmitter.duplicate(model, entries);
            }
            checkOverride(entry, config);
            StoredModel stored = watch.read(entry, config, found);
            Map<String, StoredModel> members = watch.readWithMembers(ensembles.of(model), found);
            members.remove(model);
            wanted.ask(model);
            TrackedModel t = watch.of(model);
            List<ServableId> versions = takeUp(stored, t, members, scratch);
            t.overridden = true;
            kept = true;
            return versions;
        } finally {
            if (scratch != null && !kept) {
                scratch.retire();
            }
        }
    }

    private static void checkOverride(ModelEntry entry, String config) {
        ProblemCollector problems = new ProblemCollector();
        var unused = ModelConfigReader.readJson(
                entry.place(), config, entry.directory(), entry.name(), entry.named(), problems);
        if (problems.hasErrors()) {
            ServingException why = ProblemCollector.refusal(problems.list());
            throw ServingException.invalidArgument("Invalid config override: " + why.getMessage(), why.remedy());
        }
    }

    private List<ServableId> takeUp(
            StoredModel stored, TrackedModel t, Map<String, StoredModel> members, @Nullable OverrideDirectory scratch) {
        boolean served = t.serving;
        members.forEach((name, member) -> {
            wanted.need(name);
            TrackedModel m = watch.of(name);
            if (m.emitted.isEmpty() || !member.fingerprint().equals(m.takenUp)) {
                var unused = emitter.takeUp(member, m, false, null);
            }
        });
        StoredModel model = emitter.takeUp(stored, t, false, scratch);
        if (!model.loadable()) {
            ServingException why = ProblemCollector.refusal(model.problems());
            throw ServingException.invalidArgument(
                    "load failed for model '" + t.name + "': " + why.getMessage()
                            + (served ? "; what it served before goes on" : ""),
                    why.remedy());
        }
        return t.emitted.stream().map(Aspired::id).toList();
    }

    /** Unloads; {@code found} is what there is, if the model may not exist. */
    void unload(String model, boolean dependents, @Nullable Found found) {
        if (found != null && !found.has(model)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "failed to unload '" + model + "', no such model", found.suggestion(model));
        }
        List<String> below = ensembles.membersFirst(ensembles.closure(model));
        drop(model);
        if (dependents) {
            // From the top down, so that an inner ensemble no longer holds its members when they are looked at.
            for (int i = below.size() - 1; i >= 0; i--) {
                String name = below.get(i);
                if (wanted.onlyNeeded(name) && ensembles.user(name, wantedNames()) == null) {
                    drop(name);
                }
            }
        }
    }

    private void drop(String model) {
        TrackedModel t = watch.of(model);
        wanted.drop(model);
        t.forget();
        boolean onlySent = t.scratch != null;
        emitter.drop(t);
        if (onlySent) {
            watch.remove(model);
        }
    }

    private List<String> wantedNames() {
        return watch.all().stream()
                .filter(t -> wanted.wants(t.name) && !t.emitted.isEmpty())
                .map(t -> t.name)
                .toList();
    }
}
