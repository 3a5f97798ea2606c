// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.admission.FieldsWithoutEffect;
import io.nereid.control.api.admission.InferenceServiceDefaulter;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.CaBundle;
import io.nereid.control.kubernetes.cluster.ChosenRuntime;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Plans services in KServe's Standard mode: Deployments, Services, autoscalers and routes with KServe's names, labels and
 * fields, and the status that KServe's clients read. A pure function: the same input gives the same plan, and planning
 * again after a plan was carried out gives an equal one. Defaults are applied while planning and never written into the
 * service. Confined to one call.
 *
 * <pre>{@code
 * StandardPlan plan = StandardPlanner.plan(service, catalog, cluster, Instant.now());
 * plan.objects().forEach(api::apply);
 * }</pre>
 */
public final class StandardPlanner {
    private final PlanningContext context;
    private final ClusterSettings settings;
    private final ObservedCluster cluster;
    private final Instant now;

    private StandardPlanner(PlanningContext context, ClusterSettings settings, ObservedCluster cluster, Instant now) {
        this.context = context;
        this.settings = settings;
        this.cluster = cluster;
        this.now = now;
    }

    /**
     * Plans a service. Problems of the service are reported in the plan's status and not thrown; what ran before keeps
     * running.
     *
     * @param resource the service as stored; not modified
     * @param catalog runtimes, storage containers and settings
     * @param cluster what is there of the service
     * @param now the current time
     */
    public static StandardPlan plan(ObjectNode resource, RuntimeCatalog catalog, ObservedCluster cluster, Instant now) {
        String namespace = resource.path("metadata").path("namespace").asText("default");
        InferenceServiceConfig config = catalog.config().forNamespace(namespace);
        ObjectNode whole = resource.deepCopy();
        if (cluster.status().path("observedGeneration").asLong(-1) == generation(whole)) {
            RunningDefaults.keep(whole, cluster, "Deployment");
        }
        new InferenceServiceDefaulter(config).apply(whole, null);
        // Pods and routes carry the mode: it must not follow a change of the default for services that run.
        Trees.object(Trees.object(whole, "metadata"), "annotations")
                .put(InferenceServiceDefaulter.MODE_ANNOTATION, "Standard");
        String name = ComponentPlanner.predictorName(
                whole.path("metadata").path("name").asText(),
                whole.at("/spec/predictor/name").asText(""));
        ChosenRuntime.keep(whole, catalog, cluster.status(), cluster.object("Deployment", name) != null);
        PlanningContext context = new PlanningContext(InferenceService.read(whole), catalog, cluster.status());
        return new StandardPlanner(context, ClusterSettings.of(config), cluster, now).plan();
    }

    private static long generation(ObjectNode service) {
        return service.path("metadata").path("generation").asLong();
    }

    private StandardPlan plan() {
        if (ComponentBuilder.isStopped(context)) {
            StandardStatus status = new StandardStatus(context, settings, cluster, now);
            return status.stopped(stoppedRuntime());
        }
        context.advice.addAll(FieldsWithoutEffect.of(context.service, DeploymentMode.STANDARD, context.config));
        ComponentPlanner planner = new ComponentPlanner(context);
        PredictorSpec spec = context.service.predictor();
        ComponentPlan host = planner.predictor(spec, "spec.predictor");
        ComponentBuilder builder = new ComponentBuilder(context, settings, cluster, host.name());
        List<PlannedComponent> components = new ArrayList<>();
        components.add(builder.of(host, spec, stable(spec.extension())));
        List<PlannedComponent> canaries = new ArrayList<>();
        Map<String, Integer> percentages = new LinkedHashMap<>();
        for (CanarySpec canary : context.service.canary()) {
            PredictorSpec own = ComponentPlanner.canary(spec, canary);
            String name = own.name() == null ? "" : own.name();
            ComponentPlan plan = planner.predictor(own, "spec.canary[" + name + "].predictor");
            canaries.add(builder.of(plan, own, scaled(own.extension(), replicas(canary), 0)));
            percentages.put(plan.name(), canary.trafficPercent());
        }
        add(components, builder, planner.transformer());
        add(components, builder, planner.explainer());
        StandardStatus status = new StandardStatus(context, settings, cluster, now);
        StandardStatus.Result result = status.write(components, canaries, percentages);
        List<ObjectNode> bare = new ArrayList<>();
        List<ObjectNode> whole = new ArrayList<>();
        List<PlannedComponent> all = new ArrayList<>(components);
        all.addAll(canaries);
        for (PlannedComponent one : all) {
            if (one.problem() == null) {
                bare.addAll(one.bare());
                whole.addAll(one.whole());
            } else {
                List<ObjectNode> running = running(one);
                bare.addAll(running);
                whole.addAll(running);
            }
        }
        ObjectNode bundle = CaBundle.of(settings, cluster.configMaps(), context.namespace());
        if (bundle != null) {
            bare.add(bundle);
            whole.add(bundle);
        }
        bare.addAll(result.routes());
        whole.addAll(result.routes());
        for (List<ObjectNode> list : List.of(bare, whole)) {
            list.sort(Comparator.comparingInt(one -> MetricCollector.isOne(one) ? 1 : 0));
        }
        return new StandardPlan(List.copyOf(whole), List.copyOf(bare), result.status(), result.events());
    }

    private static void add(List<PlannedComponent> all, ComponentBuilder builder, @Nullable ComponentPlan plan) {
        if (plan != null) {
            all.add(builder.of(plan, null, plan.extension()));
        }
    }

    /** What a stopped service's runtime would be, for its status; null for custom containers or when none fits. */
    private @Nullable ComponentPlan stoppedRuntime() {
        return new ComponentPlanner(context).predictor(context.service.predictor(), "spec.predictor");
    }

    /** The stable predictor gives its canaries some of its replicas. */
    private ComponentExtensionSpec stable(ComponentExtensionSpec extension) {
        if (context.service.canary().isEmpty() || extension.minReplicas() == null) {
            return extension;
        }
        int others = 0;
        for (CanarySpec canary : context.service.canary()) {
            others += replicas(canary);
        }
        return scaled(extension, Math.max(1, extension.minReplicas() - others), extension.maxReplicas());
    }

    private int replicas(CanarySpec canary) {
        Integer own = canary.predictor().extension().minReplicas();
        if (own != null) {
            return own;
        }
        Integer stable = context.service.predictor().extension().minReplicas();
        return (int) Math.ceil((stable == null ? 1 : stable) * canary.trafficPercent() / 100.0);
    }

    private static ComponentExtensionSpec scaled(ComponentExtensionSpec spec, int min, int max) {
        return new ComponentExtensionSpec(
                min,
                max,
                spec.scaleTarget(),
                spec.scaleMetric(),
                spec.scaleMetricType(),
                spec.autoScaling(),
                spec.containerConcurrency(),
                spec.timeout(),
                spec.canaryTrafficPercent(),
                spec.logger(),
                spec.batcher(),
                spec.labels(),
                spec.annotations(),
                spec.deploymentStrategy());
    }

    /** The objects of a component that are there, which stay while its specification cannot run. */
    private List<ObjectNode> running(PlannedComponent component) {
        String app = "isvc." + component.name();
        String models = Trees.key("ConfigMap", ModelConfigMap.name(context.name()));
        boolean predictor = component.plan().component() == Component.PREDICTOR;
        List<ObjectNode> all = new ArrayList<>();
        cluster.objects().forEach((key, object) -> {
            String own = object.at("/metadata/labels/app").asText();
            if (own.equals(app) || own.equals(app + "-worker") || predictor && key.equals(models)) {
                all.add(ObservedObjects.applicable(object));
            }
        });
        return all;
    }
}
