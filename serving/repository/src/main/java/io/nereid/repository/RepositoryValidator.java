// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.ServingException;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.config.InstanceGroupResolver;
import io.nereid.repository.layout.ChecksumAgent;
import io.nereid.repository.layout.EnsembleDependencies;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.RepositoryLayout.Listing;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.polling.AspiredVersionsEmitter;
import io.nereid.repository.problem.Problem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Validates a model repository without loading it. Immutable; reads the disk on every call.
 *
 * <pre>{@code
 * List<Problem> problems = new RepositoryValidator(backends).validate(Path.of("/models"));
 * boolean valid = problems.stream().noneMatch(Problem::isError);
 * }</pre>
 */
public final class RepositoryValidator {
    private final List<Backend> backends;
    private final GpuInventory gpus;

    /** Creates a validator for a server with these backends, in their order of precedence, and without GPUs. */
    public RepositoryValidator(List<Backend> backends) {
        this(backends, GpuInventory.NONE);
    }

    /** Creates a validator for a server with these backends, in their order of precedence, and these GPUs. */
    public RepositoryValidator(List<Backend> backends, GpuInventory gpus) {
        this.backends = List.copyOf(backends);
        this.gpus = gpus;
    }

    /**
     * Returns all problems of a root, which is a repository, a model's directory or a model's file. The list is empty
     * if a server would serve all models without a warning.
     */
    public List<Problem> validate(Path root) {
        RepositoryLayout layout = new RepositoryLayout(backends, "", gpus);
        Listing listing = layout.list(root);
        List<Problem> problems = new ArrayList<>(listing.problems());
        if (listing.readable()
                && listing.models().isEmpty()
                && problems.stream().noneMatch(Problem::isError)) {
            problems.add(new Problem(
                    Problem.Severity.ERROR,
                    root,
                    0,
                    0,
                    "no model in this directory",
                    "expected <model>/config.pbtxt, <model>/1/<file>, or a model's file"));
        }
        List<StoredModel> read = new ArrayList<>();
        for (ModelEntry entry : listing.models()) {
            List<ModelEntry> same = listing.models().stream()
                    .filter(m -> m.name().equals(entry.name()))
                    .toList();
            if (same.size() > 1) {
                problems.add(new Problem(
                        Problem.Severity.ERROR,
                        entry.place(),
                        0,
                        0,
                        AspiredVersionsEmitter.duplicateText(entry.name()),
                        AspiredVersionsEmitter.places(same)));
                continue;
            }
            StoredModel model = ChecksumAgent.verified(layout.read(entry));
            read.add(model);
            problems.addAll(model.problems());
            problems.addAll(placement(layout, entry, model));
            for (Version v : model.versions()) {
                if (v.error() != null) {
                    problems.add(problem(v.directory(), v.error()));
                }
            }
        }
        Set<String> names = listing.models().stream().map(ModelEntry::name).collect(Collectors.toSet());
        problems.addAll(new EnsembleDependencies(read, names).problems());
        return List.copyOf(problems);
    }

    /** Whether the instances of a model can be where its configuration wants them, and what its backend has to say about it. */
    private List<Problem> placement(RepositoryLayout layout, ModelEntry entry, StoredModel model) {
        Backend backend = model.backend();
        if (backend == null || model.hasErrors()) {
            return List.of();
        }
        try {
            backend.check(InstanceGroupResolver.resolve(model.config(), backend, gpus));
            return List.of();
        } catch (ServingException e) {
            Path file = layout.configuration(entry);
            return List.of(problem(file == null ? entry.place() : file, e));
        }
    }

    private static Problem problem(Path place, ServingException e) {
        return new Problem(Problem.Severity.ERROR, place, 0, 0, e.getMessage(), e.remedy());
    }
}
