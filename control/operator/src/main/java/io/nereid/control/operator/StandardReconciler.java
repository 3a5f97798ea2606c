// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.standard.StandardPlan;
import io.nereid.control.kubernetes.standard.StandardPlanner;
import io.nereid.control.operator.objects.ClusterReader;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ObjectApplier.Refusal;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.upgrade.TemplateRollout;
import io.nereid.control.plane.ServiceReconciler;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Carries out services in KServe's Standard mode: as Deployments, Services, autoscalers and routes. Everything that a
 * service has in the cluster is controlled by it, so that Kubernetes removes it with the service, whether the operator
 * runs or not. Thread-safe.
 */
final class StandardReconciler implements ServiceReconciler {
    private static final ResourceStore.Type SERVICE_ACCOUNTS = type(ResourceKinds.SERVICE_ACCOUNT);

    private static final Duration REFUSED_AGAIN = Duration.ofMinutes(1);

    private final ResourceStore store;
    private final ServiceObjects objects;
    private final ObjectApplier applier;
    private final ClusterReader reader;
    private final TemplateRollout rollout;
    private final StatusPacing statuses = new StatusPacing();
    private volatile ChangeListener listener = (graph, namespace, name) -> {};

    /** @param store has the services */
    StandardReconciler(
            ResourceStore store,
            ServiceObjects objects,
            ObjectApplier applier,
            ClusterReader reader,
            TemplateRollout rollout) {
        this.store = store;
        this.objects = objects;
        this.applier = applier;
        this.reader = reader;
        this.rollout = rollout;
    }

    private static ResourceStore.Type type(ResourceKind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    @Override
    public void onChange(ChangeListener listener) {
        this.listener = listener;
        objects.onChange(listener);
    }

    @Override
    public Outcome reconcile(ObjectNode service, RuntimeCatalog catalog, Instant now) {
        String uid = service.path("metadata").path("uid").asText();
        StandardPlan plan = StandardPlanner.plan(service, catalog, reader.observe(service), now);
        rollout.planned(service, plan.status(), catalog);
        Refusal refusal;
        try {
            rollout.pin(service, plan.objects(), Set.of(), plan.bare());
            refusal = applier.apply(uid, plan.objects());
        } finally {
            rollout.applied(service);
        }
        if (refusal != null) {
            return refused(service, plan.status(), refusal, now);
        }
        Duration wait = statuses.wait(uid, service.path("status"), plan.status(), now);
        return wait.isZero()
                ? new Outcome(plan.status(), plan.events(), null)
                : new Outcome((ObjectNode) service.path("status"), List.of(), wait);
    }

    /** What is refused now may be taken later, for example when a quota is raised: it is tried again. */
    static Outcome refused(ObjectNode service, ObjectNode planned, Refusal refusal, Instant now) {
        JsonNode before = service.path("status");
        String message = RefusedStatus.message(refusal);
        boolean told = false;
        for (JsonNode condition : before.path("conditions")) {
            told |= condition.path("message").asText().equals(message);
        }
        return new Outcome(
                RefusedStatus.of(planned, before, refusal, now),
                told ? List.of() : List.of(new Plan.Event("Warning", "InternalError", message)),
                REFUSED_AGAIN);
    }

    @Override
    public Outcome reconcileGraph(
            ObjectNode graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            Instant now) {
        throw new UnsupportedOperationException("graphs have no deployment mode");
    }

    /** What a service controls is removed by Kubernetes. */
    @Override
    public boolean remove(boolean graph, String namespace, String name) {
        return true;
    }

    @Override
    public void forget(boolean graph, String namespace, String name) {}

    @Override
    public boolean needsFinalizer() {
        return false;
    }

    @Override
    public Set<ResourceStore.Type> retriedAfter() {
        return Set.of(SERVICE_ACCOUNTS);
    }

    @Override
    public void retry(String namespace) {
        store.list(type(ResourceKinds.INFERENCE_SERVICE), namespace)
                .items()
                .forEach(service -> listener.changed(
                        false, namespace, service.path("metadata").path("name").asText()));
    }
}
