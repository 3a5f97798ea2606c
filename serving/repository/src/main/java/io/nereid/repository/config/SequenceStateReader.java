// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.InitialStateConfig;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Reads {@code sequence_batching.state} and checks the files of initial states. Confined to one thread. */
final class SequenceStateReader {
    private final ConfigReadContext scope;

    SequenceStateReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    List<SequenceStateConfig> read(List<Value> given) {
        List<SequenceStateConfig> states = new ArrayList<>();
        Set<String> inputs = new HashSet<>();
        Set<String> outputs = new HashSet<>();
        for (Value v : given) {
            TypedMessage s = v.message();
            boolean hasInput = named(s, v.at(), "input_name");
            boolean named = named(s, v.at(), "output_name") && hasInput;
            boolean newInput = inputs.add(s.text("input_name"));
            boolean newOutput = outputs.add(s.text("output_name"));
            if (named && !(newInput && newOutput)) {
                scope.warning(
                        v.at(),
                        "state with input " + ProblemCollector.quote(s.text("input_name")) + " and output "
                                + ProblemCollector.quote(s.text("output_name"))
                                + " is ignored, one of the names was used before"
                                + scope.forModel(),
                        "rename or remove it");
                continue;
            }
            SequenceStateConfig state = state(s, v.at());
            if (state != null && named) {
                states.add(state);
            }
        }
        return List.copyOf(states);
    }

    private boolean named(TypedMessage s, SourcePosition at, String field) {
        if (!s.text(field).isEmpty()) {
            return true;
        }
        if (!s.faulty().contains(field)) {
            scope.error(at, "sequence batching state must specify '" + field + "'" + scope.forModel(), null);
        }
        return false;
    }

    private @Nullable SequenceStateConfig state(TypedMessage s, SourcePosition at) {
        String input = s.text("input_name");
        DataType type = TensorConfigReader.typeOf(s.text("data_type"));
        if (type == null && !s.faulty().contains("data_type")) {
            scope.error(
                    at,
                    "sequence batching state " + ProblemCollector.quote(input) + " must specify 'data_type'"
                            + scope.forModel(),
                    null);
        }
        long[] sizes = new long[Math.min(s.all("dims").size(), TensorConfigReader.MAX_RANK)];
        boolean right = s.all("dims").size() <= TensorConfigReader.MAX_RANK
                && !s.faulty().contains("dims");
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = s.all("dims").get(i).number();
            right &= sizes[i] >= 1 || sizes[i] == -1;
        }
        if (!right && !s.faulty().contains("dims")) {
            scope.error(
                    s.place("dims"),
                    "sequence batching state " + ProblemCollector.quote(input)
                            + " dimension must be integer >= 1, or -1 to indicate a variable-size dimension"
                            + scope.forModel(),
                    "give at most " + TensorConfigReader.MAX_RANK + " dims");
        }
        if (s.flag("use_growable_memory")) {
            scope.error(
                    s.place("use_growable_memory"),
                    "'use_growable_memory' can only work with KIND_GPU model instances right now. Please either change"
                            + " the instance type to KIND_GPU or set 'use_growable_memory' to false for state input '"
                            + input + "'.",
                    "remove it, states of any size are kept without it");
        }
        if (type == null || !right) {
            return null;
        }
        List<Value> initial = s.all("initial_state");
        if (initial.size() > 1) {
            scope.error(
                    initial.get(1).at(),
                    "initial_state field for state input '" + input
                            + "' must contain exactly one or zero element. Found '" + initial.size() + "' elements.",
                    "remove all but one");
        }
        InitialStateConfig first = initial.isEmpty() ? null : initial(initial.get(0), s, input, sizes, type);
        return new SequenceStateConfig(
                input, s.text("output_name"), type, Shape.of(sizes), first, s.flag("use_same_buffer_for_input_output"));
    }

    private @Nullable InitialStateConfig initial(
            Value v, TypedMessage state, String input, long[] dims, DataType type) {
        TypedMessage i = v.message();
        if (!i.text("data_type").equals(state.text("data_type")) && !i.faulty().contains("data_type")) {
            scope.error(
                    i.has("data_type") ? i.place("data_type") : v.at(),
                    "The data type used for 'initial_state' field of state '" + input
                            + "' does not match the state data type.",
                    "write data_type: " + state.text("data_type"));
        }
        if (i.text("name").isEmpty() && !i.faulty().contains("name")) {
            scope.error(
                    v.at(), "Field 'name' must be set when using initial_state for state input '" + input + "'.", null);
        }
        Shape shape = shape(i, v.at(), input, dims);
        if (!i.has("zero_data") && i.lacks("data_file") && !i.faulty().contains("zero_data")) {
            scope.error(
                    v.at(),
                    "initial_state setting expects state '" + input + "' to have state_data set",
                    "write zero_data: true, or name a data_file");
        }
        if (shape == null) {
            return null;
        }
        if (i.has("data_file")) {
            Path file = scope.inside(scope.directory().resolve("initial_state"), i, "data_file", "initial_state");
            if (file != null) {
                size(file, i, shape, type);
            }
        }
        return new InitialStateConfig(i.text("name"), shape, i.text("data_file"));
    }

    private @Nullable Shape shape(TypedMessage i, SourcePosition at, String input, long[] dims) {
        List<Value> given = i.all("dims");
        if (i.faulty().contains("dims")) {
            return null;
        }
        if (given.size() != dims.length) {
            scope.error(
                    given.isEmpty() ? at : i.place("dims"),
                    "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state"
                            + " input '"
                            + input + "'. " + given.size() + " != " + dims.length,
                    null);
            return null;
        }
        long[] sizes = new long[dims.length];
        for (int d = 0; d < sizes.length; d++) {
            sizes[d] = given.get(d).number();
            if (sizes[d] == -1) {
                scope.error(
                        given.get(d).at(),
                        "'initial_state' field for state input name '" + input + "' contains variable dimensions.",
                        "give its size");
                return null;
            }
            if (sizes[d] < 0 || (dims[d] != -1 && sizes[d] != dims[d])) {
                scope.error(
                        given.get(d).at(),
                        "'initial_state' dim for input name '" + input + "' doesn't match 'state' dim description. "
                                + sizes[d] + " != " + dims[d],
                        null);
                return null;
            }
        }
        return Shape.of(sizes);
    }

    private void size(Path file, TypedMessage i, Shape shape, DataType type) {
        try {
            long expected = type.isFixedSize() ? shape.byteSize(type) : 0;
            long actual = Files.size(file);
            if (actual < expected) {
                scope.error(
                        i.place("data_file"),
                        "initial_state setting expects " + expected + " bytes, but the data provided from "
                                + i.text("data_file") + " only has " + actual + " bytes.",
                        null);
            }
        } catch (IOException e) {
            scope.error(
                    i.place("data_file"),
                    "initial_state cannot read file " + ProblemCollector.quote(i.text("data_file")) + ": "
                            + TextFiles.reason(e),
                    null);
        } catch (ServingException e) {
            scope.error(i.place("dims"), e.getMessage(), e.remedy());
        }
    }
}
