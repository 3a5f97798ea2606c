// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.languagemodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.component.StrategicMerge;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * The LLMInferenceServiceConfigs that an LLMInferenceService uses: those of its {@code baseRefs}, and of the well-known
 * ones, which KServe chooses by the form of the service, those that exist. A configuration is looked for in the
 * service's namespace, then in the one of the control plane. Immutable.
 *
 * @param spec the specification with the fields of all of them
 * @param applied the configurations in the order in which they were merged
 * @param missing a name of {@code baseRefs} that exists in neither namespace; null for none
 */
record LanguageModelConfigs(
        ObjectNode spec, List<Applied> applied, @Nullable String missing) {
    private static final String PREFIX = "kserve-config-llm-";

    /** A configuration of a service: its key, and whether it is a well-known one. */
    record Applied(String namespace, String name, boolean preset) {}

    /** @param lookup returns the configuration with a namespace and a name; null if it does not exist */
    static LanguageModelConfigs of(
            ObjectNode service, String home, BiFunction<String, String, @Nullable ObjectNode> lookup) {
        String namespace = service.path("metadata").path("namespace").asText();
        ObjectNode own =
                service.path("spec") instanceof ObjectNode found ? found : JsonNodeFactory.instance.objectNode();
        List<Applied> applied = new ArrayList<>();
        ObjectNode below = JsonNodeFactory.instance.objectNode();
        for (JsonNode ref : own.path("baseRefs")) {
            String name = ref.path("name").asText("");
            ObjectNode config = found(name, namespace, home, lookup, applied, false);
            if (config == null) {
                return new LanguageModelConfigs(own, List.of(), name);
            }
            below = merged(below, config);
        }
        ObjectNode combined = StrategicMerge.patch(below, own);
        List<Applied> presets = new ArrayList<>();
        ObjectNode lowest = JsonNodeFactory.instance.objectNode();
        for (String name : presets(combined)) {
            ObjectNode config = found(name, namespace, home, lookup, presets, true);
            lowest = config == null ? lowest : merged(lowest, config);
        }
        presets.addAll(applied);
        return new LanguageModelConfigs(StrategicMerge.patch(lowest, combined), List.copyOf(presets), null);
    }

    private static @Nullable ObjectNode found(
            String name,
            String namespace,
            String home,
            BiFunction<String, String, @Nullable ObjectNode> lookup,
            List<Applied> applied,
            boolean preset) {
        for (String in : List.of(namespace, home)) {
            ObjectNode config = lookup.apply(in, name);
            if (config != null) {
                applied.add(new Applied(in, name, preset));
                return config;
            }
        }
        return null;
    }

    private static ObjectNode merged(ObjectNode below, ObjectNode config) {
        return config.path("spec") instanceof ObjectNode spec ? StrategicMerge.patch(below, spec) : below;
    }

    /** The names of the well-known configurations for a form of service, as in KServe. */
    private static List<String> presets(JsonNode spec) {
        List<String> names = new ArrayList<>();
        JsonNode router = spec.path("router");
        if (router.has("scheduler") && !router.path("scheduler").path("pool").has("ref")) {
            names.add(PREFIX + "scheduler");
        }
        if (router.has("route")
                && router.path("route").path("http").path("refs").isEmpty()) {
            names.add(PREFIX + "router-route");
        }
        if (spec.has("tracing")) {
            names.add(PREFIX + "tracing");
        }
        boolean split = spec.has("prefill");
        if (split) {
            names.add(PREFIX + "prefill-" + workload(spec.path("prefill")));
        }
        names.add(PREFIX + (split ? "decode-" : "") + workload(spec));
        return names;
    }

    private static String workload(JsonNode workload) {
        if (!workload.has("worker")) {
            return "template";
        }
        return workload.path("parallelism").has("pipeline") ? "worker-pipeline-parallel" : "worker-data-parallel";
    }
}
