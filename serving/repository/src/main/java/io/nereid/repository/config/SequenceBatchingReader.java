// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceBatching.Strategy;
import io.nereid.spi.config.SequenceControl;
import io.nereid.tensor.DataType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Reads {@code sequence_batching} except for its states. Confined to one thread. */
final class SequenceBatchingReader {
    private static final long DEFAULT_IDLE_MICROSECONDS = 1_000_000;
    private static final List<String> PAIRS = List.of("int32_false_true", "fp32_false_true", "bool_false_true");

    private final ConfigReadContext scope;

    SequenceBatchingReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    SequenceBatching read(TypedMessage s, int maxBatchSize) {
        long idle = s.number("max_sequence_idle_microseconds");
        Duration maxIdle = ConfigReadContext.micros(idle == 0 ? DEFAULT_IDLE_MICROSECONDS : idle);
        return new SequenceBatching(
                s.has("oldest") ? oldest(s.message("oldest"), maxBatchSize) : direct(s.message("direct")),
                maxIdle,
                controls(s.all("control_input")),
                new SequenceStateReader(scope).read(s.all("state")),
                s.flag("iterative_sequence"));
    }

    private Strategy direct(TypedMessage d) {
        Value given = d.first("minimum_slot_utilization");
        double utilization = given != null && given.value() instanceof Double u ? u : 0;
        if (!(utilization >= 0 && utilization <= 1)) {
            error(
                    d.place("minimum_slot_utilization"),
                    "sequence batching minimum slot utilization must be in range (0.0, 1.0]",
                    "leave it out for no minimum");
            utilization = 0;
        }
        return new SequenceBatching.Direct(
                ConfigReadContext.micros(d.number("max_queue_delay_microseconds")), utilization);
    }

    private Strategy oldest(TypedMessage o, int maxBatchSize) {
        long candidates = o.number("max_candidate_sequences");
        if (candidates < 0) {
            error(
                    o.place("max_candidate_sequences"),
                    "sequence batching max_candidate_sequences must be non-negative value",
                    "use 0 for as many as the batch has rows");
        }
        return new SequenceBatching.Oldest(
                (int) Math.max(0, candidates),
                new DynamicBatchingReader(scope).preferred(o, maxBatchSize, "sequence batching preferred batch size"),
                ConfigReadContext.micros(o.number("max_queue_delay_microseconds")),
                o.flag("preserve_ordering"));
    }

    private List<SequenceControl> controls(List<Value> given) {
        List<SequenceControl> controls = new ArrayList<>();
        Set<String> names = new HashSet<>();
        Set<SequenceControl.Kind> kinds = EnumSet.noneOf(SequenceControl.Kind.class);
        for (Value v : given) {
            TypedMessage input = v.message();
            String name = input.text("name");
            List<Value> inner = input.all("control");
            if (name.isEmpty() && !input.faulty().contains("name")) {
                error(v.at(), "sequence batching control tensor must have a name", null);
            } else if (!names.add(name) || inner.size() > 1) {
                error(
                        inner.size() > 1 ? inner.get(1).at() : input.place("name"),
                        "sequence batching control tensor " + ProblemCollector.quote(name)
                                + " is specified for multiple control kinds",
                        "give every control a tensor of its own");
            }
            if (input.lacks("control")) {
                error(
                        v.at(),
                        "sequence batching control tensor " + ProblemCollector.quote(name) + " must specify 'control'",
                        "write control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ]");
            }
            for (Value c : inner) {
                SequenceControl control = control(name, c.message(), c.at());
                if (!kinds.add(control.kind())) {
                    error(
                            c.at(),
                            "sequence batching specifies multiple CONTROL_SEQUENCE_" + control.kind() + " tensors",
                            null);
                }
                controls.add(control);
            }
        }
        return List.copyOf(controls);
    }

    private SequenceControl control(String name, TypedMessage c, SourcePosition at) {
        String kindName = c.text("kind").isEmpty() ? "CONTROL_SEQUENCE_START" : c.text("kind");
        SequenceControl.Kind kind = SequenceControl.Kind.valueOf(kindName.substring("CONTROL_SEQUENCE_".length()));
        List<String> pairs = PAIRS.stream().filter(c::has).toList();
        boolean wrong = PAIRS.stream().anyMatch(c.faulty()::contains);
        if (kind == SequenceControl.Kind.CORRID) {
            return correlationId(name, c, at, pairs);
        }
        if (TensorConfigReader.typeOf(c.text("data_type")) != null) {
            scope.warning(
                    c.place("data_type"),
                    "'data_type' of " + kindName + " has no effect" + scope.forModel(),
                    "the false and true values give the control its type");
        }
        if (pairs.size() != 1) {
            if (!wrong) {
                error(
                        pairs.isEmpty() ? at : c.place(pairs.get(1)),
                        pairs.isEmpty()
                                ? "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or"
                                        + " 'bool_false_true' for " + kindName
                                : "sequence batching specifies more than one from 'int32_false_true',"
                                        + " 'fp32_false_true' and 'bool_false_true' for " + kindName,
                        pairs.isEmpty() ? "write int32_false_true: [ 0, 1 ]" : "remove all but one");
            }
            return new SequenceControl(name, kind, DataType.INT32, 0, 1);
        }
        String pair = pairs.get(0);
        List<Value> values = c.all(pair);
        if (values.size() != 2) {
            if (!wrong) {
                error(
                        c.place(pair),
                        "sequence batching control '" + pair + "' must have exactly 2 entries for " + kindName,
                        "the value for false, then the value for true");
            }
            return new SequenceControl(name, kind, DataType.INT32, 0, 1);
        }
        DataType type = switch (pair) {
            case "int32_false_true" -> DataType.INT32;
            case "fp32_false_true" -> DataType.FP32;
            default -> DataType.BOOL;
        };
        return new SequenceControl(
                name,
                kind,
                type,
                number(values.get(0).value()),
                number(values.get(1).value()));
    }

    private SequenceControl correlationId(String name, TypedMessage c, SourcePosition at, List<String> pairs) {
        if (!pairs.isEmpty()) {
            error(
                    c.place(pairs.get(0)),
                    "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or"
                            + " 'bool_false_true' for CONTROL_SEQUENCE_CORRID",
                    "give its data_type instead");
        }
        DataType type = TensorConfigReader.typeOf(c.text("data_type"));
        if (type == null || !allowed(type)) {
            if (!c.faulty().contains("data_type")) {
                scope.error(
                        c.has("data_type") ? c.place("data_type") : at,
                        "unexpected data type for control CONTROL_SEQUENCE_CORRID" + scope.forModel()
                                + ". Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and"
                                + " TYPE_STRING",
                        null);
            }
            type = DataType.UINT64;
        }
        return new SequenceControl(name, SequenceControl.Kind.CORRID, type, 0, 0);
    }

    private static boolean allowed(DataType type) {
        return switch (type) {
            case UINT64, INT64, UINT32, INT32, BYTES -> true;
            default -> false;
        };
    }

    private static double number(Object value) {
        if (value instanceof Boolean b) {
            return b ? 1 : 0;
        }
        return value instanceof Number n ? n.doubleValue() : 0;
    }

    private void error(SourcePosition at, String message, @Nullable String remedy) {
        scope.error(at, message + scope.forModel(), remedy);
    }
}
