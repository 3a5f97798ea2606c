// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import java.util.Set;

/**
 * Options of a gateway. Immutable.
 *
 * @param namespace the gateway's own namespace, which has the ConfigMap {@code inferenceservice-config}
 * @param watchNamespaces the namespaces whose services it serves; empty for all
 * @param healthPort the port of probes and metrics; 0 for any free one
 * @param statisticsPort the port at which it reports its load; 0 for any free one
 * @param zone the zone of its node, whose pods it prefers; empty when it is not known
 */
public record GatewayOptions(
        String namespace, Set<String> watchNamespaces, int healthPort, int statisticsPort, String zone) {
    /** Options of a gateway whose zone is not known. */
    public GatewayOptions(String namespace, Set<String> watchNamespaces, int healthPort, int statisticsPort) {
        this(namespace, watchNamespaces, healthPort, statisticsPort, "");
    }

    public GatewayOptions {
        watchNamespaces = Set.copyOf(watchNamespaces);
    }
}
