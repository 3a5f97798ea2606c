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
 * KServe's {@code serving.kserve.io/v1alpha1 InferenceGraph}: a graph of routing nodes whose steps call services.
 * Immutable as long as the JSON trees are not modified.
 *
 * @param metadata name, namespace, labels and annotations
 * @param nodes nodes by name, in their order; {@link #ROOT} is the entry
 * @param timeout timeout of one request in seconds; null for the default
 * @param timeouts the router's timeouts
 * @param minReplicas null for the default of 1
 * @param maxReplicas 0 for no limit
 * @param scaleTarget null for the default
 * @param scaleMetric null for the default
 * @param resources the router's requests and limits
 * @param status the last written status; empty before the first one
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

    /** The name of the entry node. */
    public static final String ROOT = "root";

    /**
     * Reads a graph.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static InferenceGraph read(ObjectNode resource) {
        FieldReader fields = FieldReader.of(resource);
        FieldReader spec = fields.object("spec");
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
     * Reads only the nodes, such as those that KServe passes to a router as {@code {"nodes":{…}}}.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static Map<String, Node> readNodes(ObjectNode spec) {
        return readNodes(FieldReader.of(spec).object("nodes"));
    }

    private static Map<String, Node> readNodes(FieldReader nodes) {
        Map<String, Node> all = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry : nodes.tree().properties()) {
            FieldReader node = nodes.object(entry.getKey());
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
     * @param data {@code $request} or {@code $response}; null for {@code $request}
     * @param weight percentage of the traffic for a step of a Splitter; null otherwise
     * @param condition a gjson path that decides whether the step is taken; null for none
     * @param hard {@code dependency: Hard}: whether a failure of the step fails the node
     * @param mapPredictionsToInstances whether the {@code predictions} of the previous response become the {@code
     *     instances} of this step's request
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
            FieldReader fields = new FieldReader(tree, path);
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
     * The router's timeouts in seconds.
     *
     * @param serviceClient timeout of one call of a step; null for none
     */
    public record Timeouts(
            long serverRead,
            long serverWrite,
            long serverIdle,
            @Nullable Long serviceClient) {
        static Timeouts read(FieldReader fields) {
            return new Timeouts(
                    fields.number("serverRead", 60),
                    fields.number("serverWrite", 60),
                    fields.number("serverIdle", 180),
                    fields.number("serviceClient"));
        }
    }
}
