// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.admission.InferenceServiceDefaulter;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.kubernetes.cluster.ChosenRuntime;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache.Role;
import java.util.LinkedHashSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Which runtime a service gets in a cluster: with the runtimes of the cluster, by the code that the operator and the local
 * control plane decide with. Stateless.
 */
final class ClusterSelection {
    private ClusterSelection() {}

    /**
     * Explains the selection, in the form of the control API.
     *
     * @param home the operator's namespace, whose settings count for all services
     * @param service a stored service with its status, or one of a file
     */
    static ObjectNode explain(ControlClient client, String home, String namespace, ObjectNode service) {
        RuntimeCatalogCache runtimes = RuntimeCatalogCache.ofCluster(home);
        collect(client, runtimes, Role.CLUSTER_RUNTIME, ResourceKinds.CLUSTER_SERVING_RUNTIME, "");
        collect(client, runtimes, Role.RUNTIME, ResourceKinds.SERVING_RUNTIME, namespace);
        for (String one : new LinkedHashSet<>(List.of(home, namespace))) {
            put(client, runtimes, Role.CONFIG, ResourceKinds.CONFIG_MAP, one, InferenceServiceConfig.CONFIG_MAP);
        }
        put(client, runtimes, Role.NAMESPACE, ResourceKinds.NAMESPACE, "", namespace);
        RuntimeCatalog catalog = runtimes.of(namespace);
        ObjectNode whole = service.deepCopy();
        new InferenceServiceDefaulter(catalog.config()).apply(whole, null);
        RuntimeSelection selection = RuntimeSelection.of(InferenceService.read(whole), catalog);
        ObjectNode tree = tree(selection);
        ChosenRuntime.keep(whole, catalog, service.path("status"), true);
        String kept = whole.at("/spec/predictor/model/runtime").asText("");
        if (!kept.isEmpty() && !kept.equals(tree.path("chosen").asText(""))) {
            tree.put("kept", kept);
        }
        return tree;
    }

    /** Adds what may choose the engine; it may be missing, or not be for the eyes of the user. */
    private static void put(
            ControlClient client,
            RuntimeCatalogCache runtimes,
            Role role,
            ResourceKind kind,
            String namespace,
            String name) {
        try {
            JsonNode found = client.find(ControlClient.path(kind, namespace, name));
            if (found != null) {
                runtimes.put(role, (ObjectNode) found, false);
            }
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED) {
                throw e;
            }
            client.warn("what it says about the engine is not considered: " + e.getMessage());
        }
    }

    private static void collect(
            ControlClient client, RuntimeCatalogCache runtimes, Role role, ResourceKind kind, String namespace) {
        for (JsonNode item :
                client.get(ControlClient.path(kind, namespace, null)).path("items")) {
            runtimes.put(role, (ObjectNode) item, false);
        }
    }

    /** A selection in the form of the control API; null for a service with custom containers. */
    static ObjectNode tree(@Nullable RuntimeSelection selection) {
        ObjectNode tree = ControlClient.JSON.createObjectNode();
        if (selection == null) {
            return tree.put("message", "the predictor has custom containers, so a runtime is not selected");
        }
        ServingRuntime chosen = selection.chosen();
        tree.put("chosen", chosen == null ? null : chosen.name());
        tree.put("protocol", selection.protocol()).put("reason", selection.reason());
        tree.put("message", selection.message());
        tree.set("considered", ControlClient.JSON.valueToTree(selection.considered()));
        return tree;
    }
}
