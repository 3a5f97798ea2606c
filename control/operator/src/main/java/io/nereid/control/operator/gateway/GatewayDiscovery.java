// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.cluster.ObjectCache;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;

/**
 * Finds the gateways of an installation by the EndpointSlices of their Service, and tells {@link GatewayStatistics} of
 * them. A gateway that drains still has requests, and counts for the load; only one that is ready serves. Thread-safe.
 */
public final class GatewayDiscovery implements AutoCloseable {
    private final ObjectCache slices;
    private final GatewayStatistics statistics;
    private volatile Runnable listener = () -> {};
    private volatile boolean serving;

    /**
     * @param namespace the namespace of the gateways
     * @param service the name of their Service, which has a port {@value GatewayObjects#STATISTICS_PORT}
     */
    public GatewayDiscovery(ClusterClient client, String namespace, String service, GatewayStatistics statistics) {
        this.statistics = statistics;
        this.slices = new ObjectCache(
                client,
                ClusterKinds.ENDPOINT_SLICE,
                Set.of(namespace),
                GatewayObjects.SLICE_SERVICE + "=" + service,
                slice -> slice);
    }

    /**
     * Starts the watch and waits until all gateways are known.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        AutoCloseable unused = slices.listen(this::changed);
        slices.start(limit);
    }

    /** Whether a gateway takes requests. */
    public boolean isServing() {
        return serving;
    }

    /** Sets what is called on a thread of the watch when {@link #isServing} has changed; it does not block. */
    public void onServing(Runnable listener) {
        this.listener = listener;
    }

    private void changed(Change.Kind change, ObjectNode slice) {
        boolean ready = false;
        Set<GatewayStatistics.Address> addresses = new HashSet<>();
        for (ObjectNode one : slices.all()) {
            int port = port(one);
            for (JsonNode endpoint : one.path("endpoints")) {
                JsonNode conditions = endpoint.path("conditions");
                String host = endpoint.path("addresses").path(0).asText("");
                ready |= !host.isEmpty() && conditions.path("ready").asBoolean(true);
                if (port > 0 && !host.isEmpty() && conditions.path("serving").asBoolean(true)) {
                    addresses.add(new GatewayStatistics.Address(host, port));
                }
            }
        }
        statistics.gateways(addresses);
        if (serving != ready) {
            serving = ready;
            listener.run();
        }
    }

    private static int port(ObjectNode slice) {
        for (JsonNode port : slice.path("ports")) {
            if (port.path("name").asText().equals(GatewayObjects.STATISTICS_PORT)) {
                return port.path("port").asInt();
            }
        }
        return 0;
    }

    @Override
    public void close() {
        slices.close();
    }
}
