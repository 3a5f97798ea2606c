// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.tfserving;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.tfserving.TfServingTextFiles.Read;
import java.nio.file.Path;

/**
 * TensorFlow Serving's monitoring configuration: {@code --monitoring_config_file}, in protobuf's text format.
 * Immutable.
 *
 * <pre>{@code
 * prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }
 * }</pre>
 *
 * @param enabled whether TensorFlow Serving's metrics endpoint is enabled
 * @param path the path on the HTTP port, beginning with a slash
 */
public record MonitoringConfig(boolean enabled, String path) {
    /** The default path. */
    public static final String DEFAULT_PATH = "/monitoring/prometheus/metrics";

    /** Disabled, as with an empty file. */
    public static final MonitoringConfig OFF = new MonitoringConfig(false, DEFAULT_PATH);

    /** Validates the path; throws INVALID_ARGUMENT. */
    public MonitoringConfig {
        boolean blank = path.chars().anyMatch(c -> c <= ' ' || c == 0x7f || c == '?' || c == '#');
        if (!path.startsWith("/") || path.length() == 1 || blank) {
            throw ServingException.invalidArgument(
                    "path of prometheus_config is " + ProblemCollector.quote(path) + " (expected: a path such as "
                            + DEFAULT_PATH + ")",
                    "begin it with '/'");
        }
    }

    /**
     * Reads a text.
     *
     * @param where the origin of the text, for messages
     * @throws ServingException INVALID_ARGUMENT with every error and its position
     */
    public static MonitoringConfig parse(String text, String where) {
        Read read = TfServingTextFiles.read(TfServingTextFiles.MONITORING, text, where);
        read.check();
        TypedMessage prometheus = read.root().message("prometheus_config");
        String path = prometheus.text("path");
        try {
            return new MonitoringConfig(prometheus.flag("enable"), path.isEmpty() ? DEFAULT_PATH : path);
        } catch (ServingException e) {
            throw ServingException.of(e.code(), where + ": " + e.getMessage(), e.remedy());
        }
    }

    /** As {@link #parse}, of a file, which must be readable. */
    public static MonitoringConfig read(Path file) {
        return parse(TfServingTextFiles.text(file), file.toString());
    }
}
