// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodForms;
import io.nereid.control.kubernetes.pod.PodInjection;
import io.nereid.control.kubernetes.pod.PodMetadata;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Makes the Knative Services of a service's components as KServe's controller does. What KServe's pod webhook adds is not
 * in their templates: Knative takes neither init containers nor further containers with ports. The operator's webhook
 * adds it to the pods. Confined to one planning.
 *
 * <p>Fields: the specification of Knative's Serving API, {@code serving.knative.dev/v1}.
 */
final class KnativeServiceBuilder {
    static final String API_VERSION = "serving.knative.dev/v1";

    /** The label by which Knative gives a Service no public host; it refuses it of revisions. */
    static final String VISIBILITY = "networking.knative.dev/visibility";

    private static final String SCALING = "autoscaling.knative.dev/";
    private static final String INITIAL_SCALE = SCALING + "initial-scale";
    private static final String TAG_ROUTING = "serving.kserve.io/enable-tag-routing";

    /** Annotations that Knative reads from the Service, and not from its revisions. */
    private static final List<String> OF_SERVICES =
            List.of("serving.knative.dev/rollout-duration", "serving.knative.openshift.io/enablePassthrough");

    private final PlanningContext context;
    private final PodInjection injection;
    private final Owner owner;
    private final String predictor;

    /** @param predictor the name of the predictor, which the other components call */
    KnativeServiceBuilder(
            PlanningContext context, ClusterSettings settings, ObservedCluster cluster, String predictor) {
        this.context = context;
        this.injection = new PodInjection(context.service, settings, cluster, context.catalog.storageContainers());
        this.owner = Owner.of(context.service);
        this.predictor = predictor;
    }

    /**
     * The Knative Service of a component.
     *
     * @param spec the predictor's specification; null for another component
     * @param rolledOut the last revision that got all requests, which a canary shares them with; empty for none
     * @throws ServingException INVALID_ARGUMENT for a component that Knative cannot run
     */
    ObjectNode service(ComponentPlan plan, @Nullable PredictorSpec spec, String rolledOut) {
        if (plan.workers() != null) {
            throw ServingException.invalidArgument(plan.where()
                    + ".workerSpec: a model on several nodes cannot be a Knative Service; set the annotation"
                    + " serving.kserve.io/deploymentMode to Standard");
        }
        ComponentExtensionSpec scaling = plan.extension();
        Map<String, String> annotations = PodMetadata.annotations(plan, spec, context);
        scaling(scaling, annotations, plan);
        Map<String, String> own = new LinkedHashMap<>();
        for (String name : OF_SERVICES) {
            String value = annotations.remove(name);
            if (value != null) {
                own.put(name, value);
            }
        }
        Map<String, String> labels = PodMetadata.ofRevisions(plan, context);
        Map<String, String> all = new LinkedHashMap<>(labels);
        context.service.metadata().labels().forEach(all::putIfAbsent);
        labels.remove(VISIBILITY);
        ObjectNode pod = PodForms.ofRevision(plan, context, predictor);
        injection.storageUris(
                pod,
                PodForms.storageUris(plan, context),
                plan.tree().path("storageContainerName").asText(""),
                annotations);
        for (JsonNode container : pod.path("containers")) {
            if (container.path("command").path(0).asText().equals("nereid")) {
                onePort((ObjectNode) container);
            }
        }
        ObjectNode service = owner.object(API_VERSION, "Service", plan.name(), all, own);
        ObjectNode template = service.putObject("spec").putObject("template");
        ObjectNode metadata = template.putObject("metadata");
        Trees.map(metadata, "labels", labels);
        Trees.map(metadata, "annotations", annotations);
        if (scaling.containerConcurrency() != null) {
            pod.put("containerConcurrency", scaling.containerConcurrency());
        }
        if (scaling.timeout() != null) {
            pod.put("timeoutSeconds", scaling.timeout());
            pod.put("responseStartTimeoutSeconds", scaling.timeout());
        }
        template.set("spec", pod);
        traffic((ObjectNode) service.get("spec"), scaling, "true".equals(annotations.get(TAG_ROUTING)), rolledOut);
        return service;
    }

    private void scaling(ComponentExtensionSpec spec, Map<String, String> annotations, ComponentPlan plan) {
        annotations.putIfAbsent(SCALING + "class", "kpa.autoscaling.knative.dev");
        if (spec.scaleTarget() != null) {
            annotations.put(SCALING + "target", spec.scaleTarget().toString());
        }
        if (spec.scaleMetric() != null) {
            annotations.put(SCALING + "metric", spec.scaleMetric());
        }
        annotations.put(
                SCALING + "min-scale",
                spec.minReplicas() == null ? "1" : spec.minReplicas().toString());
        if (spec.maxReplicas() != 0) {
            annotations.put(SCALING + "max-scale", Integer.toString(spec.maxReplicas()));
        }
        String initial = annotations.get(INITIAL_SCALE);
        if (initial != null && !initial.matches("[0-9]{1,9}")) {
            annotations.remove(INITIAL_SCALE);
            context.advice.add("the annotation " + INITIAL_SCALE + " of " + plan.name() + " is '" + initial
                    + "' and has no effect, as in KServe; write a number of pods");
        }
    }

    private static void traffic(ObjectNode spec, ComponentExtensionSpec scaling, boolean tagged, String rolledOut) {
        Long canary = scaling.canaryTrafficPercent();
        boolean split = canary != null && !rolledOut.isEmpty();
        ObjectNode latest = Trees.list(spec, "traffic").addObject();
        latest.put("latestRevision", true).put("percent", split && canary != null ? canary : 100L);
        if (tagged) {
            latest.put("tag", "latest");
        }
        if (split && canary != null && canary < 100) {
            Trees.list(spec, "traffic")
                    .addObject()
                    .put("latestRevision", false)
                    .put("percent", 100 - canary)
                    .put("revisionName", rolledOut)
                    .put("tag", "prev");
        }
    }

    /** Knative takes one port of a pod. A server of Nereid has all protocols on its first one. */
    private static void onePort(ObjectNode container) {
        int port = container.path("ports").path(0).path("containerPort").asInt(8080);
        container.putArray("ports").addObject().put("containerPort", port).put("protocol", "TCP");
        for (String name : List.of("startupProbe", "readinessProbe", "livenessProbe")) {
            if (container.path(name).path("httpGet") instanceof ObjectNode get) {
                get.put("port", port);
            }
        }
    }
}
