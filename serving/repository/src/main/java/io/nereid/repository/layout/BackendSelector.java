// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.backend.Backend;
import io.nereid.base.NameSuggestions;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Selects the backend of a model. In this order: {@code backend}, {@code platform} (also by older names), the model's
 * file, well-known file names of Triton's backends, a backend's default file, the suffix of the directory's name
 * ({@code <x>.<backend>}), the only file with a backend's extension. Immutable.
 */
public final class BackendSelector {
    static final String ENSEMBLE = "ensemble";

    /** Triton's platform for packages of AOTInductor, there of the backend {@code pytorch}; here a backend's name too. */
    public static final String AOTI = "torch_aoti";

    /**
     * The file names by which Triton recognises a backend, in Triton's order; this server may not have all backends.
     * {@code MLmodel} comes first, since it describes the other files.
     */
    private static final List<Kind> KINDS = List.of(
            new Kind("MLmodel", "mlflow", "mlflow"),
            new Kind("model.savedmodel", "tensorflow_savedmodel", "tensorflow"),
            new Kind("model.graphdef", "tensorflow_graphdef", "tensorflow"),
            new Kind("model.plan", "tensorrt_plan", "tensorrt"),
            new Kind("model.onnx", "onnxruntime_onnx", "onnxruntime"),
            new Kind("model.xml", "", "openvino"),
            new Kind("model.pt", "pytorch_libtorch", "pytorch"),
            new Kind("model.pt2", AOTI, AOTI),
            new Kind("model.py", "", "python"));

    /** Other names of platforms. */
    private static final Map<String, String> ALIASES = Map.of("libtorch", "pytorch_libtorch");

    private final List<Backend> backends;

    public BackendSelector(List<Backend> backends) {
        this.backends = List.copyOf(backends);
    }

    /**
     * The selected backend.
     *
     * @param backend the backend; null for an ensemble
     * @param platform the platform shown in metadata, or empty
     * @param modelFile the file inside the version's directory, or empty for the backend's default
     */
    record Choice(@Nullable Backend backend, String platform, String modelFile) {}

    /**
     * A model format that Triton recognises.
     *
     * @param file the file or directory by which it is recognised
     * @param platform its platform, or empty
     * @param backend the name of its backend
     */
    private record Kind(String file, String platform, String backend) {}

    /** Selects the backend; null after an error was added to the problems. */
    @Nullable Choice choose(
            ModelConfig config,
            Collection<Path> paths,
            Path file,
            SourcePosition platformAt,
            SourcePosition backendAt,
            ProblemCollector problems) {
        Map<String, Path> files = new LinkedHashMap<>();
        for (Path path : paths) {
            files.put(RepositoryLayout.fileName(path), path);
        }
        if (config.ensemble() != null
                || (config.platform().equals(ENSEMBLE) && config.backend().isEmpty())) {
            return new Choice(null, ENSEMBLE, "");
        }
        if (!config.backend().isEmpty()) {
            boolean aoti =
                    config.backend().equals("pytorch") && config.platform().equals(AOTI);
            Backend backend = named(aoti ? AOTI : config.backend());
            if (backend == null) {
                problems.error(
                        file,
                        backendAt,
                        "unknown backend " + ProblemCollector.quote(config.backend()) + " for " + config.name(),
                        known(config.backend(), config.backend()));
                return null;
            }
            if (contradicts(backend, config.platform())) {
                problems.error(
                        file,
                        platformAt,
                        "unexpected 'platform' and 'backend' pair, got:" + config.platform() + ", " + config.backend(),
                        "leave 'platform' out");
                return null;
            }
            return choice(backend, config, files);
        }
        if (!config.platform().isEmpty()) {
            Backend backend = named(config.platform());
            if (backend == null) {
                problems.error(
                        file,
                        platformAt,
                        "unexpected platform type " + ProblemCollector.quote(config.platform()) + " for "
                                + config.name(),
                        known(config.platform(), backendOf(config.platform())));
                return null;
            }
            return choice(backend, config, files);
        }
        return byFiles(config, files, file, problems);
    }

    private @Nullable Choice byFiles(
            ModelConfig config, Map<String, Path> files, Path file, ProblemCollector problems) {
        if (!config.modelFile().isEmpty()) {
            Path given = files.get(config.modelFile());
            Backend backend = given == null ? byFileName(config.modelFile()) : byFile(given);
            if (backend != null) {
                return choice(backend, config, files);
            }
        }
        for (Kind kind : KINDS) {
            Backend backend = files.containsKey(kind.file) ? named(kind.backend) : null;
            if (backend != null) {
                String platform = config.platform().isEmpty() ? kind.platform : config.platform();
                return new Choice(
                        backend,
                        platform.isEmpty() ? platform(backend, config) : platform,
                        config.modelFile().isEmpty() && !backend.defaultFiles().contains(kind.file)
                                ? kind.file
                                : config.modelFile());
            }
        }
        Backend byDefault = byDefaultFile(files);
        if (byDefault != null) {
            return choice(byDefault, config, files);
        }
        String name = config.name();
        Backend bySuffix = named(name.substring(name.lastIndexOf('.') + 1));
        if (bySuffix != null && name.indexOf('.') >= 0) {
            String wanted = "model." + name.substring(name.lastIndexOf('.') + 1);
            return new Choice(bySuffix, platform(bySuffix, config), files.containsKey(wanted) ? wanted : "");
        }
        for (Backend backend : backends) {
            if (!only(backend, files).isEmpty()) {
                return choice(backend, config, files);
            }
        }
        Kind foreign = KINDS.stream()
                .filter(k -> files.containsKey(k.file))
                .findFirst()
                .orElse(null);
        problems.error(
                file,
                "Invalid model name: Could not determine backend for model '" + name
                        + "' with no backend in model configuration. Expected model name of the form"
                        + " 'model.<backend_name>'.",
                foreign == null
                        ? "put one of " + String.join(", ", defaultFiles()) + " into the version's directory"
                        : foreign.file + " needs the backend '" + foreign.backend
                                + "', which this server does not have");
        return null;
    }

    /** The backend whose default file exists; of several for the name or its extension, the one that recognises it. */
    private @Nullable Backend byDefaultFile(Map<String, Path> files) {
        Backend found = null;
        for (Backend backend : backends) {
            for (String name : backend.defaultFiles()) {
                Path path = files.get(name);
                if (path != null && backend.recognises(path)) {
                    return backend;
                }
                found = path != null && found == null ? byFile(path) : found;
            }
        }
        return found;
    }

    private Choice choice(Backend backend, ModelConfig config, Map<String, Path> files) {
        String modelFile = config.modelFile();
        if (modelFile.isEmpty() && backend.defaultFiles().stream().noneMatch(files::containsKey)) {
            modelFile = only(backend, files);
        }
        return new Choice(backend, platform(backend, config), modelFile);
    }

    private static String platform(Backend backend, ModelConfig config) {
        String given = ALIASES.getOrDefault(config.platform(), config.platform());
        boolean own = backend.platforms().contains(given)
                || (!given.isEmpty() && backendOf(given).equals(backend.name()));
        return own || backend.platforms().isEmpty()
                ? given
                : backend.platforms().get(0);
    }

    /** The only file with the backend's extension, or empty if there is not exactly one. */
    private static String only(Backend backend, Map<String, Path> files) {
        List<String> found = files.entrySet().stream()
                .filter(f -> !f.getKey().startsWith(".") && isKindOf(backend, f.getKey()))
                .filter(f -> backend.recognises(f.getValue()))
                .map(Map.Entry::getKey)
                .toList();
        return found.size() == 1 ? found.get(0) : "";
    }

    /** The backend for a file by its extension and its first bytes, or null. */
    public @Nullable Backend byFile(Path file) {
        for (Backend backend : backends) {
            if (isKindOf(backend, RepositoryLayout.fileName(file)) && backend.recognises(file)) {
                return backend;
            }
        }
        // A default file that no backend recognises is damaged: its backend will report the error.
        for (Backend backend : backends) {
            if (backend.defaultFiles().contains(RepositoryLayout.fileName(file))) {
                return backend;
            }
        }
        return null;
    }

    /** The backend for a file name by its extension, or null. */
    private @Nullable Backend byFileName(String fileName) {
        for (Backend backend : backends) {
            if (isKindOf(backend, fileName)) {
                return backend;
            }
        }
        return null;
    }

    private static boolean isKindOf(Backend backend, String fileName) {
        for (String name : backend.defaultFiles()) {
            int dot = name.lastIndexOf('.');
            String ending = dot < 0 ? name : name.substring(dot);
            if (fileName.equals(name)
                    || (dot >= 0 && fileName.length() > ending.length() && fileName.endsWith(ending))) {
                return true;
            }
        }
        return false;
    }

    /** Whether the extension of a directory's name is a backend's name. */
    boolean hasSuffix(String directoryName) {
        int dot = directoryName.lastIndexOf('.');
        return dot > 0 && named(directoryName.substring(dot + 1)) != null;
    }

    public List<String> defaultFiles() {
        return backends.stream()
                .flatMap(b -> b.defaultFiles().stream())
                .distinct()
                .toList();
    }

    /** The backend with a name, or with a platform by any of its names. */
    public @Nullable Backend named(String name) {
        String platform = ALIASES.getOrDefault(name, name);
        String byPlatform = backendOf(platform);
        for (Backend backend : backends) {
            if (backend.name().equals(name)) {
                return backend;
            }
        }
        for (Backend backend : backends) {
            if (backend.platforms().contains(platform) || backend.name().equals(byPlatform)) {
                return backend;
            }
        }
        return null;
    }

    /** The name of Triton's backend for a platform; empty if the platform is unknown. */
    private static String backendOf(String platform) {
        String name = ALIASES.getOrDefault(platform, platform);
        return KINDS.stream()
                .filter(k -> !name.isEmpty() && k.platform.equals(name))
                .map(Kind::backend)
                .findFirst()
                .orElse("");
    }

    /** Whether a platform belongs to another backend, or is not among the backend's known platforms. */
    private boolean contradicts(Backend backend, String platform) {
        if (platform.isEmpty() || backend.name().equals(platform)) {
            return false;
        }
        Backend other = named(platform);
        if (other != null || !backendOf(platform).isEmpty() || platform.equals(ENSEMBLE)) {
            return other != backend;
        }
        return !backend.platforms().isEmpty() || KINDS.stream().anyMatch(k -> k.backend.equals(backend.name()));
    }

    /** The remedy for an unknown platform or backend. */
    public String platformRemedy(String name) {
        return known(name, backendOf(name));
    }

    private String known(String given, String needed) {
        if (KINDS.stream().anyMatch(k -> k.backend.equals(needed))) {
            return "it needs the backend '" + needed + "', which this server does not have";
        }
        List<String> names = new ArrayList<>();
        for (Backend backend : backends) {
            names.add(backend.name());
        }
        String otherwise = "this server has " + String.join(", ", names);
        return given.length() > 64 ? otherwise : NameSuggestions.didYouMean(given, names, otherwise);
    }
}
