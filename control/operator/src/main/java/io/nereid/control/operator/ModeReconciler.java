// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.AccessAnnotation;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.plan.Planner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.CaBundle;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.pool.SharedForms;
import io.nereid.control.kubernetes.pool.SharedPlacement;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionObjects;
import io.nereid.control.kubernetes.revision.RevisionPlanner;
import io.nereid.control.operator.localmodel.LocalModels;
import io.nereid.control.operator.objects.ClusterReader;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ObjectApplier.Refusal;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import io.nereid.control.operator.revision.ClusterInfrastructure;
import io.nereid.control.operator.revision.ClusterRevisions;
import io.nereid.control.operator.upgrade.TemplateRollout;
import io.nereid.control.plane.PlanReconciler;
import io.nereid.control.plane.ServiceReconciler;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Carries out each service in its deployment mode: Standard by a {@link StandardReconciler}, Knative by revisions, or by a
 * {@link KnativeReconciler} where Knative Serving runs it. A
 * service that changes its mode loses the objects of the former one, for both modes delete what they do not plan. Graphs
 * have a route alone; the gateways run them. Thread-safe.
 */
final class ModeReconciler implements ServiceReconciler {
    /** A Deployment that starts changes about ten times in a few seconds, and so do its pods. */
    private static final Duration PACE = Duration.ofMillis(250);

    private static final String MODE = "serving.kserve.io/deploymentMode";

    private final StandardReconciler standard;
    private final KnativeReconciler serving;
    private final ClusterReader reader;
    private final ObjectApplier applier;
    private final PlanReconciler knative;
    private final ClusterInfrastructure infrastructure;
    private final ClusterRevisions revisions;
    private final ServiceObjects objects;
    private final TemplateRollout rollout;
    private final LocalModels models;
    private final StatusPacing statuses = new StatusPacing();

    ModeReconciler(
            StandardReconciler standard,
            KnativeReconciler serving,
            ClusterReader reader,
            ObjectApplier applier,
            ClusterInfrastructure infrastructure,
            ClusterRevisions revisions,
            ServiceObjects objects,
            TemplateRollout rollout,
            LocalModels models) {
        this.standard = standard;
        this.serving = serving;
        this.reader = reader;
        this.applier = applier;
        this.infrastructure = infrastructure;
        this.revisions = revisions;
        this.objects = objects;
        this.rollout = rollout;
        this.models = models;
        this.knative = new PlanReconciler(revisions, infrastructure, (service, catalog, observed, now) -> {
            ObservedCluster cluster = reader.observe(service);
            if (SharedPlacement.isShared(service)) {
                return RevisionPlanner.plan(
                        service,
                        catalog,
                        observed,
                        cluster,
                        now,
                        context -> new SharedForms(service, context, cluster));
            }
            Plan plan = RevisionPlanner.plan(service, catalog, observed, cluster, now);
            TemplateRollout.Planned planned = rollout.planned(service, plan.status(), catalog);
            Map<ObjectKey, ObjectNode> stored =
                    objects.of(service.path("metadata").path("uid").asText());
            ObservedState known = RevisionPlanner.withoutNew(
                    observed,
                    plan,
                    revision -> TemplateRollout.isOfAnotherForm(
                            stored.get(new ObjectKey("Deployment", RevisionObjects.deploymentName(revision))),
                            planned));
            return known == observed ? plan : RevisionPlanner.plan(service, catalog, known, cluster, now);
        });
    }

    @Override
    public void onChange(ChangeListener listener) {
        standard.onChange(listener);
        knative.onChange(listener);
        infrastructure.onGatewayChange(listener);
        rollout.onChange(listener);
        models.onChange(listener);
    }

    /** The mode of the annotation, else the one that the service runs in, else the default of its namespace. */
    private static @Nullable DeploymentMode mode(ObjectNode service, RuntimeCatalog catalog) {
        JsonNode metadata = service.path("metadata");
        String annotated = metadata.path("annotations").path(MODE).asText("");
        if (!annotated.isEmpty()) {
            return DeploymentMode.of(annotated);
        }
        if (SharedPlacement.isShared(service)) {
            return DeploymentMode.KNATIVE;
        }
        DeploymentMode before =
                DeploymentMode.of(service.path("status").path("deploymentMode").asText(""));
        return before != null
                ? before
                : catalog.config()
                        .forNamespace(metadata.path("namespace").asText())
                        .deploy()
                        .defaultDeploymentMode();
    }

    @Override
    public Outcome reconcile(ObjectNode stored, RuntimeCatalog catalog, Instant now) {
        ObjectNode service = models.annotated(stored);
        Outcome outcome = inItsMode(service, catalog, now);
        List<Plan.Event> upgrade = rollout.observe(service);
        if (upgrade.isEmpty()) {
            return outcome;
        }
        List<Plan.Event> events = new ArrayList<>(outcome.events());
        events.addAll(upgrade);
        return new Outcome(outcome.status(), events, outcome.requeueAfter());
    }

    private Outcome inItsMode(ObjectNode service, RuntimeCatalog catalog, Instant now) {
        DeploymentMode mode = mode(service, catalog);
        String namespace = service.path("metadata").path("namespace").asText();
        String name = service.path("metadata").path("name").asText();
        if (mode != DeploymentMode.STANDARD && mode != DeploymentMode.KNATIVE) {
            return new Outcome(
                    UnsupportedStatus.of(
                            service.path("status"),
                            "DeploymentModeNotSupported",
                            "this operator carries out the deployment modes Standard and Knative; set the annotation "
                                    + MODE + " to one of them",
                            now),
                    List.of(),
                    null);
        }
        if (mode == DeploymentMode.STANDARD && SharedPlacement.isShared(service)) {
            // What runs stays as it is.
            return new Outcome(
                    UnsupportedStatus.of(
                            service.path("status"),
                            "PlacementNotSupported",
                            "the annotation " + SharedPlacement.PLACEMENT + " has no effect in the deployment mode"
                                    + " Standard, whose requests do not pass the gateway; set the annotation " + MODE
                                    + " to Knative, or remove one of them",
                            now),
                    List.of(),
                    null);
        }
        if (mode == DeploymentMode.STANDARD && AccessAnnotation.isSet(ObjectMeta.read(service))) {
            // Its pods would be open to all: neither made nor changed.
            return new Outcome(
                    UnsupportedStatus.of(
                            service.path("status"),
                            "AuthenticationNotSupported",
                            "the annotation " + GatewayObjects.ENABLE_AUTH + " has no effect in the deployment mode"
                                    + " Standard, whose requests do not pass the gateway; set the annotation " + MODE
                                    + " to Knative, or remove " + GatewayObjects.ENABLE_AUTH,
                            now),
                    List.of(),
                    null);
        }
        ObjectNode current = inMode(service, mode);
        if (mode == DeploymentMode.STANDARD) {
            Outcome outcome = standard.reconcile(current, catalog, now);
            infrastructure.forget(namespace, name);
            revisions.delete(namespace, name);
            return outcome;
        }
        if (!SharedPlacement.isShared(service) && serving.isCarrier(service, catalog)) {
            Outcome outcome = serving.reconcile(current, catalog, now);
            infrastructure.forget(namespace, name);
            revisions.delete(namespace, name);
            return outcome;
        }
        ClusterSettings settings = ClusterSettings.of(catalog.config().forNamespace(namespace));
        ObjectNode bundle = CaBundle.of(settings, reader::settings, namespace);
        if (bundle != null) {
            applier.applyShared(bundle);
        }
        Outcome outcome = knative.reconcile(current, catalog, now);
        String uid = service.path("metadata").path("uid").asText();
        Refusal refusal = infrastructure.refusal(uid);
        if (refusal != null) {
            return StandardReconciler.refused(service, outcome.status(), refusal, now);
        }
        Duration wait = statuses.wait(uid, service.path("status"), outcome.status(), now);
        return wait.isZero() ? outcome : new Outcome((ObjectNode) service.path("status"), List.of(), wait);
    }

    /** The service without the status of another mode, whose conditions have other names. */
    private static ObjectNode inMode(ObjectNode service, DeploymentMode mode) {
        DeploymentMode before =
                DeploymentMode.of(service.path("status").path("deploymentMode").asText(""));
        if (before == null || before == mode) {
            return service;
        }
        ObjectNode changed = service.deepCopy();
        changed.set("status", JsonNodeFactory.instance.objectNode());
        return changed;
    }

    @Override
    public Outcome reconcileGraph(
            ObjectNode graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            Instant now) {
        JsonNode status =
                graph.path("status").isObject() ? graph.path("status") : JsonNodeFactory.instance.objectNode();
        ObservedState observed = new ObservedState(Map.of(), List.of(), status, infrastructure.gatewayProblem());
        Plan plan = Planner.planGraph(
                InferenceGraph.read(graph), services, catalog, observed, now, WorkloadForms.Site.CLUSTER);
        if (observed.gatewayProblem().isEmpty() || !hasRouter(graph)) {
            infrastructure.apply(graph, plan);
        }
        return new Outcome(plan.status(), plan.events(), plan.requeueAfter());
    }

    /** Whether a graph has pods of its own, which KServe's controller has made. They serve it until a gateway can. */
    private boolean hasRouter(ObjectNode graph) {
        return objects.of(graph.path("metadata").path("uid").asText()).keySet().stream()
                .anyMatch(one -> one.kind().equals("Deployment"));
    }

    /** What a service controls is removed by Kubernetes. */
    @Override
    public boolean remove(boolean graph, String namespace, String name) {
        return true;
    }

    @Override
    public void forget(boolean graph, String namespace, String name) {
        if (graph) {
            infrastructure.forgetGraph(namespace, name);
        } else {
            rollout.forget(namespace, name);
            infrastructure.forget(namespace, name);
        }
    }

    @Override
    public boolean needsFinalizer() {
        return false;
    }

    @Override
    public Set<ResourceStore.Type> retriedAfter() {
        return standard.retriedAfter();
    }

    @Override
    public Duration pace() {
        return PACE;
    }

    @Override
    public void retry(String namespace) {
        standard.retry(namespace);
    }
}
