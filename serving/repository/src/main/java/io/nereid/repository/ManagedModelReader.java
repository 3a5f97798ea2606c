// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.ServingException;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.config.ModelNames;
import io.nereid.repository.layout.BackendSelector;
import io.nereid.repository.layout.Fingerprint;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.TextFiles;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads the directories of managed models. A directory is one model if it has a configuration, a candidate for the
 * model's file, or version directories; else the directories in it are models. Immutable; reads the disk on every call.
 */
final class ManagedModelReader {
    private static final String CONFIG = "config.pbtxt";
    private static final int SHOWN = 12;

    private final RepositoryLayout layout;
    private final BackendSelector chooser;

    ManagedModelReader(List<Backend> backends) {
        // Where instances run is checked when the model is loaded: the source is created before the GPUs are known.
        this.layout = new RepositoryLayout(backends, "", GpuInventory.UNCHECKED);
        this.chooser = new BackendSelector(backends);
    }

    /** The models of a managed model, with their names in the engine; never empty. */
    List<StoredModel> read(ManagedModel placed) {
        Path directory = placed.directory();
        if (Files.isRegularFile(directory)) {
            Path parent = directory.toAbsolutePath().getParent();
            return List.of(single(placed, placed.name(), parent == null ? directory : parent, directory));
        }
        List<Path> children;
        try {
            children = RepositoryLayout.children(directory);
        } catch (IOException e) {
            return List.of(failed(
                    placed.name(),
                    directory,
                    "cannot read the model's directory " + directory + ": " + TextFiles.reason(e),
                    "make it readable for the server"));
        }
        if (placed.repository() && placed.config().isEmpty()) {
            List<ModelEntry> entries = layout.list(directory).models();
            boolean itself = entries.size() == 1
                    && entries.get(0).directory().equals(directory)
                    && entries.get(0).file() == null;
            return itself ? List.of(single(placed, placed.name(), directory, null)) : each(placed, entries);
        }
        boolean alone = !placed.config().isEmpty()
                || children.stream().anyMatch(c -> RepositoryLayout.fileName(c).equals(CONFIG))
                || children.stream().anyMatch(c -> isCandidate(placed, c))
                || hasVersions(children);
        if (!alone) {
            // Like KServe's servers, treat a directory without a model's file as a repository.
            List<ModelEntry> entries = new ArrayList<>();
            for (Path child : children) {
                if (Files.isDirectory(child)
                        && !RepositoryLayout.fileName(child).startsWith(".")
                        && RepositoryLayout.childrenOrNone(child).stream()
                                .anyMatch(c -> isCandidate(placed, c)
                                        || RepositoryLayout.fileName(c).equals(CONFIG))) {
                    entries.add(ModelEntry.placed(RepositoryLayout.fileName(child), child, null));
                }
            }
            if (!entries.isEmpty()) {
                return each(placed, entries);
            }
        }
        return List.of(single(placed, placed.name(), directory, null));
    }

    private List<StoredModel> each(ManagedModel placed, List<ModelEntry> entries) {
        if (entries.isEmpty()) {
            return List.of(failed(
                    placed.name(),
                    placed.directory(),
                    "no model in the repository " + placed.directory() + " (" + shown(placed.directory()) + ")",
                    "put each model into a directory with its name, such as <model>/config.pbtxt and"
                            + " <model>/1/model.onnx"));
        }
        List<StoredModel> models = new ArrayList<>();
        for (ModelEntry e : entries) {
            models.add(inRepository(
                    placed.name(), single(placed, placed.name() + "/" + e.name(), e.directory(), e.file())));
        }
        return List.copyOf(models);
    }

    /** Steps of an ensemble name models of their own repository. */
    private static StoredModel inRepository(String prefix, StoredModel model) {
        EnsembleScheduling ensemble = model.config().ensemble();
        if (ensemble == null) {
            return model;
        }
        List<EnsembleStep> steps = ensemble.steps().stream()
                .map(s -> new EnsembleStep(prefix + "/" + s.model(), s.version(), s.inputs(), s.outputs(), s.when()))
                .toList();
        return with(
                model,
                model.config().toBuilder()
                        .ensemble(new EnsembleScheduling(steps, ensemble.maxInflight()))
                        .build(),
                "");
    }

    private StoredModel single(ManagedModel placed, String name, Path directory, @Nullable Path file) {
        ModelEntry entry = ModelEntry.placed(name, directory, file);
        StoredModel stored;
        boolean configured = file == null && Files.exists(directory.resolve(CONFIG));
        if (!placed.config().isEmpty()) {
            stored = layout.read(entry, placed.config());
        } else if (configured
                || (placed.backend().isEmpty() && placed.modelFile().isEmpty())) {
            stored = configured ? layout.read(entry) : unnamed(placed, entry);
        } else {
            stored = named(placed, entry);
        }
        return stored.hasErrors() ? stored : configured(placed, stored);
    }

    /** Reads a model without a configuration and without a given backend or file. */
    private StoredModel unnamed(ManagedModel placed, ModelEntry entry) {
        StoredModel stored = layout.read(entry);
        if (stored.hasErrors() && entry.file() == null) {
            List<String> candidates = candidates(placed, entry.directory());
            if (candidates.size() > 1) {
                return several(entry, candidates);
            }
        }
        return stored;
    }

    private StoredModel named(ManagedModel placed, ModelEntry entry) {
        String backend = placed.backend();
        if (!backend.isEmpty() && chooser.named(backend) == null) {
            return failed(
                    entry.name(),
                    entry.directory(),
                    "unknown backend " + ProblemCollector.quote(backend),
                    chooser.platformRemedy(backend));
        }
        String modelFile = placed.modelFile();
        ModelEntry read = entry;
        Path file = entry.file();
        if (modelFile.isEmpty() && file != null) {
            modelFile = RepositoryLayout.fileName(file);
        } else if (modelFile.isEmpty()) {
            List<String> found = candidates(placed, entry.directory());
            List<Path> children = RepositoryLayout.childrenOrNone(entry.directory());
            boolean versions = hasVersions(children);
            if (found.isEmpty() && versions) {
                Path highest = highest(children);
                found = candidates(placed, highest);
            } else if (found.size() == 1 && versions) {
                read = ModelEntry.placed(
                        entry.name(), entry.directory(), entry.directory().resolve(found.get(0)));
            }
            if (found.size() > 1) {
                return several(entry, found);
            }
            if (found.isEmpty() && backend.equals("pytorch")) {
                found = exported(versions ? highest(children) : entry.directory());
                backend = found.isEmpty() ? backend : BackendSelector.AOTI;
            }
            if (found.isEmpty()) {
                return failed(
                        entry.name(),
                        entry.directory(),
                        "no model file in " + entry.directory() + ", expected exactly one of " + expected(placed) + " ("
                                + shown(entry.directory()) + ")",
                        "correct storageUri, or add the file");
            }
            modelFile = found.get(0);
        }
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("backend", named(backend));
        fields.put("default_model_filename", modelFile);
        return layout.read(read, json(fields));
    }

    /** The name of the backend for a backend or platform name. */
    private String named(String backend) {
        Backend found = backend.isEmpty() ? null : chooser.named(backend);
        return found == null ? "" : found.name();
    }

    private static String json(Map<String, String> fields) {
        StringBuilder b = new StringBuilder("{");
        fields.forEach((key, value) -> {
            if (!value.isEmpty()) {
                b.append(b.length() == 1 ? "" : ",").append('"').append(key).append("\":\"");
                for (int i = 0; i < value.length(); i++) {
                    char c = value.charAt(i);
                    if (c == '"' || c == '\\' || c < ' ') {
                        b.append(String.format(java.util.Locale.ROOT, "\\u%04x", (int) c));
                    } else {
                        b.append(c);
                    }
                }
                b.append('"');
            }
        });
        return b.append('}').toString();
    }

    private static StoredModel several(ModelEntry entry, List<String> candidates) {
        return failed(
                entry.name(),
                entry.directory(),
                "More than one model file is detected, Only one is allowed within model_dir: " + candidates,
                "leave one in " + entry.directory() + ", or give each a directory of its own");
    }

    // ---- candidates ----

    /** The files in a directory that may be the model; a backend's default file wins over files with its extension. */
    private List<String> candidates(ManagedModel placed, Path directory) {
        List<Path> children = RepositoryLayout.childrenOrNone(directory);
        List<Path> found = children.stream().filter(c -> isCandidate(placed, c)).toList();
        if (placed.expectedFiles().isEmpty()) {
            Backend backend = placed.backend().isEmpty() ? null : chooser.named(placed.backend());
            List<String> defaults = backend == null ? chooser.defaultFiles() : backend.defaultFiles();
            for (String name : defaults) {
                if (found.stream().anyMatch(f -> RepositoryLayout.fileName(f).equals(name))) {
                    return List.of(name);
                }
            }
        }
        if (found.size() > 1) {
            // Extensions such as .json are common, so files that no backend recognises are ignored.
            List<Path> recognised = found.stream()
                    .filter(f -> {
                        Backend backend = chooser.named(placed.backend());
                        return backend == null ? chooser.byFile(f) != null : backend.recognises(f);
                    })
                    .toList();
            found = recognised.isEmpty() ? found : recognised;
        }
        return found.stream().map(RepositoryLayout::fileName).toList();
    }

    /** The only archive of torch.export, which another backend of PyTorch's rejects with the reason. */
    private List<String> exported(Path directory) {
        List<String> found = chooser.named(BackendSelector.AOTI) == null
                ? List.of()
                : RepositoryLayout.childrenOrNone(directory).stream()
                        .map(RepositoryLayout::fileName)
                        .filter(name -> name.endsWith(".pt2"))
                        .toList();
        return found.size() == 1 ? found : List.of();
    }

    private boolean isCandidate(ManagedModel placed, Path child) {
        String name = RepositoryLayout.fileName(child);
        if (name.startsWith(".")) {
            return false;
        }
        if (!placed.modelFile().isEmpty()) {
            return name.equals(placed.modelFile());
        }
        if (!placed.expectedFiles().isEmpty()) {
            return Files.isRegularFile(child)
                    && placed.expectedFiles().stream().anyMatch(p -> matcher(p).matches(Path.of(name)));
        }
        Backend backend = placed.backend().isEmpty() ? null : chooser.named(placed.backend());
        if (backend == null) {
            return chooser.byFile(child) != null;
        }
        return backend.defaultFiles().contains(name)
                || (Files.isRegularFile(child)
                        && backend.defaultFiles().stream().anyMatch(d -> sameEnding(d, name))
                        && backend.recognises(child));
    }

    private static boolean sameEnding(String defaultFile, String name) {
        int dot = defaultFile.lastIndexOf('.');
        return dot >= 0 && name.endsWith(defaultFile.substring(dot)) && name.length() > defaultFile.length() - dot;
    }

    private static PathMatcher matcher(String pattern) {
        return FileSystems.getDefault().getPathMatcher("glob:" + pattern);
    }

    private static boolean hasVersions(List<Path> children) {
        return children.stream()
                .anyMatch(c -> ModelNames.listedVersion(RepositoryLayout.fileName(c)) >= 0 && Files.isDirectory(c));
    }

    private static Path highest(List<Path> children) {
        Path highest = children.get(0);
        long version = -1;
        for (Path c : children) {
            long v = ModelNames.listedVersion(RepositoryLayout.fileName(c));
            if (v > version && Files.isDirectory(c)) {
                version = v;
                highest = c;
            }
        }
        return highest;
    }

    private String expected(ManagedModel placed) {
        if (!placed.expectedFiles().isEmpty()) {
            return String.join(", ", placed.expectedFiles());
        }
        Backend backend = placed.backend().isEmpty() ? null : chooser.named(placed.backend());
        return String.join(", ", backend == null ? chooser.defaultFiles() : backend.defaultFiles());
    }

    private static String shown(Path directory) {
        List<String> names = RepositoryLayout.childrenOrNone(directory).stream()
                .map(RepositoryLayout::fileName)
                .toList();
        if (names.isEmpty()) {
            return "it is empty";
        }
        String more = names.size() > SHOWN ? " and " + (names.size() - SHOWN) + " more" : "";
        return "it holds " + String.join(", ", names.subList(0, Math.min(SHOWN, names.size()))) + more;
    }

    // ---- configuration ----

    /** Applies the managed model's settings to the stored configuration. */
    private static StoredModel configured(ManagedModel placed, StoredModel stored) {
        if (stored.isEnsemble()) {
            return stored;
        }
        ModelConfig config = stored.config();
        ModelConfig.Builder changed = config.toBuilder();
        if (!placed.parameters().isEmpty()) {
            Map<String, String> parameters = new LinkedHashMap<>(config.parameters());
            parameters.putAll(placed.parameters());
            changed.parameters(Map.copyOf(parameters));
        }
        boolean batched = placed.batching() != null && config.batching() == null && config.sequence() == null;
        if (batched) {
            changed.batching(placed.batching());
            if (config.maxBatchSize() < 0 && placed.maxBatchSize() > 0) {
                changed.maxBatchSize(placed.maxBatchSize());
            }
        }
        int instances = Math.max(1, placed.instances());
        if (config.instanceGroups().isEmpty()) {
            changed.instanceGroups(List.of(new InstanceGroup(
                    config.name(), InstanceGroup.Kind.AUTO, instances, List.of(), false, "", List.of(), 0)));
        } else if (instances > 1) {
            changed.instanceGroups(config.instanceGroups().stream()
                    .map(g -> g.placed(g.kind(), g.count() * instances, g.gpus()))
                    .toList());
        }
        Backend backend = stored.backend();
        if (!placed.gpus().isEmpty() && backend != null && backend.gpuUnavailableReason() == null) {
            ModelConfig built = changed.build();
            try {
                changed.instanceGroups(built.instanceGroups().stream()
                        .map(group -> onGpus(group, placed.gpus()))
                        .toList());
            } catch (ServingException e) {
                return stored.withError(String.valueOf(e.getMessage()), e.remedy());
            }
        }
        String sum = new Fingerprint()
                .text(placed.parameters().toString())
                .text(placed.gpus().toString())
                .text(batched ? placed.batching() + " " + placed.maxBatchSize() : "")
                .text(String.valueOf(instances))
                .sum();
        return with(stored, changed.build(), " " + sum);
    }

    /** A group on the GPUs that are the model's, by their numbers among these; a group on processors as it is. */
    private static InstanceGroup onGpus(InstanceGroup group, List<Integer> own) {
        if (group.kind() != InstanceGroup.Kind.GPU && group.kind() != InstanceGroup.Kind.AUTO) {
            return group;
        }
        List<Integer> gpus = new ArrayList<>();
        for (int number : group.gpus()) {
            if (number < 0 || number >= own.size()) {
                throw ServingException.invalidArgument(
                        "instance group " + group.name() + " names GPU " + number + ", and the limit gives the model "
                                + own.size() + " (expected: a number from 0 to " + (own.size() - 1) + ")",
                        "correct 'gpus' in config.pbtxt, or raise the limit of GPUs");
            }
            gpus.add(own.get(number));
        }
        return group.placed(InstanceGroup.Kind.GPU, group.count(), gpus.isEmpty() ? own : List.copyOf(gpus));
    }

    private static StoredModel with(StoredModel m, ModelConfig config, String sum) {
        List<Version> versions = m.versions().stream()
                .map(v -> new Version(v.version(), v.directory(), v.fingerprint() + sum, v.newestMillis(), v.error()))
                .toList();
        return new StoredModel(
                m.entry(),
                config,
                m.backend(),
                versions,
                m.problems(),
                m.readable(),
                m.fingerprint() + sum,
                m.newestMillis());
    }

    private static StoredModel failed(String name, Path directory, String message, @Nullable String remedy) {
        return new StoredModel(
                ModelEntry.placed(name, directory, null),
                ModelConfig.unspecified(name),
                null,
                List.of(),
                List.of(new Problem(Problem.Severity.ERROR, directory, 0, 0, message, remedy)),
                true,
                message,
                0);
    }
}
