// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.api.admission.FieldsWithoutEffect;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.core.Workload;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.component.ScalingPlanner;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.component.WorkloadPlan;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.EngineContainer;
import io.nereid.control.kubernetes.pod.PodForms;
import io.nereid.control.kubernetes.pod.PodInjection;
import io.nereid.control.kubernetes.pod.PodMetadata;
import io.nereid.control.kubernetes.pod.PodNames;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The forms of workloads on a cluster: pods, as in the Standard mode, but for each revision. What is added to pods, such
 * as the storage initialiser with its credentials, does not make another revision when it changes. Confined to one call
 * of the planner.
 */
final class PodWorkloads implements WorkloadForms {
    private static final String INTERNAL = "internal.serving.kserve.io/";
    private static final Duration LONGEST = Duration.ofDays(1);

    private final PlanningContext context;
    private final PodInjection injection;

    PodWorkloads(PlanningContext context, ObservedCluster cluster) {
        this.context = context;
        this.injection = new PodInjection(
                context.service, ClusterSettings.of(context.config), cluster, context.catalog.storageContainers());
        context.advice.addAll(FieldsWithoutEffect.of(context.service, DeploymentMode.KNATIVE, context.config));
    }

    @Override
    public Site site() {
        return Site.CLUSTER;
    }

    @Override
    public WorkloadPlan predictor(ComponentPlan plan, PredictorSpec spec) {
        return planned(plan, spec);
    }

    @Override
    public @Nullable WorkloadPlan transformer(
            @Nullable ComponentPlan plan, ComponentPlan host, WorkloadPlan predictor) {
        return plan == null ? null : planned(plan, null);
    }

    @Override
    public @Nullable WorkloadPlan explainer(@Nullable ComponentPlan plan) {
        return plan == null ? null : planned(plan, null);
    }

    private WorkloadPlan planned(ComponentPlan plan, @Nullable PredictorSpec spec) {
        if (plan.problem() != null) {
            return refused(plan, plan.problem());
        }
        try {
            return pod(plan, spec);
        } catch (ServingException e) {
            String component = plan.component().text();
            String title = component.substring(0, 1).toUpperCase(Locale.ROOT) + component.substring(1);
            return refused(plan, new Problem("Invalid" + title + "Spec", e.getMessage()));
        }
    }

    private static WorkloadPlan refused(ComponentPlan plan, Problem problem) {
        return new WorkloadPlan(plan.component(), plan.name(), null, problem, plan.extension(), plan.selection());
    }

    private WorkloadPlan pod(ComponentPlan plan, @Nullable PredictorSpec spec) {
        if (plan.workers() != null) {
            throw ServingException.invalidArgument(
                    plan.where() + ".workerSpec: a model on several nodes does not run in the Knative mode; set the"
                            + " annotation serving.kserve.io/deploymentMode: Standard");
        }
        if (spec != null && PodMetadata.isMultiModel(plan, spec) && !EngineContainer.serves(plan)) {
            throw ServingException.invalidArgument(plan.where()
                    + ": a server without a model, which gets models later, runs in the Knative mode with Nereid's engine"
                    + " only; give it a storageUri, choose the engine by the annotation nereid.io/serving-engine: nereid,"
                    + " or set the annotation serving.kserve.io/deploymentMode: Standard");
        }
        Map<String, String> labels = PodMetadata.labels(plan, context);
        labels.remove("app"); // the revision's
        Map<String, String> annotations = PodMetadata.annotations(plan, spec, context);
        ObjectNode bare = PodForms.of(plan, context, context.name() + "-predictor");
        List<StorageUri> uris = PodForms.storageUris(plan, context);
        ObjectNode template = Trees.object();
        Trees.map(Trees.object(template, "metadata"), "labels", labels);
        Trees.map(Trees.object(template, "metadata"), "annotations", annotations);
        ObjectNode pod = bare.deepCopy();
        template.set("spec", pod);
        injection.storageUris(
                pod, uris, plan.tree().path("storageContainerName").asText(""), annotations);
        injection.into(template);
        Long concurrency = plan.extension().containerConcurrency();
        Workload workload = new Workload(
                context.namespace(),
                context.name(),
                plan.component(),
                "",
                context.name(),
                form(plan, pod),
                ScalingPlanner.of(context, plan.extension(), plan.where(), site()),
                concurrency == null ? 0 : (int) Math.min(Integer.MAX_VALUE, concurrency),
                timeout(plan.extension().timeout()),
                null,
                null,
                Trees.map(template.path("metadata").path("labels")),
                Trees.map(template.path("metadata").path("annotations")));
        return new WorkloadPlan(
                plan.component(),
                plan.name(),
                workload,
                null,
                plan.extension(),
                plan.selection(),
                identity(plan, bare, annotations));
    }

    private static Duration timeout(@Nullable Long seconds) {
        if (seconds == null || seconds <= 0) {
            return Duration.ofMinutes(5);
        }
        Duration timeout = Duration.ofSeconds(Math.min(seconds, LONGEST.toSeconds()));
        return timeout;
    }

    /** What of the pod is of the specification and not of the settings, secrets and service accounts of the cluster. */
    private static JsonNode identity(ComponentPlan plan, ObjectNode bare, Map<String, String> annotations) {
        ObjectNode identity = Trees.object();
        identity.set("spec", bare);
        ObjectNode internal = identity.putObject("annotations");
        annotations.forEach((key, value) -> {
            if (key.startsWith(INTERNAL)) {
                internal.put(key, value);
            }
        });
        JsonNode uris = plan.tree().path("storageUris");
        if (!uris.isEmpty()) {
            identity.set("storageUris", uris);
        }
        return identity;
    }

    private static Workload.Pod form(ComponentPlan plan, ObjectNode pod) {
        ObjectNode transformer = Trees.named(pod.path("containers"), PodNames.TRANSFORMER);
        ObjectNode main = Trees.named(pod.path("containers"), PodNames.MAIN);
        JsonNode first = main == null ? pod.path("containers").path(0) : main;
        JsonNode ports = (transformer == null ? first : transformer).path("ports");
        int http = ports.isEmpty() ? 8080 : 0;
        int grpc = 0;
        for (JsonNode port : ports) {
            String name = port.path("name").asText("");
            int number = port.path("containerPort").asInt();
            if (name.contains("grpc") || name.contains("h2c")) {
                grpc = grpc == 0 ? number : grpc;
            } else {
                http = http == 0 ? number : http;
            }
        }
        ComponentExtensionSpec beside = EngineContainer.beside(plan, plan.extension());
        if (http != 0 && (beside.logger() != null || beside.batcher() != null)) {
            http = PodNames.AGENT_PORT;
        }
        return new Workload.Pod(pod, http, grpc);
    }
}
