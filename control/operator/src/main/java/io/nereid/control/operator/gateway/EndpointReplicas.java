// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;

/**
 * Reads the replicas that take new requests from EndpointSlices ({@code discovery.k8s.io/v1}): endpoints that are ready
 * and not terminating. As the API says, a missing {@code ready} is true, a missing {@code terminating} false, and the
 * first address of an endpoint is the one to use. A pod with addresses of both families counts once, by its IPv4
 * address.
 *
 * <p>The pods in the gateway's own zone are preferred when they are at least as many as those of the zones on average, so that
 * they are not overloaded. Where a slice has hints ({@code hints.forZones}), which Kubernetes gives by the same reasoning, those
 * decide. Stateless.
 */
final class EndpointReplicas {
    private EndpointReplicas() {}

    /**
     * Reads the replicas of a Service, in an order that does not depend on that of the slices.
     *
     * @param slices all of the Service's
     * @param http the port for HTTP unless a slice has a port named {@code http}; 0 for none
     * @param grpc the port for gRPC unless a slice has a port named {@code grpc}; 0 for none
     * @param zone the gateway's zone; empty when it is not known
     */
    static List<Replica> of(Collection<ObjectNode> slices, int http, int grpc, String zone) {
        List<ObjectNode> sorted = new ArrayList<>(slices);
        sorted.sort(Comparator.comparing(
                        (ObjectNode slice) -> slice.path("addressType").asText())
                .thenComparing(slice -> slice.path("metadata").path("name").asText()));
        Map<String, Found> replicas = new LinkedHashMap<>();
        for (ObjectNode slice : sorted) {
            if (slice.path("addressType").asText().equals("FQDN")) {
                continue;
            }
            int httpPort = port(slice, GatewayObjects.HTTP_PORT, http);
            int grpcPort = port(slice, GatewayObjects.GRPC_PORT, grpc);
            if (httpPort == 0 && grpcPort == 0) {
                continue;
            }
            for (JsonNode endpoint : slice.path("endpoints")) {
                String address = endpoint.path("addresses").path(0).asText("");
                if (address.isEmpty() || !takesRequests(endpoint.path("conditions"))) {
                    continue;
                }
                JsonNode pod = endpoint.path("targetRef");
                String key = pod.path("uid").asText(pod.path("name").asText(""));
                replicas.putIfAbsent(
                        key.isEmpty() ? address + ":" + httpPort + ":" + grpcPort : key,
                        new Found(
                                address,
                                httpPort,
                                grpcPort,
                                endpoint.path("zone").asText(""),
                                zones(endpoint.path("hints").path("forZones"))));
            }
        }
        Predicate<Found> preferred = preferred(replicas.values(), zone);
        return replicas.values().stream()
                .map(found -> new Replica(found.address, found.http, found.grpc, preferred.test(found)))
                .toList();
    }

    /**
     * An endpoint that takes requests.
     *
     * @param zone empty when it is not known
     * @param hints the zones for which it is; empty for no hints
     */
    private record Found(String address, int http, int grpc, String zone, Set<String> hints) {}

    private static Set<String> zones(JsonNode hints) {
        Set<String> zones = new TreeSet<>();
        hints.forEach(hint -> zones.add(hint.path("name").asText()));
        return zones;
    }

    /** Whether an endpoint is taken before others. */
    private static Predicate<Found> preferred(Collection<Found> all, String zone) {
        if (zone.isEmpty() || all.isEmpty()) {
            return found -> true;
        }
        if (all.stream().noneMatch(found -> found.hints.isEmpty())) {
            return all.stream().anyMatch(found -> found.hints.contains(zone))
                    ? found -> found.hints.contains(zone)
                    : found -> true;
        }
        Set<String> zones = new TreeSet<>();
        all.forEach(found -> zones.add(found.zone));
        long near = all.stream().filter(found -> found.zone.equals(zone)).count();
        return near * zones.size() >= all.size() ? found -> found.zone.equals(zone) : found -> true;
    }

    private static boolean takesRequests(JsonNode conditions) {
        return conditions.path("ready").asBoolean(true)
                && !conditions.path("terminating").asBoolean(false);
    }

    private static int port(ObjectNode slice, String name, int otherwise) {
        for (JsonNode port : slice.path("ports")) {
            if (port.path("name").asText().equals(name)) {
                return port.path("port").asInt(otherwise);
            }
        }
        return otherwise;
    }
}
