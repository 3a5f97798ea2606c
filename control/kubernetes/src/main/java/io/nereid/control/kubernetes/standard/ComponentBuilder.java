// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.ComponentPlan.Workers;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pod.EngineContainer;
import io.nereid.control.kubernetes.pod.PodForms;
import io.nereid.control.kubernetes.pod.PodInjection;
import io.nereid.control.kubernetes.pod.PodMetadata;
import io.nereid.control.kubernetes.pod.PodNames;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Makes the objects of a service's components. Confined to one planning. */
final class ComponentBuilder {
    private final PlanningContext context;
    private final ClusterSettings settings;
    private final ObservedCluster cluster;
    private final PodInjection injection;
    private final Owner owner;
    private final String predictor;

    ComponentBuilder(PlanningContext context, ClusterSettings settings, ObservedCluster cluster, String predictor) {
        this.context = context;
        this.settings = settings;
        this.cluster = cluster;
        this.injection = new PodInjection(context.service, settings, cluster, context.catalog.storageContainers());
        this.owner = Owner.of(context.service);
        this.predictor = predictor;
    }

    /**
     * The objects of a component.
     *
     * @param spec the predictor's specification; null for another component
     * @param extension the fields to scale by, which for a stable predictor beside canaries are not the written ones
     */
    PlannedComponent of(ComponentPlan plan, @Nullable PredictorSpec spec, ComponentExtensionSpec extension) {
        if (plan.problem() != null) {
            return new PlannedComponent(plan, List.of(), List.of(), List.of(plan.name()), plan.problem());
        }
        try {
            return planned(plan, spec, extension);
        } catch (ServingException e) {
            Problem problem = new Problem("ReconcileFailed", e.getMessage());
            return new PlannedComponent(plan, List.of(), List.of(), List.of(plan.name()), problem);
        }
    }

    private PlannedComponent planned(
            ComponentPlan plan, @Nullable PredictorSpec spec, ComponentExtensionSpec extension) {
        Map<String, String> labels = PodMetadata.labels(plan, context);
        Map<String, String> annotations = PodMetadata.annotations(plan, spec, context);
        ObjectNode pod = PodForms.of(plan, context, predictor);
        Workers workers = plan.workers();
        String generation = Long.toString(context.service.metadata().generation());
        MultiNode nodes = null;
        ObjectNode workerPod = null;
        if (workers != null) {
            nodes = MultiNode.of(plan, workers, context);
            workerPod = workers.pod().tree().deepCopy();
            PodForms.workers(workerPod);
            nodes.apply(pod, workerPod, workers, context, annotations, predictor, generation);
            labels.put("isvc.generation", generation);
        }
        List<StorageUri> uris = PodForms.storageUris(plan, context);
        String container = plan.tree().path("storageContainerName").asText("");
        injection.storageUris(pod, uris, container, annotations);
        JsonNode metrics = plan.tree().path("autoScaling").path("metrics");
        ComponentExtensionSpec outside = EngineContainer.beside(plan, extension);
        ComponentObjects objects =
                new ComponentObjects(owner, settings, plan.name(), labels, annotations, outside, pod, metrics);
        List<ObjectNode> bare = new ArrayList<>();
        List<String> deployments = new ArrayList<>(List.of(plan.name()));
        bare.add(objects.service());
        if (workers != null && workerPod != null && nodes != null) {
            injection.storageUris(workerPod, uris, container, annotations);
            ComponentObjects beside = workers(plan, workers, annotations, workerPod, extension, metrics, generation);
            bare.add(objects.node(MultiNode.headService(plan.name(), generation), "head", null, generation));
            bare.add(objects.node(
                    MultiNode.workerService(plan.name(), generation),
                    "worker",
                    beside.labels().get("app"),
                    generation));
            bare.add(objects.deployment());
            bare.add(beside.workers(nodes.nodes() - 1));
            deployments.add(beside.name());
        } else {
            bare.add(objects.deployment());
        }
        ObjectNode autoscaler = AutoscalerObjects.of(objects);
        if (autoscaler != null) {
            bare.add(autoscaler);
        }
        ObjectNode collector = MetricCollector.of(objects);
        if (collector != null) {
            bare.add(collector);
        }
        if (spec != null && PodMetadata.isMultiModel(plan, spec)) {
            bare.add(ModelConfigMap.of(owner, context.name(), cluster));
        }
        bare.replaceAll(this::kept);
        List<ObjectNode> whole = new ArrayList<>();
        for (ObjectNode object : bare) {
            ObjectNode applied = object.deepCopy();
            if (object.path("kind").asText().equals("Deployment")) {
                injection.into((ObjectNode) applied.at("/spec/template"));
            }
            whole.add(applied);
        }
        return new PlannedComponent(plan, List.copyOf(bare), List.copyOf(whole), List.copyOf(deployments), null);
    }

    private ComponentObjects workers(
            ComponentPlan plan,
            Workers workers,
            Map<String, String> annotations,
            ObjectNode pod,
            ComponentExtensionSpec extension,
            JsonNode metrics,
            String generation) {
        Map<String, String> labels = new LinkedHashMap<>(context.labels(
                workers.labels(), extension.labels(), plan.component().text()));
        labels.put("app", "isvc." + plan.name() + "-worker");
        labels.put("isvc.generation", generation);
        Map<String, String> own = new LinkedHashMap<>(annotations);
        own.keySet().removeAll(plan.runtimeAnnotations().keySet());
        workers.annotations().forEach(own::putIfAbsent);
        return new ComponentObjects(owner, settings, plan.name() + "-worker", labels, own, extension, pod, metrics);
    }

    /**
     * A Service that does what it shall keeps its labels and annotations, as in KServe: load balancers and service
     * meshes act upon a change of them.
     */
    private ObjectNode kept(ObjectNode object) {
        ObjectNode there =
                cluster.object("Service", object.path("metadata").path("name").asText());
        if (!object.path("kind").asText().equals("Service") || there == null) {
            return object;
        }
        return ObservedObjects.metadata(object, there, "ports", "selector");
    }

    static boolean isStopped(PlanningContext context) {
        return context.flag(PodNames.GROUP + "stop");
    }
}
