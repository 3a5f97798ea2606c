// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.status;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.rollout.RolloutPlan;
import io.nereid.control.core.rollout.RolloutPlanner.CanaryShare;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Writes the status of an InferenceService in KServe's format. Confined to one call of the planner. */
public final class StatusWriter {
    /** The reason of the events about fields without an effect. */
    public static final String WITHOUT_EFFECT_EVENT = "FieldWithoutEffect";

    private static final List<String> TYPES = List.of(
            "PredictorReady",
            "PredictorRouteReady",
            "PredictorConfigurationReady",
            "IngressReady",
            "RoutesReady",
            "LatestDeploymentReady",
            "Ready");

    private final PlanningContext context;
    private final JsonNode before;
    private final Instant now;
    private final Map<Component, RolloutPlan> outcomes;
    private final @Nullable IngressRules rules;
    private final @Nullable Problem ingressProblem;
    private final @Nullable Component entryPoint;
    private final WorkloadForms.Site site;
    private final Conditions conditions;

    /**
     * @param rules null when the service's host cannot be made
     * @param ingressProblem why requests do not reach the service; null when they do
     */
    public StatusWriter(
            PlanningContext context,
            JsonNode before,
            Instant now,
            Map<Component, RolloutPlan> outcomes,
            @Nullable IngressRules rules,
            @Nullable Problem ingressProblem,
            @Nullable Component entryPoint,
            WorkloadForms.Site site) {
        this.context = context;
        this.before = before;
        this.now = now;
        this.outcomes = outcomes;
        this.rules = rules;
        this.ingressProblem = ingressProblem;
        this.entryPoint = entryPoint;
        this.site = site;
        this.conditions = new Conditions(before, now);
    }

    /** The status of a service that is stopped: nothing runs, nothing is ready. */
    public static ObjectNode stopped(PlanningContext context, JsonNode before, Instant now) {
        Conditions conditions = new Conditions(before, now);
        List<String> types = new ArrayList<>(TYPES);
        if (context.service.transformer() != null) {
            types.addAll(List.of("TransformerReady", "TransformerRouteReady", "TransformerConfigurationReady"));
        }
        if (context.service.explainer() != null) {
            types.addAll(List.of("ExplainerReady", "ExplainerRoutesReady", "ExplainerConfigurationReady"));
        }
        types.forEach(type -> conditions.set(type, Conditions.FALSE, "Stopped", null));
        conditions.set("Stopped", Conditions.TRUE, null, null);
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        status.put("observedGeneration", context.service.metadata().generation());
        status.set("conditions", conditions.tree());
        status.put("deploymentMode", context.mode.text());
        return status;
    }

    public static boolean isStopped(JsonNode status) {
        return new Conditions(status, Instant.EPOCH).statusBefore("Stopped").equals(Conditions.TRUE);
    }

    public ObjectNode write() {
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        status.put("observedGeneration", context.service.metadata().generation());
        List<String> routes = new ArrayList<>();
        List<String> configurations = new ArrayList<>();
        outcomes.forEach((component, outcome) -> {
            String name = title(component);
            String route = name + (component == Component.EXPLAINER ? "RoutesReady" : "RouteReady");
            String configuration = name + "ConfigurationReady";
            configuration(configuration, outcome);
            route(route, outcome);
            conditions.all(name + "Ready", List.of(configuration, route));
            routes.add(route);
            configurations.add(configuration);
        });
        conditions.all("RoutesReady", routes);
        conditions.all("LatestDeploymentReady", configurations);
        ingress();
        conditions.all("Ready", List.of("PredictorReady", "IngressReady"));
        RolloutPlan predictor = Objects.requireNonNull(outcomes.get(Component.PREDICTOR));
        advisory(predictor);
        status.set("conditions", conditions.tree());
        if (rules != null && entryPoint != null) {
            status.put("url", rules.url(context.name()));
            String address = context.knative() ? context.name() : context.name() + "-" + entryPoint.text();
            status.putObject("address").put("url", rules.internal(address));
        }
        status.set("components", components());
        status.set("modelStatus", modelStatus(predictor));
        if (!predictor.canaries().isEmpty()) {
            status.set("canaryStatuses", canaryStatuses(predictor));
        }
        status.put("deploymentMode", context.mode.text());
        RuntimeSelection selection = predictor.plan().selection();
        ServingRuntime runtime = selection == null ? null : selection.chosen();
        if (runtime != null) {
            status.put(runtime.cluster() ? "clusterServingRuntimeName" : "servingRuntimeName", runtime.name());
        }
        return status;
    }

    private static String title(Component component) {
        String name = component.name();
        return name.charAt(0) + component.text().substring(1);
    }

    private void configuration(String type, RolloutPlan outcome) {
        Problem problem = outcome.plan().problem();
        WorkloadState state = outcome.state();
        if (problem != null) {
            conditions.set(type, Conditions.FALSE, problem.reason(), problem.message());
        } else if (outcome.ready() || outcome.rolledBack() != null) {
            conditions.set(type, Conditions.TRUE, null, null);
        } else if (state.phase() == Phase.FAILED) {
            conditions.set(
                    type,
                    Conditions.FALSE,
                    "RevisionFailed",
                    "Revision \"" + outcome.created() + "\" failed with message: " + message(state) + ".");
        } else {
            conditions.set(type, Conditions.UNKNOWN, "Deploying", outcome.created() + " is " + doing(state.phase()));
        }
    }

    private static String doing(Phase phase) {
        return phase == Phase.LOADING ? "loading" : "pending";
    }

    private static String message(WorkloadState state) {
        Failure failure = state.failure();
        return failure == null ? "no message" : failure.message();
    }

    private void route(String type, RolloutPlan outcome) {
        if (outcome.backend() == null) {
            boolean never = outcome.plan().problem() != null || outcome.state().phase() == Phase.FAILED;
            conditions.set(
                    type,
                    never ? Conditions.FALSE : Conditions.UNKNOWN,
                    "RevisionMissing",
                    "No revision is ready to serve requests");
            return;
        }
        boolean answers = outcome.answering();
        if (answers) {
            conditions.set(type, Conditions.TRUE, null, null);
        } else {
            WorkloadState state = outcome.state();
            conditions.set(
                    type,
                    state.phase() == Phase.FAILED ? Conditions.FALSE : Conditions.UNKNOWN,
                    state.phase() == Phase.FAILED ? "RevisionFailed" : "Restarting",
                    "The revision that serves requests is not running"
                            + (state.failure() == null ? "" : ": " + message(state)));
        }
    }

    private void ingress() {
        if (rules == null && ingressProblem != null) {
            conditions.set("IngressReady", Conditions.FALSE, ingressProblem.reason(), ingressProblem.message());
            return;
        }
        for (Component component : outcomes.keySet()) {
            String type = title(component) + "Ready";
            if (!conditions.status(type).equals(Conditions.TRUE)) {
                conditions.set(
                        "IngressReady",
                        conditions.status(type),
                        title(component) + "NotReady",
                        conditions.message(type));
                return;
            }
        }
        if (ingressProblem != null) {
            conditions.set("IngressReady", Conditions.FALSE, ingressProblem.reason(), ingressProblem.message());
        } else {
            conditions.set("IngressReady", Conditions.TRUE, null, null);
        }
    }

    private void advisory(RolloutPlan predictor) {
        if (!predictor.canaries().isEmpty()) {
            List<String> not = new ArrayList<>();
            for (CanaryShare one : predictor.canaries()) {
                if (!predictor.canaryReady(one)) {
                    Problem problem = one.plan().problem();
                    not.add(one.name() + (problem == null ? "" : ": " + problem.message()));
                }
            }
            conditions.set(
                    "CanaryPredictorReady",
                    not.isEmpty() ? Conditions.TRUE : Conditions.FALSE,
                    not.isEmpty() ? null : "CanaryNotReady",
                    String.join("; ", not));
        }
        List<String> back = new ArrayList<>();
        for (RolloutPlan outcome : outcomes.values()) {
            if (outcome.rolledBack() != null) {
                back.add(outcome.rolledBack());
            }
        }
        if (!back.isEmpty()) {
            conditions.advise("RolledBack", Conditions.TRUE, "CanaryFailed", String.join("; ", back));
        }
        if (!context.advice.isEmpty()) {
            conditions.advise("FieldsWithoutEffect", Conditions.TRUE, site.reason(), String.join("; ", context.advice));
        }
        if (!conditions.statusBefore("Stopped").isEmpty()) {
            conditions.set("Stopped", Conditions.FALSE, null, null);
        }
    }

    private ObjectNode components() {
        ObjectNode all = JsonNodeFactory.instance.objectNode();
        outcomes.forEach((component, outcome) -> {
            ObjectNode one = outcome.status().deepCopy();
            String name = context.name() + "-" + component.text();
            if (rules != null && outcome.backend() != null) {
                one.put("url", rules.url(name));
                one.putObject("address").put("url", rules.internal(name));
                for (JsonNode target : one.path("traffic")) {
                    if (target.has("tag") && target instanceof ObjectNode tagged) {
                        tagged.put("url", rules.url(tagged.path("tag").asText() + "-" + name));
                    }
                }
                RuntimeCatalog.Gateway gateway = context.catalog.gateway();
                if (component == entryPoint
                        && gateway.http() != null
                        && !rules.path().isEmpty()) {
                    one.put("restUrl", context.config.ingress().urlScheme() + "://" + gateway.http() + rules.path());
                }
                if (component == entryPoint && gateway.grpc() != null) {
                    one.put("grpcUrl", gateway.grpc());
                }
            }
            all.set(component.text(), one);
        });
        return all;
    }

    private ObjectNode modelStatus(RolloutPlan predictor) {
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        JsonNode last = before.path("modelStatus");
        String active = last.path("states").path("activeModelState").asText();
        Problem problem = predictor.plan().problem();
        WorkloadState state = predictor.state();
        String target = last.path("states").path("targetModelState").asText("Pending");
        String transition;
        ObjectNode failure = null;
        if (problem != null) {
            transition = "InvalidSpec";
            failure = failure(last, problem.reason(), problem.message());
        } else if (predictor.rolledBack() != null) {
            transition = "BlockedByFailedLoad";
            target = "FailedToLoad";
            failure = failure(last, "RuntimeUnhealthy", predictor.rolledBack());
            failure.put("modelRevisionName", predictor.created());
        } else {
            switch (state.phase()) {
                case PENDING, LOADING -> {
                    target = state.phase() == Phase.PENDING ? "Pending" : "Loading";
                    transition = "InProgress";
                }
                case READY, STANDBY -> {
                    target = state.phase() == Phase.READY ? "Loaded" : "Standby";
                    active = target;
                    transition = "UpToDate";
                }
                default -> {
                    target = "FailedToLoad";
                    transition = "BlockedByFailedLoad";
                }
            }
            if (state.failure() != null && !transition.equals("UpToDate")) {
                failure = failure(state.failure(), predictor.created());
            }
        }
        if (predictor.backend() == null && !active.isEmpty()) {
            active = target;
        }
        ObjectNode states = status.putObject("states");
        states.put("activeModelState", active);
        states.put("targetModelState", target);
        status.put("transitionStatus", transition);
        int total = state.replicas();
        status.putObject("copies")
                .put("failedCopies", state.phase() == Phase.FAILED ? Math.max(1, state.desired() - total) : 0)
                .put("totalCopies", total);
        if (failure != null) {
            status.set("lastFailureInfo", failure);
        }
        return status;
    }

    private ObjectNode failure(JsonNode last, String reason, String message) {
        JsonNode same = last.path("lastFailureInfo");
        boolean again = same.path("reason").asText().equals(reason)
                && same.path("message").asText().equals(message);
        return JsonNodeFactory.instance
                .objectNode()
                .put("reason", reason)
                .put("message", message)
                .put("time", again ? same.path("time").asText() : Conditions.time(now));
    }

    private static ObjectNode failure(Failure failure, String revision) {
        ObjectNode tree = JsonNodeFactory.instance
                .objectNode()
                .put("reason", failure.reason())
                .put("message", failure.message())
                .put("modelRevisionName", revision)
                .put("time", Conditions.time(failure.time()));
        if (failure.exitCode() != null) {
            tree.put("exitCode", failure.exitCode());
        }
        return tree;
    }

    private static ArrayNode canaryStatuses(RolloutPlan predictor) {
        ArrayNode all = JsonNodeFactory.instance.arrayNode();
        for (CanaryShare one : predictor.canaries()) {
            ObjectNode status = all.addObject();
            boolean ready = predictor.canaryReady(one);
            status.put("name", one.name());
            status.put("ready", ready);
            status.put("trafficPercent", ready ? one.percent() : 0);
            Problem problem = one.plan().problem();
            WorkloadState state = predictor.canaryState(one);
            String target = switch (state.phase()) {
                case PENDING -> "Pending";
                case LOADING -> "Loading";
                case READY -> "Loaded";
                case STANDBY -> "Standby";
                case FAILED -> "FailedToLoad";
            };
            ObjectNode model = status.putObject("modelStatus");
            model.putObject("states")
                    .put("activeModelState", ready ? target : "")
                    .put("targetModelState", target);
            String transition =
                    state.phase() == Phase.FAILED ? "BlockedByFailedLoad" : ready ? "UpToDate" : "InProgress";
            model.put("transitionStatus", problem != null ? "InvalidSpec" : transition);
            if (problem != null) {
                model.putObject("lastFailureInfo")
                        .put("reason", problem.reason())
                        .put("message", problem.message());
            } else if (state.failure() != null && !ready) {
                model.set("lastFailureInfo", failure(state.failure(), one.revision()));
            }
        }
        return all;
    }

    /** Adds events for what has changed since the last status, so that planning again does not repeat them. */
    public void events(List<Event> events) {
        boolean was = conditions.statusBefore("Ready").equals(Conditions.TRUE);
        boolean is = conditions.status("Ready").equals(Conditions.TRUE);
        String name = "InferenceService [" + context.name() + "]";
        for (Component component : outcomes.keySet()) {
            String type = title(component) + "ConfigurationReady";
            if (conditions.status(type).equals(Conditions.FALSE)
                    && !conditions.message(type).equals(conditions.messageBefore(type))) {
                events.add(new Event("Warning", conditions.reason(type), conditions.message(type)));
            }
        }
        if (is && !was) {
            events.add(new Event("Normal", "InferenceServiceReady", name + " is Ready"));
        } else if (conditions.status("Ready").equals(Conditions.FALSE)
                && !conditions.statusBefore("Ready").equals(Conditions.FALSE)) {
            events.add(new Event(
                    "Warning", "InferenceServiceNotReady", name + " is not Ready: " + conditions.message("Ready")));
        }
        if (!conditions.message("FieldsWithoutEffect").equals(conditions.messageBefore("FieldsWithoutEffect"))) {
            context.advice.forEach(one -> events.add(new Event("Warning", WITHOUT_EFFECT_EVENT, one)));
        }
    }
}
