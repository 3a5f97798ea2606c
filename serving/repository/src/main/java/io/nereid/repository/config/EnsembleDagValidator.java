// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.EnsembleStep;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Validates the data flow of an ensemble: its inputs are used, its outputs are written, and every other tensor has a
 * writer and a reader. Starts with the inputs and marks each tensor that can be computed, as Kahn's algorithm for
 * topological sorting does; an output that is not marked is not written or depends on a cycle. Confined to one thread.
 */
final class EnsembleDagValidator {
    private final ConfigReadContext scope;
    private final TypedMessage config;
    private final Map<String, Tensor> tensors = new LinkedHashMap<>();

    /** A step, with the number of its input tensors that are not ready yet. */
    private static final class Node {
        final List<Tensor> reads = new ArrayList<>();
        final List<Tensor> writes = new ArrayList<>();
        int missing;
    }

    /** A tensor, the step that writes it, and the steps that read it, once per use. */
    private static final class Tensor {
        final String name;
        final SourcePosition at;
        final List<Node> readers = new ArrayList<>();

        @Nullable Node writer;

        boolean ready;

        Tensor(String name, SourcePosition at) {
            this.name = name;
            this.at = at;
        }
    }

    EnsembleDagValidator(ConfigReadContext scope, TypedMessage config, List<EnsembleStep> steps) {
        this.scope = scope;
        this.config = config;
        List<Value> given = config.message("ensemble_scheduling").all("step");
        for (int i = 0; i < steps.size(); i++) {
            link(steps.get(i), given.get(i).at());
        }
    }

    private void link(EnsembleStep step, SourcePosition at) {
        Node node = new Node();
        for (String name : step.outputs().values()) {
            Tensor tensor = tensor(name, at);
            tensor.writer = node;
            node.writes.add(tensor);
        }
        for (String name : step.inputs().values()) {
            read(node, tensor(name, at));
        }
        if (!step.when().isEmpty()) {
            read(node, tensor(step.when(), at));
        }
    }

    private static void read(Node node, Tensor tensor) {
        node.reads.add(tensor);
        node.missing++;
        tensor.readers.add(node);
    }

    private Tensor tensor(String name, SourcePosition at) {
        return tensors.computeIfAbsent(name, n -> new Tensor(n, at));
    }

    void check() {
        ArrayDeque<Tensor> queue = new ArrayDeque<>();
        for (Value v : config.all("input")) {
            Tensor tensor = known(v, "input");
            if (tensor != null && !tensor.ready) {
                tensor.ready = true;
                queue.add(tensor);
            }
        }
        reach(queue);
        Set<String> outputs = new HashSet<>();
        boolean written = true;
        for (Value v : config.all("output")) {
            Tensor tensor = known(v, "output");
            if (tensor != null) {
                outputs.add(tensor.name);
                if (!tensor.ready) {
                    written = false;
                    notWritten(tensor, v.at());
                }
            }
        }
        for (Tensor t : tensors.values()) {
            // A tensor that is not ready follows from an output that is not written, which was reported above.
            if (!outputs.contains(t.name) && (t.ready ? t.readers.isEmpty() : written)) {
                scope.error(
                        t.at,
                        "ensemble tensor " + ProblemCollector.quote(t.name) + " is unused in ensemble '" + scope.model()
                                + "'",
                        t.ready
                                ? "remove it from the map, or make it an output of the ensemble"
                                : "nothing writes it: make it an input of the ensemble, or an output of a step");
            }
        }
    }

    private @Nullable Tensor known(Value v, String what) {
        String name = v.message().text("name");
        Tensor tensor = tensors.get(name);
        if (tensor == null && !name.isEmpty()) {
            scope.error(
                    v.message().place("name"),
                    "ensemble " + what + " " + ProblemCollector.quote(name) + " for ensemble '" + scope.model()
                            + "' is not used",
                    "name it in the " + what + "_map of a step");
        }
        return tensor;
    }

    private static void reach(ArrayDeque<Tensor> queue) {
        while (!queue.isEmpty()) {
            for (Node reader : queue.remove().readers) {
                if (--reader.missing == 0) {
                    for (Tensor t : reader.writes) {
                        if (!t.ready) {
                            t.ready = true;
                            queue.add(t);
                        }
                    }
                }
            }
        }
    }

    private void notWritten(Tensor output, SourcePosition at) {
        Set<String> seen = new HashSet<>();
        Tensor last = output;
        Tensor step = output;
        while (step != null) {
            Tensor earlier = null;
            for (Tensor p : step.writer == null ? List.<Tensor>of() : step.writer.reads) {
                if (!p.ready && seen.add(p.name)) {
                    earlier = p;
                    last = p;
                    break;
                }
            }
            step = earlier;
        }
        scope.error(
                at,
                "output " + ProblemCollector.quote(output.name) + " for ensemble '" + scope.model() + "' is not written"
                        + (last == output
                                ? ""
                                : ": at least one of its depending tensors, " + ProblemCollector.quote(last.name)
                                        + ", is not connected"),
                "follow the tensors from the inputs of the ensemble to this output");
    }
}
