// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.ServingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * What explanations are when a request says nothing else, and what they may cost. Immutable.
 */
public final class ExplainSettings {
    /** Names of methods. */
    static final List<String> METHODS =
            List.of("shap", "tree_shap", "kernel_shap", "lime", "permutation", "counterfactual");

    private static final List<String> LIMITS =
            List.of("max_instances", "max_predictions", "max_concurrency", "timeout_ms");
    private static final int MOST_ROWS = 10_000;

    private final Options defaults;
    private final @Nullable List<?> background;
    private final String origin;
    private final int maxInstances;
    private final long maxPredictions;
    private final int maxConcurrency;
    private final long timeoutMillis;

    private ExplainSettings(Options given, @Nullable List<?> background, String origin, Map<String, Object> limits) {
        this.defaults = given;
        this.background = background;
        this.origin = origin;
        Options all = Options.limits(limits);
        this.maxInstances = (int) all.whole("max_instances", 1000, 1, 1 << 20);
        this.maxPredictions = all.whole("max_predictions", 5_000_000, 1, 1L << 40);
        this.maxConcurrency = (int) all.whole("max_concurrency", 8, 1, 1 << 16);
        this.timeoutMillis = all.whole("timeout_ms", 30_000, 1, 3_600_000);
    }

    /** Nothing said: method {@code shap}, no background, the limits' defaults. */
    public static ExplainSettings none() {
        return of("shap", Map.of(), List.of());
    }

    /**
     * Of a service.
     *
     * @param method {@code shap} (also when empty), {@code tree_shap}, {@code kernel_shap}, {@code lime},
     *     {@code permutation} or {@code counterfactual}
     * @param settings parameters of requests, which are then the defaults, by name, a {@code -} standing for {@code _};
     *     {@code background} names a file; limits {@code max_instances}, {@code max_predictions}, {@code max_concurrency}
     *     and {@code timeout_ms}
     * @param files what was fetched for the explainer: files, or folders. A {@code background.json}, {@code .csv} or
     *     {@code .npy} among them is taken when the settings name none
     * @throws ServingException INVALID_ARGUMENT for a method, a name or a value that there is not, or a file that cannot be used
     */
    public static ExplainSettings of(String method, Map<String, String> settings, List<Path> files) {
        Map<String, Object> said = new LinkedHashMap<>();
        Map<String, Object> limits = new LinkedHashMap<>();
        List<String> known = new ArrayList<>(Options.NAMES);
        known.removeAll(List.of("method", "targets", "ranges"));
        known.addAll(LIMITS);
        String file = null;
        for (Map.Entry<String, String> setting : settings.entrySet()) {
            String name = setting.getKey().replace('-', '_');
            Options.require(name, known, "setting of the explainer");
            if (LIMITS.contains(name)) {
                limits.put(name, setting.getValue());
            } else if (name.equals("background")) {
                file = setting.getValue();
            } else {
                said.put(name, setting.getValue());
            }
        }
        said.put("method", method.isEmpty() ? "shap" : method);
        Options options = Options.of(said).checked();
        Path found = file == null ? usual(files) : named(file, files);
        List<?> rows = found == null ? null : drawn(BackgroundFile.read(found));
        return new ExplainSettings(options, rows, found == null ? "" : "file " + found.getFileName(), limits);
    }

    private static @Nullable Path usual(List<Path> files) {
        for (String name : List.of("background.json", "background.csv", "background.npy")) {
            for (Path root : files) {
                if (Files.isRegularFile(root)
                        && String.valueOf(root.getFileName()).equals(name)) {
                    return root;
                }
                if (Files.isRegularFile(root.resolve(name))) {
                    return root.resolve(name);
                }
            }
        }
        return null;
    }

    private static Path named(String file, List<Path> files) {
        for (Path root : files) {
            if (Files.isRegularFile(root) && String.valueOf(root.getFileName()).equals(file)) {
                return root;
            }
            Path inside = root.resolve(file).normalize();
            if (inside.startsWith(root.normalize()) && Files.isRegularFile(inside)) {
                return inside;
            }
        }
        throw ServingException.invalidArgument(
                "setting 'background' names '" + Options.shortened(file)
                        + "', which is not among the explainer's files",
                files.isEmpty()
                        ? "give the explainer a storageUri with the file"
                        : "name a file under its storageUri, such as background.csv");
    }

    /** Not more rows than are ever needed, the same each time. */
    private static List<?> drawn(List<?> rows) {
        if (rows.size() <= MOST_ROWS) {
            return rows;
        }
        List<?> mixed = new ArrayList<>(rows);
        Collections.shuffle(mixed, new Random(0));
        return new ArrayList<>(mixed.subList(0, MOST_ROWS));
    }

    Options defaults() {
        return defaults;
    }

    /** Background rows, or null. */
    @Nullable List<?> background() {
        return background;
    }

    /** Where they come from. */
    String origin() {
        return origin;
    }

    int maxInstances() {
        return maxInstances;
    }

    long maxPredictions() {
        return maxPredictions;
    }

    int maxConcurrency() {
        return maxConcurrency;
    }

    long timeoutMillis() {
        return timeoutMillis;
    }
}
