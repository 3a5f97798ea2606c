// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.ObservedState.Traffic;

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
 * @param traffic statistics of the requests of the last minute; of several gateways together the greatest latency
 */
public record RevisionLoad(
        String namespace,
        String revision,
        int replicas,
        double concurrency,
        double requestsPerSecond,
        int waiting,
        int active,
        Traffic traffic) {
    /** The load of a revision without recent requests. */
    public RevisionLoad(
            String namespace,
            String revision,
            int replicas,
            double concurrency,
            double requestsPerSecond,
            int waiting,
            int active) {
        this(namespace, revision, replicas, concurrency, requestsPerSecond, waiting, active, Traffic.NONE);
    }

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
                active + other.active,
                new Traffic(
                        traffic.requests() + other.traffic.requests(),
                        traffic.errors() + other.traffic.errors(),
                        Math.max(traffic.p99Millis(), other.traffic.p99Millis())));
    }

    void write(ObjectNode tree) {
        tree.put("namespace", namespace);
        tree.put("revision", revision);
        tree.put("replicas", replicas);
        tree.put("concurrency", concurrency);
        tree.put("requestsPerSecond", requestsPerSecond);
        tree.put("waiting", waiting);
        tree.put("active", active);
        if (traffic.requests() > 0) {
            tree.putObject("lastMinute")
                    .put("requests", traffic.requests())
                    .put("errors", traffic.errors())
                    .put("p99Millis", traffic.p99Millis());
        }
    }

    static RevisionLoad read(JsonNode tree) {
        JsonNode last = tree.path("lastMinute");
        return new RevisionLoad(
                tree.path("namespace").asText(),
                tree.path("revision").asText(),
                tree.path("replicas").asInt(),
                tree.path("concurrency").asDouble(),
                tree.path("requestsPerSecond").asDouble(),
                tree.path("waiting").asInt(),
                tree.path("active").asInt(),
                new Traffic(
                        last.path("requests").asLong(),
                        last.path("errors").asLong(),
                        last.path("p99Millis").asDouble()));
    }
}
