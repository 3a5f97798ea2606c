// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;

/** The statuses of caches and groups, in KServe's fields, with reasons as texts and the time of the last use. Stateless. */
public final class NodeCacheStatus {
    private NodeCacheStatus() {}

    /**
     * The status of a cache.
     *
     * @param now the current time
     */
    public static ObjectNode of(NodeCachePlan.Model model, NodeCacheCluster cluster, Instant now) {
        ObjectNode status = Trees.object();
        ObjectNode nodes = Trees.object();
        ObjectNode messages = Trees.object();
        int total = 0;
        int available = 0;
        int failed = 0;
        for (String group : model.groups()) {
            for (Map.Entry<String, NodeCacheCluster.State> one :
                    cluster.states(model, group).entrySet()) {
                String state = one.getValue().state();
                total++;
                available += state.equals("NodeDownloaded") ? 1 : 0;
                failed += state.equals("NodeDownloadError") ? 1 : 0;
                // Of a node in two groups the one that is not complete counts.
                if (!nodes.has(one.getKey())
                        || nodes.path(one.getKey()).asText().equals("NodeDownloaded")) {
                    nodes.put(one.getKey(), state);
                }
                if (!one.getValue().message().isEmpty()) {
                    messages.put(one.getKey(), one.getValue().message());
                }
            }
            if (cluster.nodes(group).isEmpty()) {
                messages.put(
                        group,
                        "no node is in the LocalModelNodeGroup " + group + "; label one, or change its"
                                + " persistentVolumeSpec.nodeAffinity");
            }
        }
        model.refusals().forEach(messages::put);
        status.set("nodeStatus", nodes);
        ObjectNode copies = status.putObject("copies").put("total", total);
        if (available > 0) {
            copies.put("available", available);
        }
        if (failed > 0) {
            copies.put("failed", failed);
        }
        if (!messages.isEmpty()) {
            status.set("messages", messages);
        }
        ObjectNode before = model.cache();
        if (!model.services().isEmpty()) {
            ArrayNode users = status.putArray("inferenceServices");
            for (String service : model.services()) {
                int slash = service.indexOf('/');
                users.addObject()
                        .put("namespace", service.substring(0, slash))
                        .put("name", service.substring(slash + 1));
            }
        } else if (!before.path("status").path("inferenceServices").isEmpty()) {
            status.put("lastUsed", now.truncatedTo(ChronoUnit.SECONDS).toString());
        } else if (before.path("status").has("lastUsed")) {
            status.set("lastUsed", before.path("status").path("lastUsed"));
        }
        return status;
    }

    /**
     * The status of a group.
     *
     * @param problem why its objects cannot be made; empty for none
     */
    public static ObjectNode ofGroup(ObjectNode group, NodeCachePlan plan, String problem) {
        String name = NodeCachePlan.name(group);
        long used = plan.used().getOrDefault(name, 0L);
        long limit = plan.limits().getOrDefault(name, 0L);
        ObjectNode status = Trees.object();
        status.put("used", Long.toString(used));
        status.put("available", Long.toString(Math.max(0, limit - used)));
        if (!problem.isEmpty()) {
            status.put("message", problem);
        }
        return status;
    }
}
