// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

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

/** The defaults and limits of explanations. Immutable. */
public final class ExplainSettings {
    /** The names of the methods. */
    public static final List<String> METHODS =
            List.of("shap", "tree_shap", "kernel_shap", "lime", "permutation", "counterfactual");

    private static final List<String> LIMITS =
            List.of("max_instances", "max_predictions", "max_concurrency", "timeout_ms");
    private static final int MOST_ROWS = 10_000;

    private final ExplainOptions defaults;
    private final @Nullable List<?> background;
    private final String origin;
    private final int maxInstances;
    private final long maxPredictions;
    private final int maxConcurrency;
    private final long timeoutMillis;

    private ExplainSettings(
            ExplainOptions given, @Nullable List<?> background, String origin, Map<String, Object> limits) {
        this.defaults = given;
        this.background = background;
        this.origin = origin;
        ExplainOptions all = ExplainOptions.limits(limits);
        this.maxInstances = (int) all.whole("max_instances", 1000, 1, 1 << 20);
        this.maxPredictions = all.whole("max_predictions", 5_000_000, 1, 1L << 40);
        this.maxConcurrency = (int) all.whole("max_concurrency", 8, 1, 1 << 16);
        this.timeoutMillis = all.whole("timeout_ms", 30_000, 1, 3_600_000);
    }

    /** The settings without configuration: method {@code shap}, no background, default limits. */
    public static ExplainSettings none() {
        return of("shap", Map.of(), List.of());
    }

    /**
     * Reads the settings of a service.
     *
     * @param method {@code shap} (also when empty), {@code tree_shap}, {@code kernel_shap}, {@code lime},
     *     {@code permutation} or {@code counterfactual}
     * @param settings defaults for the parameters of requests by name, in which {@code -} stands for {@code _};
     *     {@code background} names a file; limits {@code max_instances}, {@code max_predictions},
     *     {@code max_concurrency} and {@code timeout_ms}
     * @param files the downloaded files or directories of the explainer. A {@code background.json}, {@code .csv} or
     *     {@code .npy} among them is used when the settings do not name one
     * @throws ServingException INVALID_ARGUMENT for an unknown method, name or value, or a file that cannot be used
     */
    public static ExplainSettings of(String method, Map<String, String> settings, List<Path> files) {
        Map<String, Object> given = new LinkedHashMap<>();
        Map<String, Object> limits = new LinkedHashMap<>();
        List<String> known = new ArrayList<>(ExplainOptions.NAMES);
        known.removeAll(List.of("method", "targets", "ranges"));
        known.addAll(LIMITS);
        String file = null;
        for (Map.Entry<String, String> setting : settings.entrySet()) {
            String name = setting.getKey().replace('-', '_');
            ExplainOptions.require(name, known, "setting of the explainer");
            if (LIMITS.contains(name)) {
                limits.put(name, setting.getValue());
            } else if (name.equals("background")) {
                file = setting.getValue();
            } else {
                given.put(name, setting.getValue());
            }
        }
        given.put("method", method.isEmpty() ? "shap" : method);
        ExplainOptions options = ExplainOptions.of(given).checked();
        Path found = file == null ? usual(files) : named(file, files);
        List<?> rows = found == null ? null : drawn(BackgroundReader.read(found));
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
                "setting 'background' names '" + ExplainOptions.shortened(file)
                        + "', which is not among the explainer's files",
                files.isEmpty()
                        ? "give the explainer a storageUri with the file"
                        : "name a file under its storageUri, such as background.csv");
    }

    /** Limits the rows to the number that can ever be used; draws the same ones each time. */
    private static List<?> drawn(List<?> rows) {
        if (rows.size() <= MOST_ROWS) {
            return rows;
        }
        List<?> mixed = new ArrayList<>(rows);
        Collections.shuffle(mixed, new Random(0));
        return new ArrayList<>(mixed.subList(0, MOST_ROWS));
    }

    public ExplainOptions defaults() {
        return defaults;
    }

    /** The background rows, or null. */
    public @Nullable List<?> background() {
        return background;
    }

    /** Where the background rows come from. */
    public String origin() {
        return origin;
    }

    public int maxInstances() {
        return maxInstances;
    }

    public long maxPredictions() {
        return maxPredictions;
    }

    public int maxConcurrency() {
        return maxConcurrency;
    }

    public long timeoutMillis() {
        return timeoutMillis;
    }
}
