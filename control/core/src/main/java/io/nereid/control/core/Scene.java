// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.api.ServiceConfig.DeploymentMode;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** One service being planned, and what there is to tell its owner. Confined to one call of the planner. */
final class Scene {
    /** Annotations that are not passed on to what runs, as KServe has them. */
    private static final Set<String> KEPT_BACK = Set.of(
            "autoscaling.knative.dev/minScale",
            "autoscaling.knative.dev/maxScale",
            "autoscaling.knative.dev/min-scale",
            "autoscaling.knative.dev/max-scale",
            "internal.serving.kserve.io/storage-initializer-sourceuri",
            "kubectl.kubernetes.io/last-applied-configuration",
            "modelFormat");

    final InferenceService service;
    final Catalog catalog;
    final ServiceConfig config;
    final DeploymentMode mode;
    /** Fields without an effect on one machine, and why, in sentences. */
    final Set<String> advice = new LinkedHashSet<>();

    Scene(InferenceService service, Catalog catalog, JsonNode status) {
        this.service = service;
        this.catalog = catalog;
        this.config = catalog.config().forNamespace(service.metadata().namespace());
        this.mode = mode(status);
    }

    String name() {
        return service.metadata().name();
    }

    String namespace() {
        return service.metadata().namespace();
    }

    boolean knative() {
        return mode == DeploymentMode.KNATIVE;
    }

    boolean flag(String annotation) {
        return "true".equals(annotation(annotation));
    }

    @Nullable String annotation(String key) {
        return service.metadata().annotation(key);
    }

    private DeploymentMode mode(JsonNode status) {
        DeploymentMode found = DeploymentMode.of(status.path("deploymentMode").asText());
        String annotation = annotation("serving.kserve.io/deploymentMode");
        if (found == null && annotation != null) {
            found = DeploymentMode.of(annotation);
        }
        return found == null ? config.deploy().defaultDeploymentMode() : found;
    }

    /** What templates may name. */
    Templates templates(Map<String, String> moreLabels) {
        ObjectMeta meta = service.metadata();
        Map<String, String> labels = new LinkedHashMap<>(meta.labels());
        moreLabels.forEach(labels::putIfAbsent);
        return new Templates(
                Map.of("Name", meta.name(), "Namespace", meta.namespace()),
                Map.of("Labels", labels, "Annotations", meta.annotations()));
    }

    /** The labels of a workload: of the runtime, over them the service's, over them the component's. */
    Map<String, String> labels(Map<String, String> runtime, Map<String, String> component, String part) {
        Map<String, String> all = new LinkedHashMap<>(runtime);
        putAll(all, service.metadata().labels(), config.inferenceService().labelDisallowedList());
        all.putAll(component);
        all.put("serving.kserve.io/inferenceservice", name());
        all.put("component", part);
        return all;
    }

    /** Likewise. */
    Map<String, String> annotations(Map<String, String> runtime, Map<String, String> component) {
        Map<String, String> all = new LinkedHashMap<>(runtime);
        putAll(all, service.metadata().annotations(), config.inferenceService().annotationDisallowedList());
        all.putAll(component);
        return all;
    }

    private static void putAll(Map<String, String> all, Map<String, String> more, List<String> disallowed) {
        more.forEach((key, value) -> {
            if (!KEPT_BACK.contains(key) && !disallowed.contains(key)) {
                all.put(key, value);
            }
        });
    }
}
