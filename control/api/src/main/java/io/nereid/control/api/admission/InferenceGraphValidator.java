// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceGraph.Node;
import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.control.api.ValidationErrors;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Validates an InferenceGraph: its nodes, their steps, and that they do not form a cycle. Confined to one admission.
 */
final class InferenceGraphValidator {
    private final AdmissionContext context;
    private final ValidationErrors problems;
    private final List<String> warnings;

    InferenceGraphValidator(AdmissionContext context, ValidationErrors problems, List<String> warnings) {
        this.context = context;
        this.problems = problems;
        this.warnings = warnings;
    }

    void check(ObjectNode resource) {
        InferenceGraph graph = InferenceGraph.read(resource);
        if (!graph.nodes().containsKey(InferenceGraph.ROOT)) {
            problems.add("spec.nodes", "there is no node " + InferenceGraph.ROOT + ", which is the entry");
        }
        graph.nodes().forEach((name, node) -> node(graph, name, node));
        cycles(graph);
        reach(graph);
        if (graph.minReplicas() != null && graph.minReplicas() < 0) {
            problems.add("spec.minReplicas", graph.minReplicas() + " is less than 0");
        }
        if (graph.maxReplicas() < 0) {
            problems.add("spec.maxReplicas", graph.maxReplicas() + " is less than 0");
        } else if (graph.maxReplicas() > 0
                && graph.minReplicas() != null
                && graph.minReplicas() > graph.maxReplicas()) {
            problems.add("spec.minReplicas", graph.minReplicas() + " is more than maxReplicas, " + graph.maxReplicas());
        }
        if (graph.timeout() != null && graph.timeout() < 0) {
            problems.add("spec.timeout", graph.timeout() + " is less than 0");
        }
        Long client = graph.timeouts().serviceClient();
        if (client != null && client < 0) {
            problems.add("spec.routerTimeouts.serviceClient", client + " is less than 0");
        }
    }

    private void node(InferenceGraph graph, String name, Node node) {
        String path = "spec.nodes." + ValidationErrors.clip(name);
        if (node.steps().isEmpty()) {
            problems.add(path + ".steps", "empty; a node has one step at least");
        }
        boolean splitter = node.routerType().equals("Splitter");
        Set<String> names = new HashSet<>();
        long weights = 0;
        for (int i = 0; i < node.steps().size(); i++) {
            Step step = node.steps().get(i);
            String at = path + ".steps[" + i + "]";
            if (step.name() != null && !step.name().isEmpty() && !names.add(step.name())) {
                problems.add(
                        at + ".name", "\"" + ValidationErrors.clip(step.name()) + "\" is another step's name as well");
            }
            target(graph, at, step);
            condition(at, step);
            Long weight = step.weight();
            if (splitter) {
                if (weight == null) {
                    problems.add(at + ".weight", "missing; every step of a Splitter has one");
                } else if (weight < 0 || weight > 100) {
                    problems.add(at + ".weight", weight + " is not a percentage from 0 to 100");
                } else {
                    weights += weight;
                }
            } else if (weight != null) {
                warnings.add(at + ".weight has no effect: the node is not a Splitter");
            }
            if (node.routerType().equals("Switch")
                    && (step.condition() == null || step.condition().isBlank())) {
                problems.add(at + ".condition", "missing; every step of a Switch has one");
            }
            if ((splitter || node.routerType().equals("Ensemble")) && step.condition() != null) {
                warnings.add(at + ".condition has no effect in "
                        + (splitter ? "a Splitter" : "an Ensemble: all steps are called"));
            }
            if (step.data() != null && !Set.of("$request", "$response", "").contains(step.data())) {
                warnings.add(at + ".data is neither $request nor $response: the step gets the request");
            } else if ("$response".equals(step.data())
                    && (i == 0 || !node.routerType().equals("Sequence"))) {
                warnings.add(
                        at + ".data has no effect: " + (i == 0 ? "no step comes before" : "the node is not a Sequence")
                                + ", the step gets the request");
            }
        }
        if (splitter && weights != 100 && node.steps().stream().allMatch(step -> step.weight() != null)) {
            problems.add(path + ".steps", "the weights add up to " + weights + "; expected 100");
        }
    }

    private void condition(String path, Step step) {
        if (step.condition() == null || step.condition().isBlank()) {
            return;
        }
        try {
            context.condition(step.condition());
        } catch (ServingException e) {
            problems.add(path + ".condition", e.describe());
        }
    }

    private void target(InferenceGraph graph, String path, Step step) {
        long targets = Stream.of(step.nodeName(), step.serviceName(), step.serviceUrl())
                .filter(target -> target != null && !target.isEmpty())
                .count();
        if (targets != 1) {
            problems.add(path, "expected exactly one of nodeName, serviceName and serviceUrl, found " + targets);
        }
        String node = step.nodeName();
        if (node != null && !node.isEmpty() && !graph.nodes().containsKey(node)) {
            problems.add(
                    path + ".nodeName",
                    "there is no node \"" + ValidationErrors.clip(node) + "\""
                            + ValidationErrors.didYouMean(node, graph.nodes().keySet()));
        }
        if (step.serviceName() != null && !step.serviceName().isEmpty()) {
            ObjectMetaValidator.serviceName(path + ".serviceName", step.serviceName(), problems);
        }
        String url = step.serviceUrl();
        if (url != null && !url.isEmpty() && !url.matches("(?s)https?://[^/\\s]+.*")) {
            problems.add(
                    path + ".serviceUrl",
                    "expected http://host/path or https://host/path, found \"" + ValidationErrors.clip(url) + "\""
                            + (url.matches("(?s)grpcs?://.*")
                                    ? "; a service of this server that speaks gRPC alone is called by its serviceName"
                                    : ""));
        }
    }

    private static List<String> next(InferenceGraph graph, String name) {
        Node node = graph.nodes().get(name);
        List<String> all = new ArrayList<>();
        if (node != null) {
            for (Step step : node.steps()) {
                if (step.nodeName() != null && graph.nodes().containsKey(step.nodeName())) {
                    all.add(step.nodeName());
                }
            }
        }
        return all;
    }

    /**
     * Reports the first cycle. A depth-first search with a stack of its own instead of recursion, because a graph can
     * be as deep as it has nodes. {@code done} maps a node to false while it is on the current path, and to true when
     * it is finished; an edge to a node on the path closes a cycle.
     */
    private void cycles(InferenceGraph graph) {
        Map<String, Boolean> done = new HashMap<>();
        for (String start : graph.nodes().keySet()) {
            if (done.containsKey(start)) {
                continue;
            }
            Deque<String> path = new ArrayDeque<>();
            Deque<Iterator<String>> todo = new ArrayDeque<>();
            path.addLast(start);
            todo.addLast(next(graph, start).iterator());
            done.put(start, false);
            while (!path.isEmpty()) {
                if (!todo.getLast().hasNext()) {
                    done.put(path.removeLast(), true);
                    todo.removeLast();
                    continue;
                }
                String next = todo.getLast().next();
                Boolean state = done.get(next);
                if (state == null) {
                    done.put(next, false);
                    path.addLast(next);
                    todo.addLast(next(graph, next).iterator());
                } else if (!state) {
                    List<String> cycle = new ArrayList<>(path);
                    cycle = new ArrayList<>(cycle.subList(cycle.indexOf(next), cycle.size()));
                    cycle.add(next);
                    problems.add(
                            "spec.nodes",
                            "the nodes form a cycle: " + ValidationErrors.clip(String.join(" -> ", cycle)));
                    return;
                }
            }
        }
    }

    /** Warns about nodes that cannot be reached from the root. */
    private void reach(InferenceGraph graph) {
        Set<String> reached = new HashSet<>();
        Deque<String> todo = new ArrayDeque<>();
        todo.add(InferenceGraph.ROOT);
        while (!todo.isEmpty()) {
            String name = todo.remove();
            if (reached.add(name)) {
                todo.addAll(next(graph, name));
            }
        }
        for (String name : graph.nodes().keySet()) {
            if (!reached.contains(name)) {
                warnings.add("spec.nodes." + ValidationErrors.clip(name) + " is never used: no step leads to it");
            }
        }
    }
}
