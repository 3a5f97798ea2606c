// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The load of one revision, at one gateway or at all of them. Immutable.
 *
 * @param namespace the namespace of the revision
 * @param revision its name
 * @param replicas the pods that take requests, as far as the gateway knows
 * @param concurrency the mean number of requests in flight, waiting ones included, over the last second
 * @param requestsPerSecond how many arrived in the last second
 * @param waiting requests that wait now
 * @param active requests in flight now, waiting ones included
 */
public record RevisionLoad(
        String namespace,
        String revision,
        int replicas,
        double concurrency,
        double requestsPerSecond,
        int waiting,
        int active) {
    /** Whether requests wait although there is no pod, so that the revision has to be scaled up. */
    public boolean asleep() {
        return replicas == 0 && waiting > 0;
    }

    /** The load of two gateways together; the one with more pods knows of the newer state or of no other. */
    RevisionLoad plus(RevisionLoad other) {
        return new RevisionLoad(
                namespace,
                revision,
                Math.max(replicas, other.replicas),
                concurrency + other.concurrency,
                requestsPerSecond + other.requestsPerSecond,
                waiting + other.waiting,
                active + other.active);
    }

    void write(ObjectNode tree) {
        tree.put("namespace", namespace);
        tree.put("revision", revision);
        tree.put("replicas", replicas);
        tree.put("concurrency", concurrency);
        tree.put("requestsPerSecond", requestsPerSecond);
        tree.put("waiting", waiting);
        tree.put("active", active);
    }

    static RevisionLoad read(JsonNode tree) {
        return new RevisionLoad(
                tree.path("namespace").asText(),
                tree.path("revision").asText(),
                tree.path("replicas").asInt(),
                tree.path("concurrency").asDouble(),
                tree.path("requestsPerSecond").asDouble(),
                tree.path("waiting").asInt(),
                tree.path("active").asInt());
    }
}
