// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.objects;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.operator.cluster.ClusterClient;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads what is there of a service, and what its pods need. Secrets are never kept in memory. Thread-safe. */
public final class ClusterReader {
    private static final ResourceStore.Type SERVICE_ACCOUNTS =
            new ResourceStore.Type(ResourceKinds.SERVICE_ACCOUNT.group(), ResourceKinds.SERVICE_ACCOUNT.plural());

    private final ClusterClient client;
    private final ResourceStore store;
    private final ServiceObjects objects;
    private final String home;

    /**
     * @param store has the service accounts
     * @param home the operator's own namespace
     */
    public ClusterReader(ClusterClient client, ResourceStore store, ServiceObjects objects, String home) {
        this.client = client;
        this.store = store;
        this.objects = objects;
        this.home = home;
    }

    /** What is there of a stored service. The functions of the result are for one thread. */
    public ObservedCluster observe(ObjectNode service) {
        JsonNode metadata = service.path("metadata");
        String namespace = metadata.path("namespace").asText();
        Map<String, ObjectNode> owned = new HashMap<>();
        objects.of(metadata.path("uid").asText())
                .forEach((key, object) -> owned.put(Trees.key(key.kind(), key.name()), object));
        String models = ModelConfigMap.name(metadata.path("name").asText());
        if (ModelConfigMap.mayBelongTo(service)) {
            ObjectNode map = client.get(ResourceKinds.CONFIG_MAP, namespace, models);
            if (map != null) {
                owned.put(Trees.key("ConfigMap", models), map);
            }
        }
        // Secrets are read when a service account names them.
        Map<String, ObjectNode> secrets = new HashMap<>();
        return new ObservedCluster(
                owned,
                objects.pods(namespace, metadata.path("name").asText()),
                service.path("status"),
                secret -> secrets.computeIfAbsent(secret, key -> client.get(ResourceKinds.SECRET, namespace, key)),
                account -> store.get(new ResourceStore.Key(SERVICE_ACCOUNTS, namespace, account)),
                this::settings);
    }

    /** A ConfigMap of the operator's own namespace; null if it does not exist. */
    public @Nullable ObjectNode settings(String name) {
        return client.get(ResourceKinds.CONFIG_MAP, home, name);
    }
}
