// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.repository.tfserving.TfServingTextFiles;
import io.nereid.repository.tfserving.TfServingTextFiles.Read;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Reads a {@code ModelServerConfig} text. Confined to one thread. */
final class ModelServerConfigReader {
    private final Read read;

    private ModelServerConfigReader(Read read) {
        this.read = read;
    }

    /** Reads the list; empty if the text does not contain {@code model_config_list}. */
    static Optional<List<ModelListEntry>> read(String text, String where) {
        Read read = TfServingTextFiles.read(TfServingTextFiles.MODELS, text, where);
        ModelServerConfigReader reader = new ModelServerConfigReader(read);
        List<ModelListEntry> models = new ArrayList<>();
        for (Value v : read.root().message("model_config_list").all("config")) {
            models.add(reader.model(v.message()));
        }
        read.check();
        return read.root().has("model_config_list") ? Optional.of(List.copyOf(models)) : Optional.empty();
    }

    private ModelListEntry model(TypedMessage m) {
        if (m.lacks("name")) {
            read.error(m.at(), "a model of the list has no name", "write name: \"…\"");
        }
        if (m.lacks("base_path")) {
            read.error(
                    m.at(),
                    "model " + ProblemCollector.quote(m.text("name")) + " has no base_path",
                    "write base_path: \"/…\"");
        }
        return new ModelListEntry(m.text("name"), m.text("base_path"), platform(m), policy(m), labels(m), logging(m));
    }

    private String platform(TypedMessage m) {
        String type = m.text("model_type");
        String platform = m.text("model_platform");
        if (type.isEmpty() || type.equals("MODEL_TYPE_UNSPECIFIED")) {
            if (platform.isEmpty()
                    && !m.faulty().contains("model_platform")
                    && !m.faulty().contains("model_type")) {
                read.error(
                        m.at(),
                        "Illegal setting neither ModelServerConfig::model_type (deprecated) nor"
                                + " ModelServerConfig::model_platform. model name is " + m.text("name"),
                        "write model_platform: \"tensorflow\", which stands for any model format");
            }
            return platform;
        }
        if (!platform.isEmpty()) {
            read.error(
                    m.place("model_type"),
                    "Illegal setting both ModelServerConfig::model_type (deprecated) and"
                            + " ModelServerConfig::model_platform.",
                    "remove model_type");
        } else if (!type.equals("TENSORFLOW")) {
            read.error(
                    m.place("model_type"),
                    "ModelServerConfig::model_type choice " + type + " not supported.",
                    "write model_platform instead");
        }
        return ModelServerConfig.ANY_PLATFORM;
    }

    private @Nullable VersionPolicy policy(TypedMessage m) {
        TypedMessage policy = m.message("model_version_policy");
        if (policy.has("all")) {
            return new VersionPolicy(VersionPolicy.Kind.ALL, 0, List.of());
        }
        if (policy.has("specific")) {
            TreeSet<Long> versions = new TreeSet<>();
            for (Value v : policy.message("specific").all("versions")) {
                versions.add(v.number());
                if (v.number() < 0) {
                    read.error(v.at(), "version " + v.number() + " in 'specific' (expected: at least 0)", null);
                }
            }
            if (versions.isEmpty() && !policy.message("specific").faulty().contains("versions")) {
                read.error(
                        policy.place("specific"),
                        "the specific version policy of model " + m.text("name") + " names no version",
                        "write specific { versions: 1 }, or leave the policy out for the latest version");
            }
            return new VersionPolicy(VersionPolicy.Kind.SPECIFIC, 0, List.copyOf(versions));
        }
        if (!policy.has("latest")) {
            return null;
        }
        long count = Math.max(1, policy.message("latest").number("num_versions"));
        return new VersionPolicy(VersionPolicy.Kind.LATEST, (int) Math.min(count, Integer.MAX_VALUE), List.of());
    }

    private Map<String, VersionLabel> labels(TypedMessage m) {
        Map<String, VersionLabel> labels = new LinkedHashMap<>();
        for (Value v : m.all("version_labels")) {
            Object version = v.entry().value();
            put(labels, v, m, VersionLabel.of(version instanceof Long n ? n : 0));
        }
        for (Value v : m.all("weighted_labels")) {
            TypedMessage label = v.entry().value() instanceof TypedMessage b ? b : new TypedMessage(v.at());
            put(labels, v, m, new VersionLabel(shares(label, "targets"), shares(label, "shadows")));
        }
        return Collections.unmodifiableMap(labels);
    }

    private void put(Map<String, VersionLabel> labels, Value v, TypedMessage m, VersionLabel label) {
        if (labels.put(v.entry().key(), label) != null) {
            read.error(
                    v.at(),
                    "label " + ProblemCollector.quote(v.entry().key()) + " of model "
                            + ProblemCollector.quote(m.text("name")) + " is given twice (expected: once)",
                    "remove one of them");
        }
    }

    private static List<WeightedVersion> shares(TypedMessage label, String field) {
        List<WeightedVersion> shares = new ArrayList<>();
        for (Value v : label.all(field)) {
            TypedMessage share = v.message();
            double weight = share.has("weight") ? TfServingTextFiles.doubleValue(share, "weight") : 1;
            shares.add(new WeightedVersion(share.number("version"), weight));
        }
        return List.copyOf(shares);
    }

    private static @Nullable LoggingConfig logging(TypedMessage m) {
        if (!m.has("logging_config")) {
            return null;
        }
        TypedMessage logging = m.message("logging_config");
        TypedMessage collector = logging.message("log_collector_config");
        return new LoggingConfig(
                collector.text("type"),
                collector.text("filename_prefix"),
                TfServingTextFiles.doubleValue(logging.message("sampling_config"), "sampling_rate"));
    }
}
