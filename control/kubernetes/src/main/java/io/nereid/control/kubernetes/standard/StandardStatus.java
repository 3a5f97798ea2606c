// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.standard.DeploymentConditions.Readiness;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Writes the status of a service in Standard mode, and decides its routes, since a route is made once what it leads to
 * is ready. A pure function of the service and of what is observed. Confined to one planning.
 */
final class StandardStatus {
    private static final int ROUNDS = 5;
    private static final String WITHOUT_EFFECT = "FieldsWithoutEffect";

    private final PlanningContext context;
    private final ClusterSettings settings;
    private final ObservedCluster cluster;
    private final Instant now;
    private final JsonNode before;

    StandardStatus(PlanningContext context, ClusterSettings settings, ObservedCluster cluster, Instant now) {
        this.context = context;
        this.settings = settings;
        this.cluster = cluster;
        this.now = now;
        this.before = cluster.status();
    }

    /** The status, the routes, and the events of what changed. */
    record Result(ObjectNode status, List<ObjectNode> routes, List<Plan.Event> events) {}

    /** The status of a service that is stopped; everything else of it goes. */
    StandardPlan stopped(@Nullable ComponentPlan predictor) {
        ObjectNode status = Trees.object();
        LivingConditions conditions = new LivingConditions(before, now);
        boolean routed = !conditions.status(LivingConditions.INGRESS).isEmpty();
        conditions.set(LivingConditions.PREDICTOR, LivingConditions.FALSE, "Stopped", null);
        if (context.service.transformer() != null) {
            conditions.set("TransformerReady", LivingConditions.FALSE, "Stopped", null);
        } else {
            conditions.remove("TransformerReady");
        }
        if (context.service.explainer() != null) {
            conditions.set("ExplainerReady", LivingConditions.FALSE, "Stopped", null);
        } else {
            conditions.remove("ExplainerReady");
        }
        if (!context.service.canary().isEmpty()) {
            conditions.set("CanaryPredictorReady", LivingConditions.FALSE, "Stopped", null);
        } else {
            conditions.remove("CanaryPredictorReady");
        }
        conditions.remove(WITHOUT_EFFECT);
        conditions.set("Stopped", LivingConditions.TRUE, null, null);
        if (routed) {
            conditions.set(LivingConditions.INGRESS, LivingConditions.FALSE, "Stopped", null);
        }
        status.set("conditions", conditions.tree());
        status.put("deploymentMode", "Standard");
        status.put("observedGeneration", context.service.metadata().generation());
        status.putObject("modelStatus").put("transitionStatus", "");
        if (predictor != null) {
            runtime(status, predictor);
        }
        return new StandardPlan(List.of(), List.of(), status, events(status, List.of()));
    }

    /**
     * The status of a service that runs.
     *
     * @param components the predictor first
     * @param percentages the percentages of the canaries by their names
     */
    Result write(List<PlannedComponent> components, List<PlannedComponent> canaries, Map<String, Integer> percentages) {
        ObjectNode status = before instanceof ObjectNode there ? there.deepCopy() : Trees.object();
        List<ObjectNode> routes = List.of();
        // The model's state follows from Ready, and Ready from the routes: once more until nothing changes.
        for (int round = 0; round < ROUNDS; round++) {
            ObjectNode last = status.deepCopy();
            routes = round(status, components, canaries, percentages);
            if (status.equals(last)) {
                break;
            }
        }
        List<Problem> problems = new ArrayList<>();
        components.forEach(one -> {
            if (one.problem() != null) {
                problems.add(one.problem());
            }
        });
        return new Result(status, routes, events(status, problems));
    }

    private List<ObjectNode> round(
            ObjectNode status,
            List<PlannedComponent> components,
            List<PlannedComponent> canaries,
            Map<String, Integer> percentages) {
        LivingConditions conditions = new LivingConditions(status, now);
        conditions.initialize();
        status.put("deploymentMode", "Standard");
        status.put("observedGeneration", context.service.metadata().generation());
        runtime(status, components.get(0).plan());
        for (Component component : Component.values()) {
            PlannedComponent planned = components.stream()
                    .filter(one -> one.plan().component() == component)
                    .findFirst()
                    .orElse(null);
            if (planned == null) {
                conditions.remove(condition(component));
                Trees.object(status, "components").remove(component.text());
            } else {
                component(status, conditions, planned);
            }
            if (component == Component.PREDICTOR && planned != null) {
                canaries(status, conditions, canaries);
                ModelStatus model = new ModelStatus(status);
                if (planned.problem() != null && planned.plan().problem() != null) {
                    model.invalid(planned.problem().reason(), planned.problem().message());
                } else {
                    model.pods(pods(planned), conditions.isTrue(LivingConditions.READY));
                }
            }
        }
        conditions.set("Stopped", LivingConditions.FALSE, null, null);
        if (context.advice.isEmpty()) {
            conditions.remove(WITHOUT_EFFECT);
        } else {
            conditions.set(WITHOUT_EFFECT, LivingConditions.TRUE, "StandardMode", String.join("; ", context.advice));
        }
        List<ObjectNode> routes = routes(status, conditions, components, ready(canaries, percentages));
        status.set("conditions", conditions.tree());
        return routes;
    }

    private void component(ObjectNode status, LivingConditions conditions, PlannedComponent planned) {
        Component component = planned.plan().component();
        ObjectNode own = Trees.object(Trees.object(status, "components"), component.text());
        List<ObjectNode> deployments = new ArrayList<>();
        for (String name : planned.deployments()) {
            ObjectNode deployment = cluster.object("Deployment", name);
            if (deployment != null) {
                deployments.add(deployment);
            }
        }
        Problem problem = planned.problem();
        if (problem != null && deployments.isEmpty()) {
            conditions.set(condition(component), LivingConditions.FALSE, problem.reason(), problem.message());
            return;
        }
        Readiness readiness = deployments.size() < planned.deployments().size()
                ? new Readiness(LivingConditions.FALSE, null, null)
                : DeploymentConditions.of(deployments);
        conditions.set(condition(component), readiness.status(), readiness.reason(), readiness.message());
        if (readiness.status().equals(LivingConditions.TRUE)) {
            own.put("url", "http://" + new Hosts(context.service, settings).host(planned.name()));
        }
    }

    private static String condition(Component component) {
        return switch (component) {
            case PREDICTOR -> LivingConditions.PREDICTOR;
            case TRANSFORMER -> "TransformerReady";
            default -> "ExplainerReady";
        };
    }

    private void runtime(ObjectNode status, ComponentPlan predictor) {
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

    private List<ObjectNode> pods(PlannedComponent planned) {
        String app = "isvc." + planned.name();
        return cluster.pods().stream()
                .filter(one ->
                        one.path("metadata").path("labels").path("app").asText().equals(app))
                .toList();
    }

    private void canaries(ObjectNode status, LivingConditions conditions, List<PlannedComponent> canaries) {
        if (canaries.isEmpty()) {
            status.remove("canaryStatuses");
            conditions.remove("CanaryPredictorReady");
            return;
        }
        boolean all = true;
        var statuses = status.putArray("canaryStatuses");
        List<CanarySpec> written = context.service.canary();
        for (int i = 0; i < canaries.size(); i++) {
            CanarySpec canary = written.get(i);
            boolean ready = isReady(canaries.get(i));
            all &= ready;
            ObjectNode one = statuses.addObject();
            one.putObject("modelStatus").put("transitionStatus", "");
            one.put(
                    "name",
                    canary.predictor().name() == null ? "" : canary.predictor().name());
            one.put("ready", ready);
            one.put("trafficPercent", canary.trafficPercent());
        }
        conditions.set(
                "CanaryPredictorReady",
                all ? LivingConditions.TRUE : LivingConditions.FALSE,
                all ? "AllCanariesReady" : "CanariesNotReady",
                null);
    }

    private boolean isReady(PlannedComponent canary) {
        return DeploymentConditions.serves(cluster.object("Deployment", canary.name()));
    }

    private Map<String, Integer> ready(List<PlannedComponent> canaries, Map<String, Integer> percentages) {
        Map<String, Integer> ready = new LinkedHashMap<>();
        for (PlannedComponent canary : canaries) {
            if (isReady(canary)) {
                ready.put(canary.name(), percentages.getOrDefault(canary.name(), 0));
            }
        }
        return ready;
    }

    private List<ObjectNode> routes(
            ObjectNode status,
            LivingConditions conditions,
            List<PlannedComponent> components,
            Map<String, Integer> canaries) {
        Hosts hosts = new Hosts(context.service, settings);
        Map<Component, PlannedComponent> by = new LinkedHashMap<>();
        Map<String, ObjectNode> services = new LinkedHashMap<>();
        for (PlannedComponent one : components) {
            by.put(one.plan().component(), one);
            ObjectNode service = one.service();
            services.put(
                    one.name(),
                    service == null
                            ? cluster.objects().getOrDefault("Service/" + one.name(), Trees.object())
                            : service);
        }
        if (Objects.requireNonNull(by.get(Component.PREDICTOR)).problem() != null
                && cluster.object("Deployment", components.get(0).name()) == null) {
            return List.of();
        }
        RouteObjects objects = new RouteObjects(
                Owner.of(context.service),
                hosts,
                context,
                components.get(0).name(),
                name(by.get(Component.TRANSFORMER)),
                name(by.get(Component.EXPLAINER)),
                canaries,
                services);
        try {
            return hosts.local() || hosts.ingress().disableIngressCreation()
                    ? none(status, conditions, hosts, objects)
                    : settings.gatewayApi()
                            ? httpRoutes(status, conditions, hosts, objects, components)
                            : ingress(status, conditions, hosts, objects, components);
        } catch (ServingException e) {
            conditions.set(LivingConditions.INGRESS, LivingConditions.FALSE, "InvalidTemplate", e.getMessage());
            return List.of();
        }
    }

    private static @Nullable String name(@Nullable PlannedComponent component) {
        return component == null ? null : component.name();
    }

    private List<ObjectNode> none(ObjectNode status, LivingConditions conditions, Hosts hosts, RouteObjects objects) {
        addresses(status, hosts, objects);
        if (hosts.local()) {
            status.put("url", hosts.address(entry(objects)));
        }
        conditions.set(LivingConditions.INGRESS, LivingConditions.TRUE, null, null);
        return List.of();
    }

    private List<ObjectNode> ingress(
            ObjectNode status,
            LivingConditions conditions,
            Hosts hosts,
            RouteObjects objects,
            List<PlannedComponent> components) {
        ObjectNode there = cluster.object("Ingress", context.name());
        for (PlannedComponent one : components) {
            if (!conditions.isTrue(condition(one.plan().component()))) {
                conditions.set(
                        LivingConditions.INGRESS, LivingConditions.FALSE, title(one) + " ingress not created", null);
                return there == null ? List.of() : List.of(ObservedObjects.applicable(there));
            }
        }
        ObjectNode ingress = objects.ingress();
        addresses(status, hosts, objects);
        conditions.set(LivingConditions.INGRESS, LivingConditions.TRUE, null, null);
        return List.of(there == null ? ingress : ObservedObjects.metadata(ingress, there, "rules", "ingressClassName"));
    }

    private List<ObjectNode> httpRoutes(
            ObjectNode status,
            LivingConditions conditions,
            Hosts hosts,
            RouteObjects objects,
            List<PlannedComponent> components) {
        List<ObjectNode> routes = new ArrayList<>();
        Map<Component, Long> timeouts = new LinkedHashMap<>();
        boolean whole = true;
        for (PlannedComponent one : components) {
            Component component = one.plan().component();
            Long timeout = one.plan().extension().timeout();
            if (timeout != null) {
                timeouts.put(component, timeout);
            }
            if (conditions.isTrue(condition(component))) {
                routes.add(objects.component(one.name(), timeout));
            } else {
                whole = false;
                keep(routes, one.name());
            }
        }
        if (whole) {
            Component entry = objects.transformer() == null ? Component.PREDICTOR : Component.TRANSFORMER;
            routes.add(objects.service(timeouts.get(Component.EXPLAINER), timeouts.get(entry)));
        } else {
            keep(routes, context.name());
        }
        for (PlannedComponent one : components) {
            if (!accepted(conditions, one.name(), title(one))) {
                return routes;
            }
        }
        if (!accepted(conditions, context.name(), "InferenceService")) {
            return routes;
        }
        conditions.set(LivingConditions.INGRESS, LivingConditions.TRUE, null, null);
        addresses(status, hosts, objects);
        return routes;
    }

    private void keep(List<ObjectNode> routes, String name) {
        ObjectNode there = cluster.object("HTTPRoute", name);
        if (there != null) {
            routes.add(ObservedObjects.applicable(there));
        }
    }

    /** Whether the gateway has accepted a route; if not, the condition says why. */
    private boolean accepted(LivingConditions conditions, String name, String what) {
        ObjectNode route = cluster.object("HTTPRoute", name);
        if (route == null) {
            conditions.set(
                    LivingConditions.INGRESS,
                    LivingConditions.FALSE,
                    what + " Deployment NotReady",
                    what + " HTTPRoute not created");
            return false;
        }
        JsonNode parents = route.path("status").path("parents");
        if (parents.isEmpty()) {
            conditions.set(
                    LivingConditions.INGRESS,
                    LivingConditions.FALSE,
                    "ParentStatusNotAvailable",
                    what + " HttpRouteNotReady");
            return false;
        }
        for (JsonNode parent : parents) {
            for (JsonNode condition : parent.path("conditions")) {
                if (condition.path("status").asText().equals("False")) {
                    conditions.set(
                            LivingConditions.INGRESS,
                            LivingConditions.FALSE,
                            condition.path("reason").asText(),
                            what + " " + condition.path("message").asText());
                    return false;
                }
            }
        }
        return true;
    }

    private static String title(PlannedComponent component) {
        return switch (component.plan().component()) {
            case PREDICTOR -> "Predictor";
            case TRANSFORMER -> "Transformer";
            default -> "Explainer";
        };
    }

    private static String entry(RouteObjects objects) {
        return objects.transformer() == null ? objects.predictor() : objects.transformer();
    }

    private void addresses(ObjectNode status, Hosts hosts, RouteObjects objects) {
        status.put("url", hosts.ingress().urlScheme() + "://" + hosts.host(context.name()));
        status.putObject("address").put("url", hosts.address(entry(objects)));
    }

    /** Whether the status before says so already. */
    private boolean told(Problem problem) {
        boolean told =
                before.at("/modelStatus/lastFailureInfo/message").asText("").equals(problem.message());
        for (JsonNode condition : before.path("conditions")) {
            told |= condition.path("message").asText("").equals(problem.message());
        }
        return told;
    }

    private List<Plan.Event> events(ObjectNode status, List<Problem> problems) {
        List<Plan.Event> events = new ArrayList<>();
        String was = new LivingConditions(before, now).status(LivingConditions.READY);
        LivingConditions conditions = new LivingConditions(status, now);
        String is = conditions.status(LivingConditions.READY);
        if (is.equals(LivingConditions.TRUE) && !was.equals(LivingConditions.TRUE)) {
            events.add(new Plan.Event(
                    "Normal", "InferenceServiceReady", "InferenceService [" + context.name() + "] is Ready"));
        } else if (is.equals(LivingConditions.FALSE) && was.equals(LivingConditions.TRUE)) {
            events.add(new Plan.Event(
                    "Warning",
                    "InferenceServiceNotReady",
                    "InferenceService [" + context.name() + "] is no longer Ready because of: "
                            + String.join(", ", conditions.failed())));
        }
        for (Problem problem : problems) {
            if (!told(problem)) {
                events.add(new Plan.Event("Warning", "InternalError", problem.message()));
            }
        }
        return List.copyOf(events);
    }
}
