// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.operator.cluster.ClusterClient;
import org.jspecify.annotations.Nullable;

/**
 * Reads what credentials for stores are made of: secrets, service accounts, settings. Each call is a request to the API
 * server; nothing is kept. Thread-safe.
 */
public final class CredentialObjects {
    private final ClusterClient client;
    private final String home;

    /**
     * @param client used by this object, closed by the caller
     * @param home the namespace of the settings
     */
    public CredentialObjects(KubernetesClient client, String home) {
        this.client = new ClusterClient(client);
        this.home = home;
    }

    /** The settings of a namespace. */
    public InferenceServiceConfig settings(String namespace) {
        ObjectNode map = client.get(ResourceKinds.CONFIG_MAP, home, InferenceServiceConfig.CONFIG_MAP);
        return map == null
                ? InferenceServiceConfig.defaults()
                : InferenceServiceConfig.read(map).forNamespace(namespace);
    }

    /**
     * A Secret or a ServiceAccount; null if it does not exist. A model that needs no credentials needs no rights either:
     * a service account {@code default} that may not be read counts as one without secrets.
     *
     * @throws ServingException PERMISSION_DENIED with the command that gives the right
     */
    public @Nullable ObjectNode get(ResourceKind kind, String namespace, String name) {
        try {
            return client.get(kind, namespace, name);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED) {
                throw e;
            }
            if (kind.equals(ResourceKinds.SERVICE_ACCOUNT) && name.equals("default")) {
                return null;
            }
            throw ServingException.wrap(
                    ErrorCode.PERMISSION_DENIED,
                    "the agents of nodes may not read the " + kind.kind() + " " + name + " in namespace " + namespace,
                    "kubectl create rolebinding nereid-node-agent -n " + namespace
                            + " --clusterrole=" + (home.equals("nereid") ? "nereid" : "nereid-" + home)
                            + "-node-agent-credentials --serviceaccount=" + home
                            + ":nereid-node-agent",
                    e);
        }
    }
}
