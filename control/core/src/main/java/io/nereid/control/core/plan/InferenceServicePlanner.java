// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.component.WorkloadPlan;
import io.nereid.control.core.rollout.RevisionHistory;
import io.nereid.control.core.rollout.RolloutPlan;
import io.nereid.control.core.rollout.RolloutPlanner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.status.Conditions;
import io.nereid.control.core.status.IngressRules;
import io.nereid.control.core.status.StatusWriter;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Plans one InferenceService: its components, their rollouts, the route and the status. Confined to one call of the
 * planner.
 */
final class InferenceServicePlanner {
    /** The reason of conditions when services have no gateway. */
    static final String GATEWAY_NOT_READY = "GatewayNotReady";

    private final InferenceService service;
    private final ObservedState observed;
    private final Instant now;
    private final PlanningContext context;
    private final WorkloadForms forms;
    private final List<Event> events = new ArrayList<>();

    InferenceServicePlanner(
            InferenceService service,
            RuntimeCatalog catalog,
            ObservedState observed,
            Instant now,
            WorkloadForms.Factory forms) {
        this.service = service;
        this.observed = observed;
        this.now = now;
        this.context = new PlanningContext(service, catalog, observed.status());
        this.forms = forms.of(context);
    }

    Plan plan() {
        JsonNode before = observed.status();
        if (context.flag("serving.kserve.io/stop")) {
            ObjectNode status = StatusWriter.stopped(context, before, now);
            if (!StatusWriter.isStopped(before)) {
                events.add(new Event("Normal", "Stopped", "InferenceService [" + context.name() + "] is stopped"));
            }
            return new Plan(List.of(), null, observed.revisions(), status, List.copyOf(events), null);
        }
        Map<Component, RolloutPlan> outcomes = outcomes(before);
        Map<Component, Backend> backends = new EnumMap<>(Component.class);
        List<Workload> workloads = new ArrayList<>();
        List<Revision> revisions = new ArrayList<>();
        Duration requeue = null;
        boolean whole = true;
        for (Map.Entry<Component, RolloutPlan> one : outcomes.entrySet()) {
            RolloutPlan outcome = one.getValue();
            workloads.addAll(outcome.workloads());
            revisions.addAll(outcome.revisions());
            requeue = RolloutPlanner.sooner(requeue, outcome.requeue());
            if (outcome.backend() == null) {
                whole = false;
            } else {
                backends.put(one.getKey(), outcome.backend());
            }
        }
        Component entryPoint = !whole
                ? null
                : outcomes.containsKey(Component.TRANSFORMER) ? Component.TRANSFORMER : Component.PREDICTOR;
        IngressRules rules = null;
        Problem problem =
                observed.gatewayProblem().isEmpty() ? null : new Problem(GATEWAY_NOT_READY, observed.gatewayProblem());
        try {
            rules = new IngressRules(service.metadata(), context.config);
        } catch (ServingException e) {
            problem = new Problem("InvalidTemplate", e.getMessage());
        }
        Route route = rules == null || backends.isEmpty()
                ? null
                : new Route(
                        context.namespace(),
                        context.name(),
                        "InferenceService",
                        rules.all(backends, entryPoint),
                        java.util.Collections.unmodifiableMap(backends),
                        "");
        StatusWriter statusWriter =
                new StatusWriter(context, before, now, outcomes, rules, problem, entryPoint, forms.site());
        ObjectNode status = statusWriter.write();
        statusWriter.events(events);
        return new Plan(List.copyOf(workloads), route, List.copyOf(revisions), status, List.copyOf(events), requeue);
    }

    private Map<Component, RolloutPlan> outcomes(JsonNode before) {
        ComponentPlanner planner = new ComponentPlanner(context);
        ComponentPlan host = planner.predictor(service.predictor(), "spec.predictor");
        WorkloadPlan predictor = forms.predictor(host, service.predictor());
        List<WorkloadPlan> all = new ArrayList<>(List.of(predictor));
        add(all, forms.transformer(planner.transformer(), host, predictor));
        add(all, forms.explainer(planner.explainer()));
        Map<String, Map.Entry<WorkloadPlan, Integer>> canaries = new LinkedHashMap<>();
        for (CanarySpec canary : service.canary()) {
            String name =
                    canary.predictor().name() == null ? "" : canary.predictor().name();
            PredictorSpec spec = ComponentPlanner.canary(service.predictor(), canary);
            ComponentPlan plan = planner.predictor(spec, "spec.canary[" + name + "].predictor");
            canaries.put(name, Map.entry(forms.predictor(plan, spec), canary.trafficPercent()));
        }
        boolean frozen = context.flag("serving.kserve.io/disable-auto-update")
                && new Conditions(before, now).statusBefore("Ready").equals(Conditions.TRUE)
                && before.path("observedGeneration").asLong(-1)
                        == service.metadata().generation();
        Map<Component, RolloutPlan> outcomes = new EnumMap<>(Component.class);
        for (WorkloadPlan plan : all) {
            RevisionHistory revisions = new RevisionHistory(plan.component(), observed, frozen, now, events);
            JsonNode last = before.path("components").path(plan.component().text());
            Map<String, Map.Entry<WorkloadPlan, Integer>> own =
                    plan.component() == Component.PREDICTOR ? canaries : Map.of();
            outcomes.put(
                    plan.component(),
                    new RolloutPlanner(
                                    context,
                                    plan,
                                    own,
                                    revisions,
                                    last.isObject() ? last : JsonNodeFactory.instance.objectNode(),
                                    now,
                                    events)
                            .plan());
        }
        return outcomes;
    }

    private static void add(List<WorkloadPlan> all, @Nullable WorkloadPlan plan) {
        if (plan != null) {
            all.add(plan);
        }
    }
}
