// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The golden cases under {@code src/test/resources/cases}. To add one, append a document to the file of its topic (or
 * name a new file in {@link #TOPICS}):
 *
 * <pre>
 * case: what it shows, as one line
 * base: the name of a resource in bases.yaml
 * patch: {…}           a JSON merge patch on the base; null removes a field. Or resource: {…} instead of base and patch
 * old: {…}             optional: a merge patch on the admitted base, which results in the stored resource
 * config: {…}          optional: settings, see {@link InferenceServiceConfig#read}
 * site: kubernetes     optional: for a cluster instead of one machine
 * beside: [{…}]        optional: existing runtimes and storage containers
 * becomes: {…}         a merge patch on the input, which results in the admitted resource; absent when nothing changes
 * problems: [lines]    instead of becomes: exactly these lines, in any order
 * warnings: [lines]    exactly these, in any order; absent for none
 * </pre>
 *
 * Immutable.
 */
public record AdmissionCase(
        String topic,
        String name,
        ObjectNode input,
        @Nullable ObjectNode old,
        ObjectNode tree) {
    static final List<String> TOPICS = List.of(
            "metadata",
            "strictness",
            "defaulting",
            "predictors",
            "storage",
            "scaling",
            "components",
            "canary",
            "workers",
            "updates",
            "runtimes",
            "graphs",
            "storage-containers",
            "language-models",
            "local-models",
            "core",
            "warnings",
            "cluster");

    public static List<AdmissionCase> all() {
        Map<String, ObjectNode> bases = new HashMap<>();
        for (ObjectNode base : documents("bases")) {
            bases.put(base.path("base").asText(), (ObjectNode) base.path("resource"));
        }
        List<AdmissionCase> all = new ArrayList<>();
        for (String topic : TOPICS) {
            for (ObjectNode tree : documents(topic)) {
                all.add(read(topic, tree, bases));
            }
        }
        return all;
    }

    private static AdmissionCase read(String topic, ObjectNode tree, Map<String, ObjectNode> bases) {
        String name = topic + ": " + tree.path("case").asText();
        ObjectNode base;
        if (tree.get("resource") instanceof ObjectNode written) {
            base = written;
        } else {
            base = Objects.requireNonNull(bases.get(tree.path("base").asText()), name);
        }
        ObjectNode old = null;
        if (tree.get("old") instanceof ObjectNode patch) {
            ObjectNode admitted = new Admission(AdmissionContext.NONE)
                    .admit(ResourceKinds.of(base), base, null)
                    .resource();
            old = patched(admitted, patch);
        }
        ObjectNode input = base.deepCopy();
        if (tree.get("patch") instanceof ObjectNode patch) {
            input = patched(base, patch);
        }
        return new AdmissionCase(topic, name, input, old, tree);
    }

    public static ObjectNode patched(ObjectNode base, ObjectNode patch) {
        ObjectNode result = base.deepCopy();
        for (Map.Entry<String, JsonNode> entry : patch.properties()) {
            if (entry.getValue().isNull()) {
                result.remove(entry.getKey());
            } else if (entry.getValue() instanceof ObjectNode inner) {
                ObjectNode there = result.get(entry.getKey()) instanceof ObjectNode found ? found : result.objectNode();
                result.set(entry.getKey(), patched(there, inner));
            } else {
                result.set(entry.getKey(), entry.getValue().deepCopy());
            }
        }
        return result;
    }

    public Admission admission() {
        InferenceServiceConfig config = tree.get("config") instanceof ObjectNode settings
                ? InferenceServiceConfig.read(settings)
                : InferenceServiceConfig.defaults();
        List<ClusterStorageContainer> containers = new ArrayList<>();
        List<ServingRuntime> runtimes = new ArrayList<>();
        for (JsonNode one : tree.path("beside")) {
            if (one.path("kind").asText().equals("ClusterStorageContainer")) {
                containers.add(ClusterStorageContainer.read((ObjectNode) one));
            } else {
                runtimes.add(ServingRuntime.read((ObjectNode) one));
            }
        }
        return new Admission(
                new AdmissionContext() {
                    @Override
                    public InferenceServiceConfig config(String namespace) {
                        return config.forNamespace(namespace);
                    }

                    @Override
                    public List<ClusterStorageContainer> storageContainers() {
                        return containers;
                    }

                    @Override
                    public List<ServingRuntime> runtimes(String namespace) {
                        return runtimes.stream()
                                .filter(one -> one.metadata().namespace().equals(namespace))
                                .toList();
                    }
                },
                tree.path("site").asText().equals("kubernetes") ? Site.KUBERNETES : Site.ONE_MACHINE);
    }

    public List<String> lines(String field) {
        List<String> lines = new ArrayList<>();
        tree.path(field).forEach(line -> lines.add(line.asText()));
        return lines;
    }

    private static List<ObjectNode> documents(String topic) {
        String path = "/cases/" + topic + ".yaml";
        try (InputStream in = Objects.requireNonNull(AdmissionCase.class.getResourceAsStream(path), path)) {
            return ManifestReader.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8), topic + ".yaml");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
