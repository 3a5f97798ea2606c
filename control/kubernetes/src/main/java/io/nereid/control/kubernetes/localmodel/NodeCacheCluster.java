// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Nodes and what their agents report. Immutable as long as the trees are not modified.
 */
public final class NodeCacheCluster {
    private final Map<String, ObjectNode> groups = new TreeMap<>();
    private final Map<String, ObjectNode> nodes = new TreeMap<>();
    private final Map<String, ObjectNode> reports = new TreeMap<>();

    /**
     * @param groups the LocalModelNodeGroups
     * @param nodes the nodes of the cluster
     * @param reports the LocalModelNodes
     */
    public NodeCacheCluster(List<ObjectNode> groups, List<ObjectNode> nodes, List<ObjectNode> reports) {
        groups.forEach(one -> this.groups.put(NodeCachePlan.name(one), one));
        nodes.forEach(one -> this.nodes.put(NodeCachePlan.name(one), one));
        reports.forEach(one -> this.reports.put(NodeCachePlan.name(one), one));
    }

    /** The groups by name. */
    Map<String, ObjectNode> groups() {
        return groups;
    }

    /** The names of the nodes of a group, in their order; none for an unknown group. */
    List<String> nodes(String group) {
        ObjectNode found = groups.get(group);
        List<String> names = new ArrayList<>();
        if (found != null) {
            JsonNode required = NodeSelection.of(found);
            nodes.forEach((name, node) -> {
                if (NodeSelection.selects(required, node)) {
                    names.add(name);
                }
            });
        }
        return names;
    }

    private boolean isReady(String node) {
        ObjectNode found = nodes.get(node);
        if (found != null) {
            for (JsonNode condition : found.path("status").path("conditions")) {
                if (condition.path("type").asText().equals("Ready")) {
                    return condition.path("status").asText().equals("True");
                }
            }
        }
        return false;
    }

    /** What an agent reports of a model: its state in KServe's words for nodes, and a message, which may be empty. */
    record State(String state, String message) {}

    /** The state of a model on a node that shall keep it. */
    State state(NodeCachePlan.Model model, String group, String node) {
        if (!isReady(node)) {
            return new State("NodeNotReady", "");
        }
        ObjectNode report = reports.get(node);
        JsonNode status = report == null ? MissingNode.getInstance() : report.path("status");
        String key = report == null ? "" : key(report, model, group);
        return new State(
                switch (status.path("modelStatus").path(key).asText("")) {
                    case "ModelDownloaded" -> "NodeDownloaded";
                    case "ModelDownloading" -> "NodeDownloading";
                    case "ModelDownloadError" -> "NodeDownloadError";
                    default -> "NodeDownloadPending";
                },
                status.path("messages").path(key).asText(""));
    }

    /** The key of a model in a report; empty when the node has not been given it, or has been given another one of its name. */
    private static String key(ObjectNode report, NodeCachePlan.Model model, String group) {
        JsonNode listed = report.path("spec").path("localModels");
        List<String> keys = CachedModels.statusKeys(listed);
        for (int i = 0; i < keys.size(); i++) {
            JsonNode one = listed.path(i);
            if (one.path("modelName").asText().equals(model.name())
                    && one.path("namespace").asText("").equals(model.namespace())
                    && one.path("nodeGroup").asText("").equals(group)
                    && one.path("sourceModelUri").asText().equals(model.uri())) {
                return keys.get(i);
            }
        }
        return "";
    }

    /** The states of a model on the nodes of a group, by node. */
    Map<String, State> states(NodeCachePlan.Model model, String group) {
        Map<String, State> states = new LinkedHashMap<>();
        nodes(group).forEach(node -> states.put(node, state(model, group, node)));
        return states;
    }

    /** Whether the downloads of a group have ended, one of them well: pods may start. */
    boolean isUsable(NodeCachePlan.Model model, String group) {
        boolean one = false;
        for (State state : states(model, group).values()) {
            if (state.state().equals("NodeDownloadPending") || state.state().equals("NodeDownloading")) {
                return false;
            }
            one |= state.state().equals("NodeDownloaded");
        }
        return one;
    }
}
