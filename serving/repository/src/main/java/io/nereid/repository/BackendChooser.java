// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.Suggestions;
import io.nereid.spi.ModelConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Finds out which backend runs a model: by its names of all ages, by files, by the directory's ending. Immutable. */
final class BackendChooser {
    /** Files of technologies that this server may lack, so that the refusal can name what is missing. */
    private static final Map<String, String> FOREIGN = Map.of(
            "model.savedmodel", "tensorflow",
            "model.graphdef", "tensorflow",
            "model.plan", "tensorrt",
            "model.onnx", "onnxruntime",
            "model.xml", "openvino",
            "model.pt", "pytorch",
            "model.pt2", "pytorch",
            "model.py", "python");

    private final List<Backend> backends;

    BackendChooser(List<Backend> backends) {
        this.backends = List.copyOf(backends);
    }

    /**
     * The outcome.
     *
     * @param backend what runs the model
     * @param platform the platform shown in metadata, or empty
     * @param modelFile the file inside the version's directory, or empty for the backend's default
     */
    record Choice(Backend backend, String platform, String modelFile) {}

    /** The choice, or null after the reason was added to the problems. */
    @Nullable Choice choose(
            ModelConfig config,
            Collection<String> files,
            Path file,
            Position platformAt,
            Position backendAt,
            Problems problems) {
        if (!config.backend().isEmpty()) {
            Backend backend = named(config.backend());
            if (backend == null) {
                problems.error(
                        file,
                        backendAt,
                        "unknown backend " + Problems.quote(config.backend()) + " for " + config.name(),
                        known(config.backend()));
                return null;
            }
            if (!config.platform().isEmpty() && !is(backend, config.platform())) {
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
                        "unexpected platform type " + Problems.quote(config.platform()) + " for " + config.name(),
                        config.platform().equals("ensemble")
                                ? "ensembles are not supported by this version of Nereid"
                                : known(config.platform()));
                return null;
            }
            return choice(backend, config, files);
        }
        return byFiles(config, files, file, problems);
    }

    private @Nullable Choice byFiles(ModelConfig config, Collection<String> files, Path file, Problems problems) {
        if (!config.modelFile().isEmpty()) {
            Backend backend = byFileName(config.modelFile());
            if (backend != null) {
                return choice(backend, config, files);
            }
        }
        for (Backend backend : backends) {
            for (String name : backend.defaultFiles()) {
                if (files.contains(name)) {
                    return choice(backend, config, files);
                }
            }
        }
        String name = config.name();
        Backend bySuffix = named(name.substring(name.lastIndexOf('.') + 1));
        if (bySuffix != null && name.indexOf('.') >= 0) {
            String wanted = "model." + name.substring(name.lastIndexOf('.') + 1);
            return new Choice(bySuffix, platform(bySuffix, config), files.contains(wanted) ? wanted : "");
        }
        for (Backend backend : backends) {
            if (!only(backend, files).isEmpty()) {
                return choice(backend, config, files);
            }
        }
        String foreign =
                files.stream().filter(FOREIGN::containsKey).sorted().findFirst().orElse(null);
        problems.error(
                file,
                "Invalid model name: Could not determine backend for model '" + name
                        + "' with no backend in model configuration. Expected model name of the form"
                        + " 'model.<backend_name>'.",
                foreign == null
                        ? "put one of " + String.join(", ", defaultFiles()) + " into the version's directory"
                        : foreign + " needs the backend '" + FOREIGN.get(foreign)
                                + "', which this server does not have");
        return null;
    }

    private Choice choice(Backend backend, ModelConfig config, Collection<String> files) {
        String modelFile = config.modelFile();
        if (modelFile.isEmpty() && backend.defaultFiles().stream().noneMatch(files::contains)) {
            modelFile = only(backend, files);
        }
        return new Choice(backend, platform(backend, config), modelFile);
    }

    private static String platform(Backend backend, ModelConfig config) {
        boolean old = backend.platforms().contains(config.platform());
        return old || backend.platforms().isEmpty()
                ? config.platform()
                : backend.platforms().get(0);
    }

    /** The only file of the backend's kind, or empty when there is none or more than one. */
    private static String only(Backend backend, Collection<String> files) {
        List<String> found = files.stream()
                .filter(f -> !f.startsWith(".") && isKindOf(backend, f))
                .toList();
        return found.size() == 1 ? found.get(0) : "";
    }

    /** The backend for a file of this name, whatever it is called before its ending; null when there is none. */
    @Nullable Backend byFileName(String fileName) {
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

    /** Whether the name of a directory ends in a backend's name. */
    boolean hasSuffix(String directoryName) {
        int dot = directoryName.lastIndexOf('.');
        return dot > 0 && named(directoryName.substring(dot + 1)) != null;
    }

    List<String> defaultFiles() {
        return backends.stream()
                .flatMap(b -> b.defaultFiles().stream())
                .distinct()
                .toList();
    }

    private @Nullable Backend named(String name) {
        for (Backend backend : backends) {
            if (backend.name().equals(name)) {
                return backend;
            }
        }
        for (Backend backend : backends) {
            if (backend.platforms().contains(name)) {
                return backend;
            }
        }
        return null;
    }

    private static boolean is(Backend backend, String name) {
        return backend.name().equals(name) || backend.platforms().contains(name);
    }

    private String known(String given) {
        List<String> names = new ArrayList<>();
        for (Backend backend : backends) {
            names.add(backend.name());
        }
        String otherwise = "this server has " + String.join(", ", names);
        return given.length() > 64 ? otherwise : Suggestions.didYouMean(given, names, otherwise);
    }
}
