// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.standard.LivingConditions;
import io.nereid.control.kubernetes.standard.ModelStatus;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Writes the status of a service from those of its Knative Services, and decides its routes, since a route is made once
 * what it leads to is ready. A pure function of the service and of what is observed. Confined to one planning.
 */
final class KnativeStatus {
    private static final int ROUNDS = 5;
    private static final String WITHOUT_EFFECT = "FieldsWithoutEffect";
    private static final String ROUTES = "RoutesReady";
    private static final String DEPLOYMENT = "LatestDeploymentReady";
    private static final String ROLLED_OUT = "latestRolledoutRevision";
    private static final String BEFORE_ROLLED_OUT = "previousRolledoutRevision";

    private final PlanningContext context;
    private final ClusterSettings settings;
    private final ObservedCluster cluster;
    private final KnativeNetwork network;
    private final Instant now;
    private final JsonNode before;

    KnativeStatus(
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
        this.before = cluster.status();
    }

    /** The status, the routes, and the events of what changed. */
    record Result(ObjectNode status, List<ObjectNode> routes, List<Plan.Event> events) {}

    /** The last revision of a component that got all requests; empty for none. */
    static String rolledOut(JsonNode status, ComponentPlan plan, @Nullable ObjectNode stored) {
        if (stored == null) {
            return "";
        }
        ObjectNode own = component(status, plan);
        revisions(own, stored.path("status"));
        return own.path(ROLLED_OUT).asText("");
    }

    private static ObjectNode component(JsonNode status, ComponentPlan plan) {
        JsonNode there = status.path("components").path(plan.component().text());
        return there instanceof ObjectNode tree ? tree.deepCopy() : Trees.object();
    }

    /** The status of a service that is stopped; everything else of it goes. */
    KnativePlan stopped(ComponentPlan predictor) {
        ObjectNode status = Trees.object();
        Set<String> kept =
                Set.of(LivingConditions.READY, LivingConditions.PREDICTOR, LivingConditions.INGRESS, "Stopped");
        ObjectNode last = Trees.object();
        for (JsonNode one : before.path("conditions")) {
            if (kept.contains(one.path("type").asText())) {
                Trees.list(last, "conditions").add(one.deepCopy());
            }
        }
        LivingConditions conditions = new LivingConditions(last, now);
        conditions.set(LivingConditions.PREDICTOR, LivingConditions.FALSE, "Stopped", null);
        if (context.service.transformer() != null) {
            conditions.set("TransformerReady", LivingConditions.FALSE, "Stopped", null);
        }
        if (context.service.explainer() != null) {
            conditions.set("ExplainerReady", LivingConditions.FALSE, "Stopped", null);
        }
        conditions.set("Stopped", LivingConditions.TRUE, null, null);
        conditions.set(LivingConditions.INGRESS, LivingConditions.FALSE, "Stopped", null);
        status.set("conditions", conditions.tree());
        status.put("deploymentMode", "Knative");
        status.put("observedGeneration", context.service.metadata().generation());
        status.putObject("modelStatus").put("transitionStatus", "");
        runtime(status, predictor);
        return new KnativePlan(List.of(), status, events(status, List.of()));
    }

    /**
     * The status of a service that runs.
     *
     * @param components the predictor first
     */
    Result write(List<PlannedRevisions> components) {
        ObjectNode status = before instanceof ObjectNode there ? there.deepCopy() : Trees.object();
        List<ObjectNode> routes = List.of();
        // The model's state follows from Ready, and Ready from the routes: once more until nothing changes.
        for (int round = 0; round < ROUNDS; round++) {
            ObjectNode last = status.deepCopy();
            routes = round(status, components);
            if (status.equals(last)) {
                break;
            }
        }
        List<Problem> problems = new ArrayList<>();
        for (PlannedRevisions one : components) {
            if (one.problem() != null) {
                problems.add(one.problem());
            }
        }
        return new Result(status, routes, events(status, problems));
    }

    private List<ObjectNode> round(ObjectNode status, List<PlannedRevisions> components) {
        LivingConditions conditions = new LivingConditions(status, now);
        conditions.initialize();
        status.put("deploymentMode", "Knative");
        if (components.stream().allMatch(KnativeStatus::isObserved)) {
            status.put("observedGeneration", context.service.metadata().generation());
        }
        runtime(status, components.get(0).plan());
        for (Component component : Component.values()) {
            PlannedRevisions planned = components.stream()
                    .filter(one -> one.component() == component)
                    .findFirst()
                    .orElse(null);
            if (planned == null) {
                String title = component == Component.TRANSFORMER ? "Transformer" : "Explainer";
                for (String end : List.of("Ready", "RouteReady", "RoutesReady", "ConfigurationReady")) {
                    conditions.remove(title + end);
                }
                Trees.object(status, "components").remove(component.text());
            } else {
                component(status, conditions, planned);
            }
        }
        model(status, conditions, components.get(0));
        conditions.set("Stopped", LivingConditions.FALSE, null, null);
        if (context.advice.isEmpty()) {
            conditions.remove(WITHOUT_EFFECT);
        } else {
            conditions.set(WITHOUT_EFFECT, LivingConditions.TRUE, "KnativeMode", String.join("; ", context.advice));
        }
        all(conditions, ROUTES, components, PlannedRevisions::route);
        all(conditions, DEPLOYMENT, components, PlannedRevisions::configuration);
        List<ObjectNode> routes = routes(status, conditions, components);
        status.set("conditions", conditions.tree());
        return routes;
    }

    /** Whether the status of a Knative Service is that of what the service says now. */
    private static boolean isObserved(PlannedRevisions planned) {
        ObjectNode stored = planned.stored();
        if (planned.problem() != null || stored == null) {
            // What is missing is unknown, and not ready.
            return true;
        }
        ObjectNode desired = planned.objects().get(planned.objects().size() - 1);
        return stored.path("status").path("observedGeneration").asLong()
                        >= stored.path("metadata").path("generation").asLong()
                && ApplyDifference.changed(desired, stored) == null;
    }

    private void component(ObjectNode status, LivingConditions conditions, PlannedRevisions planned) {
        ObjectNode own = component(status, planned.plan());
        Trees.object(status, "components").set(planned.component().text(), own);
        ObjectNode stored = planned.stored();
        Problem problem = planned.problem();
        if (stored == null) {
            own.removeAll();
            if (problem != null) {
                conditions.set(planned.ready(), LivingConditions.FALSE, problem.reason(), problem.message());
            } else {
                // Those of Knative Services that are gone.
                conditions.remove(planned.route());
                conditions.remove(planned.configuration());
                if (planned.component() == Component.PREDICTOR) {
                    conditions.set(planned.ready(), LivingConditions.UNKNOWN, null, null);
                } else {
                    conditions.remove(planned.ready());
                }
            }
            return;
        }
        JsonNode theirs = stored.path("status");
        revisions(own, theirs);
        if (Trees.isTrue(stored, "Ready")) {
            if (theirs.path("address").isObject()) {
                own.set("address", theirs.path("address").deepCopy());
            }
            if (!theirs.path("url").asText("").isEmpty()) {
                own.put("url", theirs.path("url").asText());
            }
        }
        if (theirs.path("traffic").isArray()) {
            own.set("traffic", theirs.path("traffic").deepCopy());
        } else {
            own.remove("traffic");
        }
        propagate(conditions, planned.ready(), theirs, "Ready");
        propagate(conditions, planned.route(), theirs, ROUTES);
        propagate(conditions, planned.configuration(), theirs, "ConfigurationsReady");
        if (problem != null) {
            conditions.set(planned.ready(), LivingConditions.FALSE, problem.reason(), problem.message());
        }
    }

    private static void propagate(LivingConditions conditions, String type, JsonNode theirs, String of) {
        ObjectNode one = Trees.find(theirs.path("conditions"), "type", of);
        if (one != null) {
            conditions.set(
                    type,
                    one.path("status").asText(),
                    one.path("reason").asText(null),
                    one.path("message").asText(null));
        }
    }

    /** The revisions of a component, by those of its Knative Service. */
    private static void revisions(ObjectNode own, JsonNode theirs) {
        String ready = theirs.path("latestReadyRevisionName").asText("");
        String created = theirs.path("latestCreatedRevisionName").asText("");
        text(own, "latestCreatedRevision", created);
        int whole = 0;
        for (JsonNode target : theirs.path("traffic")) {
            if (target.path("revisionName").asText().equals(ready)) {
                whole += target.path("percent").asInt();
            }
        }
        for (JsonNode target : theirs.path("traffic")) {
            if (ready.isEmpty()
                    || !target.path("revisionName").asText().equals(ready)
                    || !target.path("latestRevision").asBoolean()
                    || !target.has("percent")) {
                continue;
            }
            String rolledOut = own.path(ROLLED_OUT).asText("");
            String last = own.path(BEFORE_ROLLED_OUT).asText("");
            int percent = target.path("percent").asInt();
            if (!rolledOut.equals(ready)) {
                if (percent == 100) {
                    text(own, BEFORE_ROLLED_OUT, rolledOut);
                    text(own, ROLLED_OUT, ready);
                }
            } else if (ready.equals(created) && percent < 100 && whole == 100 && !last.isEmpty()) {
                // It had all requests and was taken back: both targets are the same revision, so the one before counts.
                text(own, ROLLED_OUT, last);
            }
        }
        text(own, "latestReadyRevision", ready);
    }

    private static void text(ObjectNode tree, String field, String value) {
        if (value.isEmpty()) {
            tree.remove(field);
        } else {
            tree.put(field, value);
        }
    }

    private void model(ObjectNode status, LivingConditions conditions, PlannedRevisions predictor) {
        ModelStatus model = new ModelStatus(status);
        Problem problem = predictor.problem();
        if (problem != null && predictor.plan().problem() != null) {
            model.invalid(problem.reason(), problem.message());
            return;
        }
        ObjectNode own = component(status, predictor.plan());
        String revision = own.path("latestCreatedRevision").asText("");
        List<ObjectNode> pods = cluster.pods().stream()
                .filter(one -> !revision.isEmpty()
                        && one.path("metadata")
                                .path("labels")
                                .path("serving.knative.dev/revision")
                                .asText()
                                .equals(revision))
                .toList();
        ObjectNode stored = predictor.stored();
        boolean failed = false;
        if (stored != null) {
            for (JsonNode condition : stored.path("status").path("conditions")) {
                failed |= condition.path("status").asText().equals(LivingConditions.FALSE);
            }
        }
        boolean current = revision.equals(own.path("latestReadyRevision").asText(""));
        model.pods(pods, current && conditions.isTrue(LivingConditions.READY), failed);
    }

    private static void all(
            LivingConditions conditions,
            String type,
            List<PlannedRevisions> components,
            Function<PlannedRevisions, String> of) {
        String state = LivingConditions.TRUE;
        String reason = null;
        for (PlannedRevisions one : components) {
            String condition = of.apply(one);
            if (!conditions.isTrue(condition)) {
                state = conditions.status(condition).equals(LivingConditions.FALSE)
                        ? LivingConditions.FALSE
                        : LivingConditions.UNKNOWN;
                reason = condition + " not ready";
            }
        }
        conditions.set(type, state, reason, null);
    }

    // ---- routes ----

    private List<ObjectNode> routes(ObjectNode status, LivingConditions conditions, List<PlannedRevisions> components) {
        boolean hosts =
                !settings.section("ingress").path("disableIstioVirtualHost").asBoolean();
        KnativeRoutes routes = new KnativeRoutes(context, settings, cluster, network, components);
        List<ObjectNode> objects = new ArrayList<>();
        try {
            PlannedRevisions missing = routes.missing(conditions);
            if (missing != null) {
                boolean failed = conditions.status(missing.ready()).equals(LivingConditions.FALSE);
                conditions.set(
                        LivingConditions.INGRESS,
                        failed ? LivingConditions.FALSE : LivingConditions.UNKNOWN,
                        missing.title() + " ingress not created",
                        null);
            }
            if (hosts) {
                objects.add(routes.service());
                ObjectNode route = network.virtualServices() ? routes.virtualService(status, missing == null) : null;
                if (route != null) {
                    objects.add(route);
                }
            }
            String url = routes.url(status, hosts);
            if (url != null) {
                status.put("url", url);
                status.putObject("address").put("url", routes.address(hosts));
                conditions.set(LivingConditions.INGRESS, LivingConditions.TRUE, null, null);
            }
        } catch (ServingException e) {
            conditions.set(LivingConditions.INGRESS, LivingConditions.FALSE, "InvalidTemplate", e.getMessage());
        }
        return objects;
    }

    private static void runtime(ObjectNode status, ComponentPlan predictor) {
        RuntimeSelection selection = predictor.selection();
        if (selection == null) {
            status.remove(List.of("servingRuntimeName", "clusterServingRuntimeName"));
        } else if (selection.chosen() != null) {
            boolean wide = selection.chosen().cluster();
            status.put(
                    wide ? "clusterServingRuntimeName" : "servingRuntimeName",
                    selection.chosen().name());
            status.remove(wide ? "servingRuntimeName" : "clusterServingRuntimeName");
        }
    }

    // ---- events ----

    private List<Plan.Event> events(ObjectNode status, List<Problem> problems) {
        List<Plan.Event> events = new ArrayList<>();
        String was = new LivingConditions(before, now).status(LivingConditions.READY);
        LivingConditions conditions = new LivingConditions(status, now);
        String is = conditions.status(LivingConditions.READY);
        String service = "InferenceService [" + context.name() + "]";
        if (is.equals(LivingConditions.TRUE) && !was.equals(LivingConditions.TRUE)) {
            events.add(new Plan.Event("Normal", "InferenceServiceReady", service + " is Ready"));
        } else if (is.equals(LivingConditions.FALSE) && was.equals(LivingConditions.TRUE)) {
            events.add(new Plan.Event(
                    "Warning",
                    "InferenceServiceNotReady",
                    service + " is no longer Ready because of: " + String.join(", ", conditions.failed())));
        }
        boolean hosts =
                !settings.section("ingress").path("disableIstioVirtualHost").asBoolean();
        if (was.isEmpty() && hosts && !network.virtualServices()) {
            events.add(new Plan.Event(
                    "Warning",
                    "VirtualServiceCRDNotFound",
                    "the cluster has no VirtualService of networking.istio.io/v1beta1, so nothing leads to the host of"
                            + " the service; install Istio and restart the operator, or set"
                            + " ingress.disableIstioVirtualHost of inferenceservice-config to true"));
        }
        for (Problem problem : problems) {
            if (!isKnown(problem)) {
                events.add(new Plan.Event("Warning", "InternalError", problem.message()));
            }
        }
        return List.copyOf(events);
    }

    /** Whether the status before says so already. */
    private boolean isKnown(Problem problem) {
        boolean known =
                before.at("/modelStatus/lastFailureInfo/message").asText("").equals(problem.message());
        for (JsonNode condition : before.path("conditions")) {
            known |= condition.path("message").asText("").equals(problem.message());
        }
        return known;
    }
}
