// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Services that work together: {@code serving.kserve.io/v1alpha1 InferenceGraph}. Immutable as long as nobody changes the trees.
 *
 * @param metadata who it is
 * @param nodes by name, in their order; {@link #ROOT} is the entry
 * @param timeout seconds for one request; null for the default
 * @param timeouts of the router
 * @param minReplicas null for the default of 1
 * @param maxReplicas 0 for no limit
 * @param scaleTarget null for the default
 * @param scaleMetric null for the default
 * @param resources of the router
 * @param status as it was written last; empty before
 * @param tree the whole resource
 */
public record InferenceGraph(
        ObjectMeta metadata,
        Map<String, Node> nodes,
        @Nullable Long timeout,
        Timeouts timeouts,
        @Nullable Integer minReplicas,
        int maxReplicas,
        @Nullable Integer scaleTarget,
        @Nullable String scaleMetric,
        Container.Resources resources,
        ObjectNode status,
        ObjectNode tree) {

    /** The name of the first node. */
    public static final String ROOT = "root";

    /**
     * Reads a graph.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static InferenceGraph read(ObjectNode resource) {
        Fields fields = Fields.of(resource);
        Fields spec = fields.object("spec");
        return new InferenceGraph(
                ObjectMeta.read(resource),
                readNodes(spec.object("nodes")),
                spec.number("timeout"),
                Timeouts.read(spec.object("routerTimeouts")),
                spec.integer("minReplicas"),
                spec.integer("maxReplicas", 0),
                spec.integer("scaleTarget"),
                spec.text("scaleMetric"),
                Container.Resources.read(spec.object("resources")),
                fields.object("status").tree(),
                resource);
    }

    /**
     * Reads the nodes alone, such as those that a router is given as {@code {"nodes":{…}}}.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static Map<String, Node> readNodes(ObjectNode spec) {
        return readNodes(Fields.of(spec).object("nodes"));
    }

    private static Map<String, Node> readNodes(Fields nodes) {
        Map<String, Node> all = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry : nodes.tree().properties()) {
            Fields node = nodes.object(entry.getKey());
            all.put(entry.getKey(), new Node(node.text("routerType", ""), node.list("steps", Step::read)));
        }
        return Collections.unmodifiableMap(all);
    }

    /**
     * A node.
     *
     * @param routerType {@code Sequence}, {@code Splitter}, {@code Ensemble} or {@code Switch}
     */
    public record Node(String routerType, List<Step> steps) {}

    /**
     * A step. One of {@code nodeName}, {@code serviceName} and {@code serviceUrl} is not null.
     *
     * @param name null for none
     * @param data {@code $request} or {@code $response}; null for the former
     * @param weight percent, of a Splitter's step; null otherwise
     * @param condition a path; null for none
     * @param hard whether its failure ends the node's work: {@code dependency: Hard}
     * @param mapPredictionsToInstances whether the former answer's predictions become its instances
     */
    public record Step(
            @Nullable String name,
            @Nullable String nodeName,
            @Nullable String serviceName,
            @Nullable String serviceUrl,
            @Nullable String data,
            @Nullable Long weight,
            @Nullable String condition,
            boolean hard,
            boolean mapPredictionsToInstances) {
        static Step read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new Step(
                    fields.text("name"),
                    fields.text("nodeName"),
                    fields.text("serviceName"),
                    fields.text("serviceUrl"),
                    fields.text("data"),
                    fields.number("weight"),
                    fields.text("condition"),
                    "Hard".equals(fields.text("dependency")),
                    fields.flag("mapPredictionsToInstances", false));
        }
    }

    /**
     * Seconds.
     *
     * @param serviceClient for one call of a step; null for no limit
     */
    public record Timeouts(
            long serverRead,
            long serverWrite,
            long serverIdle,
            @Nullable Long serviceClient) {
        static Timeouts read(Fields fields) {
            return new Timeouts(
                    fields.number("serverRead", 60),
                    fields.number("serverWrite", 60),
                    fields.number("serverIdle", 180),
                    fields.number("serviceClient"));
        }
    }
}
