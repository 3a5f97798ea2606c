// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.core.runtime.RuntimeCatalog;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The context of planning one InferenceService: the service, the catalog, the effective settings, and the warnings
 * collected for its owner. Confined to one call of the planner.
 */
public final class PlanningContext {
    /** Annotations that are not propagated to workloads, as in KServe. */
    private static final Set<String> NOT_PROPAGATED = Set.of(
            "autoscaling.knative.dev/minScale",
            "autoscaling.knative.dev/maxScale",
            "autoscaling.knative.dev/min-scale",
            "autoscaling.knative.dev/max-scale",
            "internal.serving.kserve.io/storage-initializer-sourceuri",
            "kubectl.kubernetes.io/last-applied-configuration",
            "modelFormat");

    private static final List<String> GPUS =
            List.of("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi");

    public final InferenceService service;
    public final RuntimeCatalog catalog;
    public final InferenceServiceConfig config;
    public final DeploymentMode mode;
    /** Warnings for the owner, such as fields without an effect on one machine, a sentence each. */
    public final Set<String> advice = new LinkedHashSet<>();

    public PlanningContext(InferenceService service, RuntimeCatalog catalog, JsonNode status) {
        this.service = service;
        this.catalog = catalog;
        this.config = catalog.config().forNamespace(service.metadata().namespace());
        this.mode = mode(status);
    }

    /** The names under which nodes offer GPUs: the usual ones, and those of the service's annotation and the settings. */
    public Set<String> gpuResources() {
        Set<String> all = new LinkedHashSet<>(GPUS);
        all.addAll(config.gpuResourceTypes());
        String custom = annotation("serving.kserve.io/gpu-resource-types");
        if (custom != null) {
            for (String one : custom.split(",", -1)) {
                String name = one.replaceAll("[\\[\\]\"\\s]", "");
                if (!name.isEmpty()) {
                    all.add(name);
                }
            }
        }
        return all;
    }

    public String name() {
        return service.metadata().name();
    }

    public String namespace() {
        return service.metadata().namespace();
    }

    public boolean knative() {
        return mode == DeploymentMode.KNATIVE;
    }

    public boolean flag(String annotation) {
        return "true".equals(annotation(annotation));
    }

    public @Nullable String annotation(String key) {
        return service.metadata().annotation(key);
    }

    /** The mode of a running service, which cannot change, else of the annotation, else of the settings. */
    private DeploymentMode mode(JsonNode status) {
        DeploymentMode found = DeploymentMode.of(status.path("deploymentMode").asText());
        String annotation = annotation("serving.kserve.io/deploymentMode");
        if (found == null && annotation != null) {
            found = DeploymentMode.of(annotation);
        }
        return found == null ? config.deploy().defaultDeploymentMode() : found;
    }

    /** A renderer for templates that refer to the service's name, namespace, labels and annotations. */
    public TemplateRenderer templates(Map<String, String> moreLabels) {
        ObjectMeta meta = service.metadata();
        Map<String, String> labels = new LinkedHashMap<>(meta.labels());
        moreLabels.forEach(labels::putIfAbsent);
        return new TemplateRenderer(
                Map.of("Name", meta.name(), "Namespace", meta.namespace()),
                Map.of("Labels", labels, "Annotations", meta.annotations()));
    }

    /** The labels of a workload: those of the component override the service's, which override the runtime's. */
    public Map<String, String> labels(Map<String, String> runtime, Map<String, String> component, String part) {
        Map<String, String> all = new LinkedHashMap<>(runtime);
        putAll(all, service.metadata().labels(), config.inferenceService().labelDisallowedList());
        all.putAll(component);
        all.put("serving.kserve.io/inferenceservice", name());
        all.put("component", part);
        return all;
    }

    /** The annotations of a workload, with the same precedence as labels. */
    public Map<String, String> annotations(Map<String, String> runtime, Map<String, String> component) {
        Map<String, String> all = new LinkedHashMap<>(runtime);
        putAll(all, service.metadata().annotations(), config.inferenceService().annotationDisallowedList());
        all.putAll(component);
        return all;
    }

    /** The annotations of a component or a runtime that its pods get. */
    public Map<String, String> propagated(Map<String, String> annotations) {
        Map<String, String> all = new LinkedHashMap<>();
        putAll(all, annotations, config.inferenceService().annotationDisallowedList());
        return all;
    }

    private static void putAll(Map<String, String> all, Map<String, String> more, List<String> disallowed) {
        more.forEach((key, value) -> {
            if (!NOT_PROPAGATED.contains(key) && !disallowed.contains(key)) {
                all.put(key, value);
            }
        });
    }
}
