// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Revision;
import io.nereid.control.core.plan.Planner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.plane.reconcile.RevisionArchive;
import io.nereid.control.plane.reconcile.RevisionStore;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Plans with revisions, as Knative has them, and gives the plans to an {@link Infrastructure}. The revisions of a
 * service are stored before they run, so that a crash cannot assign the name of a revision a second time. Thread-safe.
 */
public final class PlanReconciler implements ServiceReconciler {
    private final Infrastructure infrastructure;
    private final RevisionArchive revisions;
    private final ServicePlanner planner;

    /** Plans a service. Thread-safe. */
    @FunctionalInterface
    public interface ServicePlanner {
        /** Plans the stored resource; see {@link Planner#plan}. */
        Plan plan(ObjectNode service, RuntimeCatalog catalog, ObservedState observed, Instant now);
    }

    /**
     * Plans for one machine.
     *
     * @param store keeps the revisions
     */
    public PlanReconciler(ResourceStore store, Infrastructure infrastructure) {
        this(
                new RevisionStore(store),
                infrastructure,
                (service, catalog, observed, now) ->
                        Planner.plan(InferenceService.read(service), catalog, observed, now));
    }

    /** Plans with a planner of the site, which the infrastructure carries out. */
    public PlanReconciler(RevisionArchive revisions, Infrastructure infrastructure, ServicePlanner planner) {
        this.revisions = revisions;
        this.infrastructure = infrastructure;
        this.planner = planner;
    }

    @Override
    public void onChange(ChangeListener listener) {
        infrastructure.onChange((namespace, name) -> listener.changed(false, namespace, name));
    }

    @Override
    public Outcome reconcile(ObjectNode service, RuntimeCatalog catalog, Instant now) {
        JsonNode metadata = service.path("metadata");
        String namespace = metadata.path("namespace").asText();
        String name = metadata.path("name").asText();
        String uid = metadata.path("uid").asText();
        List<Revision> before = revisions.read(namespace, name, uid);
        ObservedState observed = new ObservedState(
                infrastructure.observe(namespace, name), before, status(service), infrastructure.gatewayProblem());
        Plan plan = planner.plan(service, catalog, observed, now);
        if (!plan.revisions().equals(before)) {
            revisions.write(namespace, name, uid, plan.revisions());
        }
        return carriedOut(namespace, name, plan);
    }

    @Override
    public Outcome reconcileGraph(
            ObjectNode graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            Instant now) {
        String namespace = graph.path("metadata").path("namespace").asText();
        String name = graph.path("metadata").path("name").asText();
        ObservedState observed = new ObservedState(
                infrastructure.observe(namespace, name), List.of(), status(graph), infrastructure.gatewayProblem());
        return carriedOut(
                namespace, name, Planner.planGraph(InferenceGraph.read(graph), services, catalog, observed, now));
    }

    private Outcome carriedOut(String namespace, String name, Plan plan) {
        infrastructure.apply(namespace, name, plan);
        return new Outcome(plan.status(), plan.events(), plan.requeueAfter());
    }

    private static JsonNode status(ObjectNode resource) {
        return resource.path("status").isObject() ? resource.path("status") : JsonNodeFactory.instance.objectNode();
    }

    @Override
    public boolean remove(boolean graph, String namespace, String name) {
        infrastructure.apply(
                namespace,
                name,
                new Plan(List.of(), null, List.of(), JsonNodeFactory.instance.objectNode(), List.of(), null));
        return infrastructure.observe(namespace, name).isEmpty();
    }

    @Override
    public void forget(boolean graph, String namespace, String name) {
        if (!graph) {
            revisions.delete(namespace, name);
        }
    }

    @Override
    public boolean needsFinalizer() {
        return true;
    }

    /** What failed for missing credentials is retried as soon as they change. */
    @Override
    public Set<ResourceStore.Type> retriedAfter() {
        return Set.of(
                new ResourceStore.Type(ResourceKinds.SECRET.group(), ResourceKinds.SECRET.plural()),
                new ResourceStore.Type(ResourceKinds.SERVICE_ACCOUNT.group(), ResourceKinds.SERVICE_ACCOUNT.plural()));
    }

    @Override
    public void retry(String namespace) {
        infrastructure.retry(namespace);
    }
}
