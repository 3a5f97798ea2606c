// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.admission.FieldsWithoutEffect;
import io.nereid.control.api.admission.InferenceServiceDefaulter;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.CaBundle;
import io.nereid.control.kubernetes.cluster.ChosenRuntime;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodMetadata;
import io.nereid.control.kubernetes.pod.PodNames;
import io.nereid.control.kubernetes.standard.ObservedObjects;
import io.nereid.control.kubernetes.standard.RunningDefaults;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Plans services of the Knative mode where Knative Serving runs them: a Knative Service for each component, the route of
 * the service, and the status that KServe's clients read, with KServe's names, labels and fields. A pure function, as
 * {@link io.nereid.control.kubernetes.standard.StandardPlanner}. Confined to one call.
 *
 * <pre>{@code
 * KnativePlan plan = KnativePlanner.plan(service, catalog, cluster, network, Instant.now());
 * plan.objects().forEach(api::apply);
 * }</pre>
 */
public final class KnativePlanner {
    /** What only the gateways of Nereid carry out. */
    private static final List<String> OF_THE_GATEWAY = List.of(
            "nereid.io/rollback-error-percent",
            "nereid.io/rollback-p99-ms",
            "nereid.io/rollback-min-requests",
            "nereid.io/mirror-percent",
            "nereid.io/sticky-header");

    private final PlanningContext context;
    private final ClusterSettings settings;
    private final ObservedCluster cluster;
    private final KnativeNetwork network;
    private final Instant now;

    private KnativePlanner(
            PlanningContext context,
            ClusterSettings settings,
            ObservedCluster cluster,
            KnativeNetwork network,
            Instant now) {
        this.context = context;
        this.settings = settings;
        this.cluster = cluster;
        this.network = network;
        this.now = now;
    }

    /**
     * Plans a service. Problems of the service are reported in the plan's status and not thrown; what ran before keeps
     * running.
     *
     * @param resource the service as stored; not modified
     * @param catalog runtimes, storage containers and settings
     * @param cluster what is there of the service
     * @param network what the cluster has for its routes
     * @param now the current time
     */
    public static KnativePlan plan(
            ObjectNode resource, RuntimeCatalog catalog, ObservedCluster cluster, KnativeNetwork network, Instant now) {
        String namespace = resource.path("metadata").path("namespace").asText("default");
        InferenceServiceConfig config = catalog.config().forNamespace(namespace);
        ObjectNode whole = resource.deepCopy();
        if (cluster.status().path("observedGeneration").asLong(-1)
                == whole.path("metadata").path("generation").asLong()) {
            RunningDefaults.keep(whole, cluster, Trees.KNATIVE_SERVICE);
        }
        new InferenceServiceDefaulter(config).apply(whole, null);
        mode(whole, resource);
        String name = ComponentPlanner.predictorName(
                whole.path("metadata").path("name").asText(),
                whole.at("/spec/predictor/name").asText(""));
        ChosenRuntime.keep(whole, catalog, cluster.status(), cluster.object(Trees.KNATIVE_SERVICE, name) != null);
        PlanningContext context = new PlanningContext(InferenceService.read(whole), catalog, cluster.status());
        return new KnativePlanner(context, ClusterSettings.of(config), cluster, network, now).plan();
    }

    /** Revisions carry the mode that is written: it must not follow a change of the default for services that run. */
    private static void mode(ObjectNode whole, ObjectNode written) {
        ObjectNode annotations = Trees.object(Trees.object(whole, "metadata"), "annotations");
        String mode = written.path("metadata")
                .path("annotations")
                .path(InferenceServiceDefaulter.MODE_ANNOTATION)
                .asText("");
        annotations.remove(InferenceServiceDefaulter.MODE_ANNOTATION);
        if (!mode.isEmpty()) {
            annotations.put(InferenceServiceDefaulter.MODE_ANNOTATION, mode);
        }
    }

    private KnativePlan plan() {
        ComponentPlanner planner = new ComponentPlanner(context);
        PredictorSpec spec = context.service.predictor();
        ComponentPlan host = planner.predictor(spec, "spec.predictor");
        KnativeStatus status = new KnativeStatus(context, settings, cluster, network, now);
        if (context.flag(PodNames.GROUP + "stop")) {
            return status.stopped(host);
        }
        context.advice.addAll(FieldsWithoutEffect.of(context.service, DeploymentMode.KNATIVE, context.config));
        for (String annotation : OF_THE_GATEWAY) {
            if (context.annotation(annotation) != null) {
                context.advice.add("the annotation " + annotation
                        + " has no effect where Knative Serving runs the service; its requests do not pass Nereid's"
                        + " gateway");
            }
        }
        KnativeServiceBuilder builder = new KnativeServiceBuilder(context, settings, cluster, host.name());
        List<PlannedRevisions> components = new ArrayList<>();
        components.add(planned(builder, host, spec));
        add(components, builder, planner.transformer());
        add(components, builder, planner.explainer());
        KnativeStatus.Result result = status.write(components);
        List<ObjectNode> objects = new ArrayList<>();
        ObjectNode bundle = CaBundle.of(settings, cluster.configMaps(), context.namespace());
        if (bundle != null) {
            objects.add(bundle);
        }
        components.forEach(one -> objects.addAll(one.objects()));
        objects.addAll(result.routes());
        return new KnativePlan(List.copyOf(objects), result.status(), result.events());
    }

    private void add(List<PlannedRevisions> all, KnativeServiceBuilder builder, @Nullable ComponentPlan plan) {
        if (plan != null) {
            all.add(planned(builder, plan, null));
        }
    }

    private PlannedRevisions planned(KnativeServiceBuilder builder, ComponentPlan plan, @Nullable PredictorSpec spec) {
        ObjectNode stored = cluster.object(Trees.KNATIVE_SERVICE, plan.name());
        if (plan.problem() != null) {
            return kept(plan, stored, plan.problem());
        }
        advise(plan);
        try {
            List<ObjectNode> objects = new ArrayList<>();
            if (spec != null && PodMetadata.isMultiModel(plan, spec)) {
                objects.add(ModelConfigMap.of(Owner.of(context.service), context.name(), cluster));
            }
            objects.add(builder.service(plan, spec, KnativeStatus.rolledOut(cluster.status(), plan, stored)));
            return new PlannedRevisions(plan, List.copyOf(objects), stored, null);
        } catch (ServingException e) {
            return kept(plan, stored, new Problem("ReconcileFailed", e.getMessage()));
        }
    }

    /** The objects of a component that are there, which stay while its specification cannot run. */
    private PlannedRevisions kept(ComponentPlan plan, @Nullable ObjectNode stored, Problem problem) {
        List<ObjectNode> objects = new ArrayList<>();
        if (stored != null) {
            objects.add(stored);
        }
        ObjectNode models = cluster.object("ConfigMap", ModelConfigMap.name(context.name()));
        if (plan.component() == Component.PREDICTOR && models != null) {
            objects.add(ObservedObjects.applicable(models));
        }
        return new PlannedRevisions(plan, List.copyOf(objects), stored, problem);
    }

    private void advise(ComponentPlan plan) {
        ComponentExtensionSpec spec = plan.extension();
        if (spec.autoScaling() != null) {
            context.advice.add(plan.where() + ".autoScaling has no effect in the deployment mode Knative, as in KServe;"
                    + " write scaleMetric and scaleTarget");
        }
        if (spec.scaleMetricType() != null) {
            context.advice.add(
                    plan.where() + ".scaleMetricType has no effect in the deployment mode Knative, as in" + " KServe");
        }
    }
}
