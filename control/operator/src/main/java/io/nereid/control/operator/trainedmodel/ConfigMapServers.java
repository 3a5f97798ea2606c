// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.trainedmodel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.State;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.plane.trainedmodel.TrainedModelServers;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * Pods that read their models from the ConfigMap of their service, which the kubelet brings to them: Nereid's engine by
 * itself, other servers by KServe's agent. They do not report what they have loaded. Thread-safe.
 */
public final class ConfigMapServers implements TrainedModelServers {
    private final ClusterClient client;

    public ConfigMapServers(ClusterClient client) {
        this.client = client;
    }

    @Override
    public boolean place(ObjectNode service, List<TrainedModel> models) {
        Owner owner = Owner.of(service);
        String name = ModelConfigMap.name(owner.name());
        String text = ModelConfigMap.models(models);
        ObjectNode there = client.get(ResourceKinds.CONFIG_MAP, owner.namespace(), name);
        if (there != null) {
            if (there.path("data").path(ModelConfigMap.FILE).asText("").equals(text)) {
                return true;
            }
            boolean own = false;
            for (var reference : there.path("metadata").path("ownerReferences")) {
                own |= reference.path("uid").asText().equals(owner.uid());
            }
            if (!own && !there.path("metadata").path("ownerReferences").isEmpty()) {
                return false; // of a former service of this name, and about to be removed
            }
        }
        ObjectNode map = owner.object("v1", "ConfigMap", name, Map.of(), Map.of());
        map.putObject("data").put(ModelConfigMap.FILE, text);
        try {
            ObjectNode unused = client.apply(ResourceKinds.CONFIG_MAP, map);
            return true;
        } catch (ServingException e) {
            if (e.code() == ErrorCode.NOT_FOUND) {
                return false; // the namespace is being removed
            }
            throw e;
        }
    }

    @Override
    public State state(String namespace, String service, String model) {
        return State.UNKNOWN;
    }

    @Override
    public void onChange(BiConsumer<String, String> listener) {
        // Nothing is reported.
    }
}
