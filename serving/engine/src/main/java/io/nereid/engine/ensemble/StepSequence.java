// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The parameters {@code sequence_id}, {@code sequence_start} and {@code sequence_end} of responses, as in Triton's
 * ensembles: those in the response of a step apply to the steps that read its outputs, and every response of an
 * ensemble has those of the step that made its outputs. Stateless.
 */
final class StepSequence {
    private static final String ID = "sequence_id";
    private static final String START = "sequence_start";
    private static final String END = "sequence_end";
    private static final Map<String, Object> NONE = Collections.unmodifiableMap(all(Map.of(), null));

    private StepSequence() {}

    /**
     * The sequence of a step's outputs.
     *
     * @param parameters of the step's response; where one of the three is present, an absent id is the step's, and an
     *     absent flag is false
     * @param own the sequence of the step's request; null for none
     * @throws ServingException INVALID_ARGUMENT for a value of another type
     */
    static @Nullable SequenceFlags after(Map<String, Object> parameters, @Nullable SequenceFlags own) {
        if (parameters.isEmpty()) {
            return own;
        }
        Object id = parameters.get(ID);
        Object start = parameters.get(START);
        Object end = parameters.get(END);
        if (id == null && start == null && end == null) {
            return own;
        }
        if (id != null && !(id instanceof Long) && !(id instanceof String)) {
            throw ServingException.invalidArgument("expected parameter '" + ID
                    + "' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING, got " + id);
        }
        Object place = id != null ? id : own == null ? (Object) 0L : own.id();
        SequenceFlags made = new SequenceFlags(place, flag(START, start), flag(END, end));
        return made.equals(own) ? own : place.equals(0L) && !made.start() && !made.end() ? null : made;
    }

    private static boolean flag(String name, @Nullable Object value) {
        if (value != null && !(value instanceof Boolean)) {
            throw ServingException.invalidArgument(
                    "expect parameter '" + name + "' to be TRITONSERVER_PARAMETER_BOOL, got " + value);
        }
        return Boolean.TRUE.equals(value);
    }

    /** The parameters of a response whose outputs have this sequence. */
    static Map<String, Object> parameters(Map<String, Object> others, @Nullable SequenceFlags sequence) {
        return sequence == null && others.isEmpty() ? NONE : all(others, sequence);
    }

    private static Map<String, Object> all(Map<String, Object> others, @Nullable SequenceFlags sequence) {
        Map<String, Object> all = new LinkedHashMap<>(others);
        all.put(ID, sequence == null ? (Object) 0L : sequence.id());
        all.put(START, sequence != null && sequence.start());
        all.put(END, sequence != null && sequence.end());
        return all;
    }
}
