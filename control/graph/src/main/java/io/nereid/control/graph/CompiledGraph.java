// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceGraph.Step;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** An InferenceGraph whose conditions are parsed and whose node references are resolved. Immutable. */
record CompiledGraph(Map<String, Node> nodes) {
    /** KServe's router types. */
    enum Kind {
        SEQUENCE("Sequence"),
        SWITCH("Switch"),
        ENSEMBLE("Ensemble"),
        SPLITTER("Splitter");

        private final String text;

        Kind(String text) {
            this.text = text;
        }

        /** The name in the resource. */
        String text() {
            return text;
        }
    }

    record Node(String name, Kind kind, List<CompiledStep> steps) {}

    /**
     * A step of a node.
     *
     * @param step the step as the resource has it
     * @param key the key of the step's response in an Ensemble's merged response: the step's name, else its index
     * @param condition the parsed condition; null for none
     */
    record CompiledStep(Step step, String key, @Nullable GjsonPath condition) {}

    Node root() {
        return node(InferenceGraph.ROOT);
    }

    Node node(@Nullable String name) {
        Node node = name == null ? null : nodes.get(name);
        if (node == null) {
            throw ServingException.invalidArgument("the graph has no node '" + name + "'");
        }
        return node;
    }

    /**
     * Parses the conditions and checks that all nodes that steps refer to exist.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown router type, an unreadable condition or a missing node
     */
    static CompiledGraph compile(Map<String, InferenceGraph.Node> spec) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        spec.forEach((name, node) -> {
            Kind kind = switch (node.routerType()) {
                case "Sequence" -> Kind.SEQUENCE;
                case "Switch" -> Kind.SWITCH;
                case "Ensemble" -> Kind.ENSEMBLE;
                case "Splitter" -> Kind.SPLITTER;
                default ->
                    throw ServingException.invalidArgument("node '" + name + "' has the routerType '"
                            + node.routerType() + "' (expected Sequence, Splitter, Ensemble or Switch)");
            };
            List<CompiledStep> steps = new ArrayList<>();
            for (Step step : node.steps()) {
                steps.add(place(name, steps.size(), step));
            }
            nodes.put(name, new Node(name, kind, List.copyOf(steps)));
        });
        CompiledGraph graph = new CompiledGraph(nodes);
        for (Node node : nodes.values()) {
            for (CompiledStep step : node.steps) {
                if (step.step.nodeName() != null) {
                    Node unused = graph.node(step.step.nodeName());
                }
            }
        }
        Node unused = graph.root();
        return graph;
    }

    private static CompiledStep place(String node, int index, Step step) {
        String key = step.name() == null || step.name().isEmpty() ? Integer.toString(index) : step.name();
        if (step.condition() == null || step.condition().isEmpty()) {
            return new CompiledStep(step, key, null);
        }
        try {
            return new CompiledStep(step, key, GjsonPath.parse(step.condition()));
        } catch (ServingException e) {
            throw ServingException.of(
                    e.code(), "step " + key + " of node '" + node + "': " + e.getMessage(), e.remedy());
        }
    }
}
