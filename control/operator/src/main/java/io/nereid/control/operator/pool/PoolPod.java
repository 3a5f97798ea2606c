// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A pod of a pool as an EndpointSlice has it. Immutable.
 *
 * @param holder its name and addresses
 * @param ready whether it takes requests
 * @param ending whether it is being deleted
 * @param serving whether it still answers, although it may be ending
 */
record PoolPod(PoolObjects.Holder holder, boolean ready, boolean ending, boolean serving) {
    /** The pods in the EndpointSlices of a pool's Service, each once, by their names. */
    static List<PoolPod> read(Collection<ObjectNode> slices) {
        Map<String, PoolPod> pods = new LinkedHashMap<>();
        for (ObjectNode slice : slices) {
            if (slice.path("addressType").asText().equals("FQDN")) {
                continue;
            }
            int http = port(slice, GatewayObjects.HTTP_PORT);
            int grpc = port(slice, GatewayObjects.GRPC_PORT);
            for (JsonNode endpoint : slice.path("endpoints")) {
                String address = endpoint.path("addresses").path(0).asText("");
                JsonNode target = endpoint.path("targetRef");
                String name = target.path("name").asText(address);
                if (address.isEmpty() || http == 0) {
                    continue;
                }
                JsonNode conditions = endpoint.path("conditions");
                boolean ready = conditions.path("ready").asBoolean(true);
                pods.putIfAbsent(
                        name,
                        new PoolPod(
                                new PoolObjects.Holder(
                                        name,
                                        target.path("uid").asText(name),
                                        address,
                                        http,
                                        grpc,
                                        endpoint.path("zone").asText("")),
                                ready,
                                conditions.path("terminating").asBoolean(false),
                                conditions.path("serving").asBoolean(ready)));
            }
        }
        return List.copyOf(pods.values());
    }

    private static int port(ObjectNode slice, String name) {
        for (JsonNode port : slice.path("ports")) {
            if (port.path("name").asText().equals(name)) {
                return port.path("port").asInt();
            }
        }
        return 0;
    }
}
