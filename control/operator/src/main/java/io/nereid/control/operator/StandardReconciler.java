// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.standard.StandardPlan;
import io.nereid.control.kubernetes.standard.StandardPlanner;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ObjectApplier.Refusal;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.plane.ServiceReconciler;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
    private static final String MODE = "serving.kserve.io/deploymentMode";

    private final ClusterClient client;
    private final ResourceStore store;
    private final ServiceObjects objects;
    private final ObjectApplier applier;
    private final String home;
    private final StatusPacing statuses = new StatusPacing();
    private volatile ChangeListener listener = (graph, namespace, name) -> {};

    /**
     * @param store has the services, service accounts and ConfigMaps
     * @param home the operator's own namespace
     */
    StandardReconciler(ClusterClient client, ResourceStore store, ServiceObjects objects, String home) {
        this.client = client;
        this.store = store;
        this.objects = objects;
        this.applier = new ObjectApplier(client, objects);
        this.home = home;
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
        String namespace = service.path("metadata").path("namespace").asText();
        String name = service.path("metadata").path("name").asText();
        String uid = service.path("metadata").path("uid").asText();
        if (mode(service, catalog) != DeploymentMode.STANDARD) {
            return new Outcome(
                    UnsupportedStatus.of(
                            service.path("status"),
                            "DeploymentModeNotSupported",
                            "this operator carries out the deployment mode Standard alone; set the annotation " + MODE
                                    + ": Standard",
                            now),
                    List.of(),
                    null);
        }
        Map<String, ObjectNode> owned = new HashMap<>();
        objects.of(uid).forEach((key, object) -> owned.put(Trees.key(key.kind(), key.name()), object));
        // Secrets are never kept in memory: they are read when a service account names them.
        Map<String, ObjectNode> secrets = new HashMap<>();
        StandardPlan plan = StandardPlanner.plan(
                service,
                catalog,
                new ObservedCluster(
                        owned,
                        objects.pods(namespace, name),
                        service.path("status"),
                        secret -> secrets.computeIfAbsent(
                                secret, key -> client.get(ResourceKinds.SECRET, namespace, key)),
                        account -> store.get(new ResourceStore.Key(SERVICE_ACCOUNTS, namespace, account)),
                        map -> client.get(ResourceKinds.CONFIG_MAP, home, map)),
                now);
        Refusal refusal = applier.apply(uid, plan.objects());
        if (refusal != null) {
            return refused(service, plan.status(), refusal, now);
        }
        Duration wait = statuses.wait(uid, service.path("status"), plan.status(), now);
        return wait.isZero()
                ? new Outcome(plan.status(), plan.events(), null)
                : new Outcome((ObjectNode) service.path("status"), List.of(), wait);
    }

    /** What is refused now may be taken later, for example when a quota is raised: it is tried again. */
    private static Outcome refused(ObjectNode service, ObjectNode planned, Refusal refusal, Instant now) {
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

    private static @Nullable DeploymentMode mode(ObjectNode service, RuntimeCatalog catalog) {
        JsonNode metadata = service.path("metadata");
        String wanted = metadata.path("annotations").path(MODE).asText("");
        return wanted.isEmpty()
                ? catalog.config()
                        .forNamespace(metadata.path("namespace").asText())
                        .deploy()
                        .defaultDeploymentMode()
                : DeploymentMode.of(wanted);
    }

    @Override
    public Outcome reconcileGraph(
            ObjectNode graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            Instant now) {
        return new Outcome(
                UnsupportedStatus.of(
                        graph.path("status"),
                        "GraphsNotSupported",
                        "this operator does not carry out InferenceGraphs; nereid serve --control does",
                        now),
                List.of(),
                null);
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
