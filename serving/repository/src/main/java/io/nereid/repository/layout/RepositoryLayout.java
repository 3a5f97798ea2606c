// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.backend.Backend;
import io.nereid.base.ServingException;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.config.ModelConfigReader;
import io.nereid.repository.config.ModelNames;
import io.nereid.repository.layout.BackendSelector.Choice;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Reads the layout of a repository. Immutable; reads the disk on every call.
 *
 * <p>What a root may be:
 *
 * <ul>
 *   <li>a file of a kind that a backend knows ({@code my-model.onnx}): one model of that name, version 1;
 *   <li>a directory with a {@code config.pbtxt}, with a backend's default file ({@code model.onnx}), or with
 *       directories that are versions: one model, named by its configuration or else by the directory;
 *   <li>any other directory: a repository. Each directory in it that looks like a model is one, and so is each file of
 *       a kind that a backend knows. Names that start with a dot are ignored.
 * </ul>
 *
 * <p>A model's directory contains {@code config.pbtxt} if there is anything to configure; a directory for each version,
 * named by a whole number from 1 without leading zeros; label files; {@code warmup}. Without version directories, the
 * model's file may lie in the model's directory itself and is version 1. An ensemble, and a model of a backend that
 * needs no file, do not need a version directory.
 *
 * <p>The model's file is {@code default_model_filename}, else the backend's default file, else the only file with its
 * extension. {@link BackendSelector} determines the backend.
 */
public final class RepositoryLayout {
    private static final String CONFIG = "config.pbtxt";

    private final BackendSelector chooser;
    private final String configName;
    private final GpuInventory gpus;

    public RepositoryLayout(List<Backend> backends) {
        this(backends, "");
    }

    /**
     * Creates a layout.
     *
     * @param configName a model's {@code configs/<name>.pbtxt}, if it exists, is its configuration; empty for
     *     {@code config.pbtxt} only
     */
    public RepositoryLayout(List<Backend> backends, String configName) {
        this(backends, configName, GpuInventory.NONE);
    }

    /**
     * As {@link #RepositoryLayout(List, String)}.
     *
     * @param gpus the GPUs that configurations are checked against as they are read
     */
    public RepositoryLayout(List<Backend> backends, String configName, GpuInventory gpus) {
        this.configName = configName;
        this.gpus = gpus;
        chooser = new BackendSelector(backends);
    }

    /**
     * The models of a root.
     *
     * @param models in the order of their names
     * @param problems problems of the root itself, and ignored entries
     * @param readable whether the root could be read
     * @param empty whether the root has no entries
     */
    public record Listing(List<ModelEntry> models, List<Problem> problems, boolean readable, boolean empty) {}

    public Listing list(Path root) {
        ProblemCollector problems = new ProblemCollector();
        List<ModelEntry> models = new ArrayList<>();
        Path name = root.toAbsolutePath().normalize().getFileName();
        String rootName = name == null ? "model" : name.toString();
        if (Files.isRegularFile(root)) {
            Path parent = root.toAbsolutePath().getParent();
            if (parent == null || chooser.byFile(root) == null) {
                problems.error(
                        root,
                        "no backend of this server reads such a file",
                        "expected a file like " + String.join(", ", chooser.defaultFiles()));
            } else {
                models.add(bare(rootName, root, root, parent));
            }
            return new Listing(models, problems.list(), true, false);
        }
        List<Path> children;
        try {
            children = children(root);
        } catch (IOException e) {
            problems.error(
                    root,
                    "cannot read the repository: " + TextFiles.reason(e),
                    "give a directory that the server can read");
            return new Listing(models, problems.list(), false, false);
        }
        if (isModel(root, children)) {
            models.add(new ModelEntry(ownName(root, rootName), root, root, null, false));
            return new Listing(models, problems.list(), true, false);
        }
        for (Path child : children) {
            entry(root, child, models, problems);
        }
        models.sort(Comparator.comparing(ModelEntry::name));
        return new Listing(models, problems.list(), true, children.isEmpty());
    }

    /** Whether a root with these entries is a repository, and not a model itself. */
    public boolean isRepository(Path root, List<Path> children) {
        return !isModel(root, children);
    }

    /** What one entry of a repository contributes to its listing. */
    public Listing listEntry(Path root, Path child) {
        ProblemCollector problems = new ProblemCollector();
        List<ModelEntry> models = new ArrayList<>();
        entry(root, child, models, problems);
        return new Listing(models, problems.list(), true, false);
    }

    private void entry(Path root, Path child, List<ModelEntry> models, ProblemCollector problems) {
        String name = fileName(child);
        if (name.startsWith(".")) {
            return;
        }
        if (Files.isDirectory(child)) {
            List<Path> inside;
            try {
                inside = children(child);
            } catch (IOException e) {
                models.add(new ModelEntry(name, root, child, null, true));
                return;
            }
            if (isModel(child, inside) || chooser.hasSuffix(name) || hasModelFile(inside)) {
                if (ModelNames.valid(name)) {
                    models.add(new ModelEntry(name, root, child, null, true));
                } else {
                    problems.error(child, "invalid model name " + ProblemCollector.quote(name), "rename the directory");
                }
            } else {
                problems.warning(
                        child,
                        SourcePosition.NONE,
                        "passed over, nothing in it makes it a model",
                        "expected " + CONFIG + ", a version directory such as '1', or one of "
                                + String.join(", ", chooser.defaultFiles()));
            }
        } else if (Files.isSymbolicLink(child) && !Files.exists(child)) {
            problems.warning(
                    child, SourcePosition.NONE, "passed over, a symbolic link that leads nowhere", "fix or remove it");
        } else if (chooser.byFile(child) != null) {
            models.add(bare(name, root, child, root));
        }
    }

    private static ModelEntry bare(String fileName, Path root, Path file, Path directory) {
        return new ModelEntry(stem(fileName), root, directory, file, true);
    }

    /** The name of a model that is a file: other files with this prefix belong to it. */
    public static String stem(String fileName) {
        int dot = fileName.lastIndexOf('.');
        return dot > 0 ? fileName.substring(0, dot) : fileName;
    }

    /**
     * Whether a directory is a model: it has a configuration, a default file, or a version that is not itself a model.
     */
    private boolean isModel(Path directory, List<Path> children) {
        if (Files.exists(configFile(directory), LinkOption.NOFOLLOW_LINKS)) {
            return true;
        }
        for (Path child : children) {
            String name = fileName(child);
            if (chooser.defaultFiles().contains(name)) {
                return true;
            }
            if (ModelNames.version(name) > 0 && Files.isDirectory(child) && !isRepositoryOfItsOwn(child)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isRepositoryOfItsOwn(Path directory) {
        if (Files.exists(directory.resolve(CONFIG))) {
            return true;
        }
        try {
            return children(directory).stream()
                    .anyMatch(c -> ModelNames.version(fileName(c)) > 0 && Files.isDirectory(c));
        } catch (IOException e) {
            return false;
        }
    }

    private boolean hasModelFile(List<Path> children) {
        return children.stream().anyMatch(c -> Files.isRegularFile(c) && chooser.byFile(c) != null);
    }

    /** The name of a model whose directory is the root: its configuration's, else the directory's. */
    private String ownName(Path directory, String otherwise) {
        Path file = configFile(directory);
        try {
            String text = TextFiles.read(file, TextFiles.MAX_CONFIG);
            return ModelConfigReader.read(file, text, directory, otherwise, false, gpus, new ProblemCollector())
                    .config()
                    .name();
        } catch (ServingException e) {
            return otherwise;
        }
    }

    /** The path of a model's configuration, whether or not it exists. */
    private Path configFile(Path directory) {
        if (!configName.isEmpty()) {
            Path named = directory.resolve("configs").resolve(configName + ".pbtxt");
            if (Files.exists(named, LinkOption.NOFOLLOW_LINKS)) {
                return named;
            }
        }
        return directory.resolve(CONFIG);
    }

    /** The file with a model's configuration; null for a model without one. */
    public @Nullable Path configuration(ModelEntry entry) {
        Path file = configFile(entry.directory());
        return entry.file() == null && Files.exists(file) ? file : null;
    }

    /** Reads one model. */
    public StoredModel read(ModelEntry entry) {
        return read(entry, null);
    }

    /**
     * Reads one model. The steps: the configuration; the version directories; the backend; the fingerprint of
     * everything that a reload depends on; each version. Problems are collected, so that all are reported together.
     *
     * @param json a configuration that overrides the stored one, or null
     */
    public StoredModel read(ModelEntry entry, @Nullable String json) {
        ProblemCollector problems = new ProblemCollector();
        ModelConfig config = ModelConfig.unspecified(entry.name());
        Path file = entry.place();
        String text = "";
        SourcePosition platformAt = SourcePosition.NONE;
        SourcePosition backendAt = SourcePosition.NONE;
        List<Path> children;
        try {
            children = entry.file() == null ? children(entry.directory()) : List.of(entry.file());
        } catch (IOException e) {
            ListedModelTraits.unreadable(entry, e, problems);
            return new StoredModel(entry, config, null, List.of(), problems.list(), false, "", 0);
        }
        Fingerprint common = new Fingerprint();
        Path configFile = configFile(entry.directory());
        if (json != null) {
            text = json;
            ModelConfigReader.Result result = ModelConfigReader.readJson(
                    file, json, entry.directory(), entry.name(), entry.named(), gpus, problems);
            config = result.config();
            platformAt = result.platformAt();
            backendAt = result.backendAt();
        } else if (entry.file() == null && Files.exists(configFile, LinkOption.NOFOLLOW_LINKS)) {
            file = configFile;
            try {
                text = TextFiles.read(configFile, TextFiles.MAX_CONFIG);
                ModelConfigReader.Result result = entry.served() == null && !entry.placed()
                        ? ModelConfigReader.read(
                                configFile, text, entry.directory(), entry.name(), entry.named(), gpus, problems)
                        : ModelConfigReader.readNamed(
                                configFile, text, entry.directory(), entry.name(), gpus, problems);
                config = result.config();
                platformAt = result.platformAt();
                backendAt = result.backendAt();
            } catch (ServingException e) {
                problems.error(configFile, e.getMessage(), e.remedy());
            }
        }
        TreeMap<Long, Path> directories = new TreeMap<>();
        List<Path> files;
        if (entry.served() != null) {
            VersionDirectoryReader.findListed(children, directories, problems);
            config = ListedModelTraits.withListSettings(config, entry.served());
            files = ListedModelTraits.recognitionFiles(directories, config.versionPolicy());
        } else {
            if (entry.file() == null && entry.placed()) {
                VersionDirectoryReader.findListed(children, directories, problems);
            } else if (entry.file() == null) {
                VersionDirectoryReader.find(children, directories, problems);
            }
            files = directories.isEmpty()
                    ? children
                    : childrenOrNone(directories.lastEntry().getValue());
        }
        boolean configRead = !problems.hasErrors();
        List<String> names = files.stream().map(RepositoryLayout::fileName).toList();
        boolean named = !config.backend().isEmpty() || !config.platform().isEmpty();
        boolean nothing = entry.served() != null && directories.isEmpty() && !named && config.ensemble() == null;
        Choice choice = (configRead || named) && !nothing
                ? chooser.choose(config, files, file, platformAt, backendAt, problems)
                : null;
        if (choice != null && entry.served() != null) {
            ListedModelTraits.checkPlatform(entry.served(), choice, chooser, file, problems);
        }
        if (choice != null) {
            config = filledIn(config, choice);
            if (directories.isEmpty() && hasOwnFile(entry, choice, config, names)) {
                directories.put(1L, entry.directory());
            }
        }
        try {
            common.text(text).text(config.labels().toString());
            if (entry.served() != null) {
                common.text(entry.directory().toString());
            }
            Path warmup = entry.directory().resolve("warmup");
            if (!config.warmups().isEmpty() && Files.isDirectory(warmup)) {
                common.files(warmup, p -> true);
            }
            Path states = entry.directory().resolve("initial_state");
            if (config.sequence() != null && Files.isDirectory(states)) {
                common.files(states, p -> true);
            }
            for (String library : problems.hasErrors() ? List.<String>of() : config.operatorLibraries()) {
                common.file(entry.directory(), entry.directory().resolve(library));
            }
            if (file.equals(configFile) && Files.exists(configFile)) {
                common.file(entry.directory(), configFile);
            }
        } catch (IOException e) {
            problems.error(entry.directory(), "cannot read the model's directory: " + TextFiles.reason(e), null);
        }
        String commonSum = common.sum();
        List<Version> versions = new ArrayList<>();
        directories.forEach(
                (number, directory) -> versions.add(VersionDirectoryReader.read(entry, number, directory, commonSum)));
        StoredModel model = new StoredModel(
                entry,
                config,
                choice == null ? null : choice.backend(),
                VersionDirectoryReader.checked(versions, config),
                List.of(),
                true,
                "",
                0);
        if (entry.served() == null) {
            policy(model, file, problems);
        } else {
            ListedModelTraits.policy(model, file, problems);
        }
        return summed(model, problems, common.newestMillis(), commonSum);
    }

    private static StoredModel summed(StoredModel m, ProblemCollector problems, long commonNewest, String commonSum) {
        Fingerprint all = new Fingerprint().text(commonSum);
        if (m.entry().served() != null) {
            all.text(m.config().versionPolicy().toString())
                    .text(m.entry().served().platform());
        }
        long newest = commonNewest;
        for (Version v : m.versions()) {
            all.text(v.version() + " " + v.fingerprint()
                    + (v.error() == null ? "" : v.error().getMessage()));
            newest = Math.max(newest, v.newestMillis());
        }
        for (Problem p : problems.list()) {
            all.text(p.toString());
        }
        return new StoredModel(
                m.entry(), m.config(), m.backend(), m.versions(), problems.list(), true, all.sum(), newest);
    }

    private static boolean hasOwnFile(ModelEntry entry, Choice choice, ModelConfig config, List<String> names) {
        Backend backend = choice.backend();
        if (entry.file() != null || backend == null || backend.defaultFiles().isEmpty()) {
            return true;
        }
        if (entry.served() != null) {
            return false;
        }
        return config.modelFile().isEmpty()
                ? backend.defaultFiles().stream().anyMatch(names::contains)
                : names.contains(config.modelFile());
    }

    private static ModelConfig filledIn(ModelConfig c, Choice choice) {
        Backend backend = choice.backend();
        return c.toBuilder()
                .platform(choice.platform())
                .backend(backend == null ? "" : backend.name())
                .modelFile(choice.modelFile())
                .build();
    }

    private static void policy(StoredModel model, Path file, ProblemCollector problems) {
        if (problems.hasErrors()) {
            return;
        }
        if (model.aspired().isEmpty()) {
            problems.error(
                    file,
                    "at least one version must be available under the version policy of model '"
                            + model.config().name() + "'",
                    "put the model's files into a directory '1' in "
                            + model.entry().directory());
            return;
        }
        missing(model, file, problems);
    }

    /** Warns about versions of the policy that do not exist. */
    static void missing(StoredModel model, Path file, ProblemCollector problems) {
        for (long wanted : model.config().versionPolicy().versions()) {
            if (model.versions().stream().noneMatch(v -> v.version() == wanted)) {
                problems.warning(
                        file,
                        SourcePosition.NONE,
                        "version " + wanted + " of the version policy does not exist",
                        "add it, or leave it out");
            }
        }
    }

    /** The entries of a directory, sorted by name. */
    public static List<Path> children(Path directory) throws IOException {
        List<Path> children = new ArrayList<>();
        try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory)) {
            stream.forEach(children::add);
        } catch (DirectoryIteratorException e) {
            throw e.getCause();
        }
        Collections.sort(children);
        return children;
    }

    /** As {@link #children}, but empty for an unreadable directory, which is reported when its version is read. */
    public static List<Path> childrenOrNone(Path directory) {
        try {
            return children(directory);
        } catch (IOException e) {
            return List.of();
        }
    }

    public static String fileName(Path path) {
        @Nullable Path name = path.getFileName();
        return name == null ? "" : name.toString();
    }
}
