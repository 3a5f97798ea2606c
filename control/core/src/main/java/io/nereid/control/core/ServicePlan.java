// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Rollout.Outcome;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Workload.Component;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The plan of one InferenceService. Confined to one call of the planner. */
final class ServicePlan {
    private final InferenceService service;
    private final Observed observed;
    private final Instant now;
    private final Scene scene;
    private final List<Event> events = new ArrayList<>();

    ServicePlan(InferenceService service, Catalog catalog, Observed observed, Instant now) {
        this.service = service;
        this.observed = observed;
        this.now = now;
        this.scene = new Scene(service, catalog, observed.status());
    }

    Plan plan() {
        JsonNode before = observed.status();
        if (scene.flag("serving.kserve.io/stop")) {
            ObjectNode status = Statuses.stopped(scene, before, now);
            if (!Statuses.isStopped(before)) {
                events.add(new Event("Normal", "Stopped", "InferenceService [" + scene.name() + "] is stopped"));
            }
            return new Plan(List.of(), null, observed.revisions(), status, List.copyOf(events), null);
        }
        Map<Component, Outcome> outcomes = outcomes(before);
        Map<Component, Backend> backends = new EnumMap<>(Component.class);
        List<Workload> workloads = new ArrayList<>();
        List<Revision> revisions = new ArrayList<>();
        Duration requeue = null;
        boolean whole = true;
        for (Map.Entry<Component, Outcome> one : outcomes.entrySet()) {
            Outcome outcome = one.getValue();
            workloads.addAll(outcome.workloads());
            revisions.addAll(outcome.revisions());
            requeue = Rollout.sooner(requeue, outcome.requeue());
            if (outcome.backend() == null) {
                whole = false;
            } else {
                backends.put(one.getKey(), outcome.backend());
            }
        }
        Component front = !whole
                ? null
                : outcomes.containsKey(Component.TRANSFORMER) ? Component.TRANSFORMER : Component.PREDICTOR;
        Doors doors = null;
        String noDoors = "";
        try {
            doors = new Doors(service.metadata(), scene.config);
        } catch (ServingException e) {
            noDoors = e.getMessage();
        }
        Route route = doors == null || backends.isEmpty()
                ? null
                : new Route(
                        scene.namespace(),
                        scene.name(),
                        "InferenceService",
                        doors.all(backends, front),
                        java.util.Collections.unmodifiableMap(backends),
                        "");
        Statuses statuses = new Statuses(scene, before, now, outcomes, doors, noDoors, front);
        ObjectNode status = statuses.write();
        statuses.events(events);
        return new Plan(List.copyOf(workloads), route, List.copyOf(revisions), status, List.copyOf(events), requeue);
    }

    private Map<Component, Outcome> outcomes(JsonNode before) {
        Drafts drafts = new Drafts(scene);
        Draft predictor = drafts.predictor(service.predictor(), "spec.predictor");
        List<Draft> all = new ArrayList<>(List.of(predictor));
        add(all, drafts.transformer(predictor));
        add(all, drafts.explainer());
        Map<String, Map.Entry<Draft, Integer>> canaries = new LinkedHashMap<>();
        for (CanarySpec canary : service.canary()) {
            String name =
                    canary.predictor().name() == null ? "" : canary.predictor().name();
            Draft draft = drafts.predictor(canary.predictor(), "spec.canary[" + name + "].predictor");
            canaries.put(name, Map.entry(draft, canary.trafficPercent()));
        }
        boolean frozen = scene.flag("serving.kserve.io/disable-auto-update")
                && new Conditions(before, now).statusBefore("Ready").equals(Conditions.TRUE)
                && before.path("observedGeneration").asLong(-1)
                        == service.metadata().generation();
        Map<Component, Outcome> outcomes = new EnumMap<>(Component.class);
        for (Draft draft : all) {
            Revisions revisions = new Revisions(draft.component(), observed, frozen, now, events);
            JsonNode last = before.path("components").path(Drafts.part(draft.component()));
            Map<String, Map.Entry<Draft, Integer>> own = draft.component() == Component.PREDICTOR ? canaries : Map.of();
            outcomes.put(
                    draft.component(),
                    new Rollout(
                                    scene,
                                    draft,
                                    own,
                                    revisions,
                                    last.isObject() ? last : JsonNodeFactory.instance.objectNode(),
                                    now,
                                    events)
                            .plan());
        }
        return outcomes;
    }

    private static void add(List<Draft> all, @Nullable Draft draft) {
        if (draft != null) {
            all.add(draft);
        }
    }
}
