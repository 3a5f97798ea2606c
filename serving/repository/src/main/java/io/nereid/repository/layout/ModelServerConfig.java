// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.backend.Backend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.tfserving.TfServingTextFiles;
import io.nereid.spi.management.ModelListEntry;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * TensorFlow Serving's model list, {@code --model_config_file}: the message {@code ModelServerConfig} in protobuf's
 * text format.
 *
 * <pre>{@code
 * model_config_list {
 *   config {
 *     name: "half"
 *     base_path: "/models/half"                 # /models/half/1/…, /models/half/00000002/…
 *     model_platform: "tensorflow"              # any model format; or a platform or backend of this server
 *     model_version_policy { specific { versions: 1 versions: 2 versions: 3 } }  # or latest { num_versions: 2 }, all
 *     {} version_labels { key: "stable" value: 1 }
 *     weighted_labels {                         # an addition of this server
 *       key: "canary"
 *       value {
 *         targets { version: 1 weight: 90 }     # each version gets its share of the sum of all weights
 *         targets { version: 2 weight: 10 }
 *         shadows { version: 3 weight: 0.1 }    # gets a copy of a tenth of the requests; its responses are discarded
 *       }
 *     }
 *     logging_config {
 *       log_collector_config { type: "tfrecord" filename_prefix: "/logs/half" }
 *       sampling_config { sampling_rate: 0.01 }
 *     }
 *   }
 * }
 * }</pre>
 *
 * <p>A weight that is left out is 1. The deprecated {@code model_type: TENSORFLOW} stands for
 * {@code model_platform: "tensorflow"}. Immutable.
 */
public final class ModelServerConfig {
    /** The platform that stands for any model format. */
    public static final String ANY_PLATFORM = "tensorflow";

    private ModelServerConfig() {}

    /**
     * Reads a list. An empty text is an empty list.
     *
     * @param where the origin of the text, for messages
     * @throws ServingException INVALID_ARGUMENT with every error and its position
     */
    public static List<ModelListEntry> parse(String text, String where) {
        return parseIfAny(text, where).orElse(List.of());
    }

    /** As {@link #parse}, of a file, which must be readable. */
    public static List<ModelListEntry> read(Path file) {
        return parse(TfServingTextFiles.text(file), file.toString());
    }

    /**
     * As {@link #parse}, but empty if the text does not contain a list, which means no change. In contrast,
     * {@code model_config_list {}} is a list without models.
     */
    public static Optional<List<ModelListEntry>> parseIfAny(String text, String where) {
        return ModelServerConfigReader.read(text, where);
    }

    /** As {@link #parseIfAny}, of a file, which must be readable. */
    public static Optional<List<ModelListEntry>> readIfAny(Path file) {
        return parseIfAny(TfServingTextFiles.text(file), file.toString());
    }

    /**
     * Validates a list by itself, and against the list in force.
     *
     * @param next the list
     * @param now the list in force, or an empty list
     * @throws ServingException INVALID_ARGUMENT for the first error
     */
    public static void check(List<ModelListEntry> next, List<ModelListEntry> now) {
        Map<String, String> platforms = new HashMap<>();
        now.forEach(m -> platforms.put(m.name(), m.platform()));
        Set<String> names = new HashSet<>();
        for (ModelListEntry m : next) {
            if (!names.add(m.name())) {
                throw ServingException.invalidArgument(
                        "Illegal to list model " + m.name() + " multiple times in config list", "remove one of them");
            }
            ModelServerConfigValidator.check(m);
            String before = platforms.get(m.name());
            if (before != null && !before.equals(m.platform())) {
                throw ServingException.invalidArgument(
                        "Illegal to change a model's platform. For model " + m.name() + " platform was " + before
                                + " and new platform requested is " + m.platform(),
                        "give the model another name, or remove it from the list first");
            }
        }
    }

    /**
     * As {@link #check(List, List)}; the platform of each model must also be one of these backends or their platforms.
     */
    public static void check(List<ModelListEntry> next, List<ModelListEntry> now, Collection<Backend> backends) {
        check(next, now);
        BackendSelector chooser = new BackendSelector(List.copyOf(backends));
        for (ModelListEntry m : next) {
            if (!m.platform().equals(ANY_PLATFORM) && chooser.named(m.platform()) == null) {
                throw ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "Model " + m.name() + " requests unsupported platform " + m.platform(),
                        chooser.platformRemedy(m.platform()));
            }
        }
    }
}
