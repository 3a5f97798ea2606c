// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.trainedmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.trainedmodel.TrainedModelPlan;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.Phase;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.State;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.pool.SharedForms;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.kubernetes.pool.SharedPlacement;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import io.nereid.control.operator.revision.SharedModels;
import io.nereid.control.plane.trainedmodel.TrainedModelServers;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/**
 * TrainedModels of services with shared placement: each is a model of the pool, with a Service of its own by which the
 * gateways find the pods that have it. Those of other services are passed on. Thread-safe.
 */
public final class PooledModelServers implements TrainedModelServers {
    private final ClusterClient client;
    private final ServiceObjects objects;
    private final SharedModels pools;
    private final TrainedModelServers others;

    /** The models that were placed, by namespace and name of their service. */
    private final Map<String, Set<String>> placed = new ConcurrentHashMap<>();

    /**
     * @param objects knows the Services that there are
     * @param others the servers of services with pods of their own
     */
    public PooledModelServers(
            ClusterClient client, ServiceObjects objects, SharedModels pools, TrainedModelServers others) {
        this.client = client;
        this.objects = objects;
        this.pools = pools;
        this.others = others;
    }

    @Override
    public boolean isPooled(ObjectNode service) {
        return SharedPlacement.isShared(service);
    }

    @Override
    public boolean place(ObjectNode service, List<TrainedModel> models) {
        JsonNode metadata = service.path("metadata");
        String namespace = metadata.path("namespace").asText();
        String name = metadata.path("name").asText();
        if (!isPooled(service)) {
            forget(namespace, name);
            // Also those that another operator has left.
            models.forEach(model -> withdraw(Owner.of(model.tree())));
            return others.place(service, models);
        }
        Workload parent = pools.parent(namespace, name);
        SharedModel shared = parent == null ? null : SharedForms.model(parent);
        if (parent == null || shared == null || !(parent.form() instanceof Workload.Pod form)) {
            // Its plan is not known, or has a problem that its status shows; a change of the plan is reported.
            return true;
        }
        Set<String> now = new HashSet<>();
        for (TrainedModel model : models) {
            Owner owner = Owner.of(model.tree());
            try {
                announce(owner, model, parent, form, shared.pool());
            } catch (ServingException e) {
                if (e.code() != ErrorCode.NOT_FOUND) {
                    throw e;
                }
                return false; // the namespace is being removed
            }
            pools.configureModel(
                    owner,
                    name,
                    shared.with(model.storageUri(), Math.max(1, model.memoryBytes())),
                    TrainedModelPlan.wasReady(model));
            now.add(model.name());
        }
        Set<String> before = placed.put(key(namespace, name), Set.copyOf(now));
        if (before != null) {
            before.stream().filter(model -> !now.contains(model)).forEach(model -> leave(namespace, name, model));
        }
        return true;
    }

    /** Writes the Service of a model, if it is not as it shall be. */
    private void announce(Owner owner, TrainedModel model, Workload parent, Workload.Pod form, String pool) {
        String revision = PoolObjects.modelRevision(model.name());
        WorkloadState state = pools.modelState(model.namespace(), model.name());
        RevisionSettings settings = new RevisionSettings(
                model.service(),
                parent.containerConcurrency(),
                parent.timeout(),
                form.httpPort(),
                form.grpcPort(),
                state.failure() == null,
                0,
                false,
                model.name());
        ObjectNode wanted = PoolObjects.privateService(owner, model.service(), revision, pool, settings.toJson());
        ObjectNode there =
                objects.of(owner.uid()).get(new ObjectKey("Service", GatewayObjects.privateService(revision)));
        JsonNode metadata = wanted.path("metadata");
        if (there == null
                || !there.path("metadata").path("labels").equals(metadata.path("labels"))
                || !there.path("metadata")
                        .path("annotations")
                        .path(GatewayObjects.REVISION)
                        .equals(metadata.path("annotations").path(GatewayObjects.REVISION))) {
            Object unused = client.apply(ClusterKinds.SERVICE, wanted);
        }
    }

    /** Takes a model from the pool of a service, unless another service has it by now. */
    private void leave(String namespace, String service, String model) {
        boolean elsewhere = placed.entrySet().stream()
                .anyMatch(entry -> !entry.getKey().equals(key(namespace, service))
                        && entry.getKey().startsWith(namespace + "/")
                        && entry.getValue().contains(model));
        if (!elsewhere) {
            pools.forgetModel(namespace, model);
            client.delete(
                    ClusterKinds.SERVICE,
                    namespace,
                    GatewayObjects.privateService(PoolObjects.modelRevision(model)),
                    null);
        }
    }

    /** Deletes the Service of a model that is not in a pool. */
    private void withdraw(Owner model) {
        String name = GatewayObjects.privateService(PoolObjects.modelRevision(model.name()));
        if (objects.of(model.uid()).containsKey(new ObjectKey("Service", name))) {
            client.delete(ClusterKinds.SERVICE, model.namespace(), name, null);
        }
    }

    @Override
    public void forget(String namespace, String service) {
        Set<String> models = placed.remove(key(namespace, service));
        if (models != null) {
            models.forEach(model -> leave(namespace, service, model));
        }
        others.forget(namespace, service);
    }

    @Override
    public State state(String namespace, String service, String model) {
        Set<String> models = placed.get(key(namespace, service));
        if (models == null || !models.contains(model)) {
            return others.state(namespace, service, model);
        }
        WorkloadState state = pools.modelState(namespace, model);
        Failure failure = state.failure();
        return switch (state.phase()) {
            case READY, STANDBY -> new State(Phase.LOADED, "");
            case FAILED ->
                new State(
                        failure != null && failure.reason().equals(SharedModels.WAITS) ? Phase.WAITING : Phase.FAILED,
                        failure == null ? "" : failure.message());
            default -> new State(Phase.LOADING, "");
        };
    }

    @Override
    public void onChange(BiConsumer<String, String> listener) {
        pools.onModelChange(listener);
        others.onChange(listener);
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }
}
