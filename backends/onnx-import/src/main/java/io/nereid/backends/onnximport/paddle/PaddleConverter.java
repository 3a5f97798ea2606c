// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import io.nereid.backends.onnximport.paddle.PaddleProgram.Operator;
import io.nereid.backends.onnximport.paddle.PaddleProgram.Variable;
import io.nereid.base.ServingException;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

/** Converts a PaddlePaddle program and its weights to an ONNX model. Confined to one load. */
final class PaddleConverter {
    private final PaddleOperators known = new PaddleOperators();
    private final PaddleProgram program;

    PaddleConverter(PaddleProgram program) {
        this.program = program;
    }

    /** The weights, sorted by name, which is their order in a combined file. */
    List<Variable> weights() {
        return program.variables().values().stream()
                .filter(v ->
                        v.persistable() && !v.name().equals("feed") && !v.name().equals("fetch"))
                .sorted(Comparator.comparing(Variable::name))
                .toList();
    }

    /**
     * @throws ServingException INVALID_ARGUMENT when the program cannot be converted; the message names the operators
     */
    byte[] convert(Map<String, ConstantTensor> weights) {
        List<String> inputs = ends("feed", "Out", true);
        List<String> outputs = ends("fetch", "X", false);
        if (outputs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the program has no outputs (no operator 'fetch')",
                    "save it for inference: paddle.static.save_inference_model or paddle.jit.save");
        }
        if (program.blocks() > 1) {
            throw ServingException.invalidArgument(
                    "the program has " + program.blocks() + " blocks: loops and branches are not converted",
                    PaddleOperatorContext.EXPORT);
        }
        List<Operator> operators = needed(outputs);
        rejectUnknown(operators);
        Set<String> reserved = new HashSet<>(inputs);
        reserved.addAll(outputs);
        OnnxGraph graph = new OnnxGraph(reserved);
        Map<String, Value> values = new HashMap<>();
        weights.forEach((name, constant) -> values.put(name, graph.constant("weight", constant)));
        for (String input : inputs) {
            Variable v = program.variables().get(input);
            ElementType type = v == null ? null : v.type();
            if (v == null || type == null) {
                throw ServingException.invalidArgument(
                        "input '" + input + "' of the program is not a tensor of a supported type",
                        PaddleOperatorContext.EXPORT);
            }
            values.put(input, graph.input(input, type, Shape.of(v.dims())));
        }
        for (Operator operator : operators) {
            run(new PaddleOperatorContext(operator, values, program.variables(), graph));
        }
        for (String output : outputs) {
            Value value = values.get(output);
            if (value == null) {
                throw ServingException.invalidArgument(
                        "result '" + output + "' of the program is not written by any of its operators",
                        PaddleOperatorContext.EXPORT);
            }
            graph.output(output, value, null);
        }
        return graph.toModel("paddle");
    }

    /** The variables that are fed or fetched, in the order of their columns. */
    private List<String> ends(String type, String parameter, boolean given) {
        List<Operator> ends = new ArrayList<>();
        for (Operator o : program.operators()) {
            if (o.type().equals(type)) {
                ends.add(o);
            }
        }
        ends.sort(Comparator.comparingLong(o -> o.attributes().get("col") instanceof Long col ? col : 0));
        List<String> names = new ArrayList<>();
        for (Operator o : ends) {
            Map<String, List<String>> side = given ? o.outputs() : o.inputs();
            names.addAll(side.getOrDefault(parameter, List.of()));
        }
        return names;
    }

    private List<Operator> needed(List<String> outputs) {
        Set<String> wanted = new HashSet<>(outputs);
        List<Operator> operators = new ArrayList<>();
        for (int i = program.operators().size() - 1; i >= 0; i--) {
            Operator o = program.operators().get(i);
            if (!o.type().equals("feed")
                    && !o.type().equals("fetch")
                    && o.outputs().values().stream()
                            .anyMatch(names -> names.stream().anyMatch(wanted::contains))) {
                operators.add(o);
                o.inputs().values().forEach(wanted::addAll);
            }
        }
        Collections.reverse(operators);
        return operators;
    }

    private void rejectUnknown(List<Operator> operators) {
        Set<String> unknown = new TreeSet<>();
        for (Operator o : operators) {
            if (known.of(o.type()) == null) {
                unknown.add("'" + o.type() + "'");
            }
        }
        if (!unknown.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the program has " + (unknown.size() == 1 ? "an operator" : "operators")
                            + " that cannot be converted: " + String.join(", ", unknown),
                    PaddleOperatorContext.EXPORT);
        }
    }

    private void run(PaddleOperatorContext call) {
        Map<String, Value> made;
        try {
            made = Objects.requireNonNull(known.of(call.operator().type())).apply(call);
        } catch (ArithmeticException
                | IndexOutOfBoundsException
                | NegativeArraySizeException
                | NumberFormatException e) {
            throw call.rejected("has inconsistent attributes");
        }
        call.operator().outputs().forEach((parameter, names) -> {
            for (int i = 0; i < names.size(); i++) {
                Value value = made.get(i == 0 && made.containsKey(parameter) ? parameter : parameter + ":" + i);
                Variable declared = program.variables().get(names.get(i));
                if (value != null) {
                    // A rank that the conversion does not know comes from the program's declaration.
                    int rank = value.rank() >= 0 || declared == null ? value.rank() : declared.dims().length;
                    call.values().put(names.get(i), new Value(value.name(), value.type(), rank, value.constant()));
                } else {
                    call.values().remove(names.get(i));
                }
            }
        });
    }
}
