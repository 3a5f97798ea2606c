// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a client wants computed. Immutable but for the ownership of its inputs: whoever holds the request owns them.
 *
 * @param model which model
 * @param id the client's id for the request, echoed; empty when none was given
 * @param inputs the tensors, in the client's order, under the model's names
 * @param outputs the outputs wanted, in the client's order; empty for all
 * @param parameters values are Boolean, Long, Double or String; never those the protocols define themselves
 * @param deadlineNanos when waiting for the answer is pointless, in nanoseconds of the server's clock;
 *     {@link Long#MAX_VALUE} for never
 * @param arrivedNanos when the request's head arrived, on the same clock
 * @param options what few requests say
 */
public record InferenceRequest(
        ModelRef model,
        String id,
        List<Tensor> inputs,
        List<RequestedOutput> outputs,
        Map<String, Object> parameters,
        long deadlineNanos,
        long arrivedNanos,
        Options options) {
    /** A request without options. */
    public InferenceRequest(
            ModelRef model,
            String id,
            List<Tensor> inputs,
            List<RequestedOutput> outputs,
            Map<String, Object> parameters,
            long deadlineNanos,
            long arrivedNanos) {
        this(model, id, inputs, outputs, parameters, deadlineNanos, arrivedNanos, Options.NONE);
    }

    /** This request as one of a sequence that the server made up. */
    public InferenceRequest in(Sequence sequence) {
        return new InferenceRequest(
                model,
                id,
                inputs,
                outputs,
                parameters,
                deadlineNanos,
                arrivedNanos,
                new Options(options.priority, options.timeoutNanos, sequence, options.trace, options.signature));
    }

    /** This request with other inputs and outputs, for a wrapper around it. */
    public InferenceRequest with(List<Tensor> newInputs, List<RequestedOutput> newOutputs) {
        return new InferenceRequest(model, id, newInputs, newOutputs, parameters, deadlineNanos, arrivedNanos, options);
    }

    /**
     * What few requests say. Immutable, but for the trace.
     *
     * @param priority the level of the queue, 1 being served first; 0 for the model's default
     * @param timeoutNanos how long the request may wait in a queue that allows it to say so; 0 when it says nothing
     * @param sequence where in which sequence the request stands; null when it stands alone
     * @param trace where to note what happens to it; null when it is not traced
     * @param signature which of the model's signatures is asked for; empty for its default one
     */
    public record Options(
            long priority,
            long timeoutNanos,
            @Nullable Sequence sequence,
            @Nullable RequestTrace trace,
            String signature) {
        /** Nothing said. */
        public static final Options NONE = new Options(0, 0, null, null);

        /** For the model's default signature. */
        public Options(long priority, long timeoutNanos, @Nullable Sequence sequence, @Nullable RequestTrace trace) {
            this(priority, timeoutNanos, sequence, trace, "");
        }

        /** These options for a signature. */
        public Options withSignature(String name) {
            return new Options(priority, timeoutNanos, sequence, trace, name);
        }
    }

    /**
     * Where in which sequence a request stands.
     *
     * @param id a Long (of 64 unsigned bits) or a String
     * @param start whether it is the first request of the sequence
     * @param end whether it is the last
     */
    public record Sequence(Object id, boolean start, boolean end) {}

    /**
     * One wanted output.
     *
     * @param name the model's output
     * @param classes when positive, answer with the top classes instead of the values
     */
    public record RequestedOutput(String name, int classes) {}

    /** Gives up the inputs. */
    public void release() {
        Tensor.closeAll(inputs);
    }
}
