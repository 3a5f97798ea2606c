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
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ServableId;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Executes load and unload requests of clients, with or without overrides. Guarded by the source's lock. */
final class ModelControlRequests {
    private final ModelPoller poller;
    private final EnsembleMembership ensembles;
    private final AspiredVersionsEmitter emitter;
    private final DesiredModels desired;
    private final Path scratchParent;

    ModelControlRequests(
            ModelPoller poller,
            EnsembleMembership ensembles,
            AspiredVersionsEmitter emitter,
            DesiredModels desired,
            Path scratchParent) {
        this.poller = poller;
        this.ensembles = ensembles;
        this.emitter = emitter;
        this.desired = desired;
        this.scratchParent = scratchParent;
    }

    /** Loads a stored model. */
    List<ServableId> load(String model, Found found) {
        List<ModelEntry> entries = found.models().get(model);
        if (entries == null) {
            throw found.notFound(model);
        }
        desired.request(model);
        TrackedModel t = poller.of(model);
        if (entries.size() > 1) {
            emitter.duplicate(entries, t);
            throw AspiredVersionsEmitter.duplicate(model, entries);
        }
        t.overridden = false;
        Map<String, StoredModel> models = poller.readWithMembers(List.of(model), found);
        StoredModel stored = models.remove(model);
        if (stored == null) {
            throw found.notFound(model);
        }
        return accept(stored, t, models, null);
    }

    /** Loads a model with an overridden configuration, and with overridden files if there are any. */
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
            StoredModel stored = poller.read(entry, config, found);
            Map<String, StoredModel> members = poller.readWithMembers(ensembles.of(model), found);
            members.remove(model);
            desired.request(model);
            TrackedModel t = poller.of(model);
            List<ServableId> versions = accept(stored, t, members, scratch);
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

    private List<ServableId> accept(
            StoredModel stored, TrackedModel t, Map<String, StoredModel> members, @Nullable OverrideDirectory scratch) {
        boolean served = t.serving;
        members.forEach((name, member) -> {
            desired.requestAsMember(name);
            TrackedModel m = poller.of(name);
            if (m.emitted.isEmpty() || !member.fingerprint().equals(m.accepted)) {
                var unused = emitter.accept(member, m, false, null);
            }
        });
        StoredModel model = emitter.accept(stored, t, false, scratch);
        if (!model.loadable()) {
            ServingException why = ProblemCollector.refusal(model.problems());
            throw ServingException.invalidArgument(
                    "load failed for model '" + t.name + "': " + why.getMessage()
                            + (served ? "; the versions loaded before keep serving" : ""),
                    why.remedy());
        }
        return t.emitted.stream().map(AspiredVersion::id).toList();
    }

    /** Unloads a model; {@code found} is the scan result to check that it exists, or null if it is known to exist. */
    void unload(String model, boolean dependents, @Nullable Found found) {
        if (found != null && !found.has(model)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "failed to unload '" + model + "', no such model", found.suggestion(model));
        }
        List<String> below = ensembles.membersFirst(ensembles.closure(model));
        drop(model);
        if (dependents) {
            // Outer ensembles first, so that an inner ensemble no longer requires its members when they are checked.
            for (int i = below.size() - 1; i >= 0; i--) {
                String name = below.get(i);
                if (desired.onlyAsMember(name) && ensembles.user(name, desiredNames()) == null) {
                    drop(name);
                }
            }
        }
    }

    private void drop(String model) {
        TrackedModel t = poller.of(model);
        desired.unload(model);
        t.forget();
        boolean onlySent = t.scratch != null;
        emitter.drop(t);
        if (onlySent) {
            poller.remove(model);
        }
    }

    private List<String> desiredNames() {
        return poller.all().stream()
                .filter(t -> desired.contains(t.name) && !t.emitted.isEmpty())
                .map(t -> t.name)
                .toList();
    }
}
