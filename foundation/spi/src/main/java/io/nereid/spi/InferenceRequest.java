// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.access.Caller;
import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An inference request. Immutable except for the ownership of the inputs, which belong to the holder of the request:
 * {@link InferenceEngine#infer} takes them over, otherwise the holder calls {@link #release}.
 *
 * <pre>{@code
 * Tensor input = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1, 4));    // write its bytes through input.buffer()
 * InferenceRequest request = new InferenceRequest(
 *         ModelRef.latest("iris"), "request-1", List.of(input), List.of(), Map.of(), Long.MAX_VALUE, clock.nanos());
 * }</pre>
 *
 * @param model the requested model
 * @param id the client's id for the request, which responses repeat; empty when the client gave none
 * @param inputs the input tensors, in the client's order, under the names of the model's inputs. Shapes include the
 *     batch dimension where the model is batched
 * @param outputs the requested outputs, in the client's order; empty for all outputs
 * @param parameters request parameters without those that the protocol itself defines; values are Boolean, Long,
 *     Double or String
 * @param deadlineNanos the time at which the client stops waiting, in nanoseconds of the server's {@code Clock};
 *     {@link Long#MAX_VALUE} for no deadline
 * @param arrivedNanos the time at which the request's head arrived, on the same clock
 * @param options rarely used settings
 * @param caller who makes the request; null for a request that the server makes itself, such as the step of an ensemble
 */
public record InferenceRequest(
        ModelRef model,
        String id,
        List<Tensor> inputs,
        List<RequestedOutput> outputs,
        Map<String, Object> parameters,
        long deadlineNanos,
        long arrivedNanos,
        Options options,
        @Nullable Caller caller) {
    /** A request that the server makes itself. */
    public InferenceRequest(
            ModelRef model,
            String id,
            List<Tensor> inputs,
            List<RequestedOutput> outputs,
            Map<String, Object> parameters,
            long deadlineNanos,
            long arrivedNanos,
            Options options) {
        this(model, id, inputs, outputs, parameters, deadlineNanos, arrivedNanos, options, null);
    }

    /** A request that the server makes itself, without options. */
    public InferenceRequest(
            ModelRef model,
            String id,
            List<Tensor> inputs,
            List<RequestedOutput> outputs,
            Map<String, Object> parameters,
            long deadlineNanos,
            long arrivedNanos) {
        this(model, id, inputs, outputs, parameters, deadlineNanos, arrivedNanos, Options.NONE, null);
    }

    /** Returns this request as one of a client. */
    public InferenceRequest from(Caller client) {
        return new InferenceRequest(
                model, id, inputs, outputs, parameters, deadlineNanos, arrivedNanos, options, client);
    }

    /** Returns this request as part of a sequence that the server has defined itself. */
    public InferenceRequest withSequence(SequenceFlags sequence) {
        return new InferenceRequest(
                model,
                id,
                inputs,
                outputs,
                parameters,
                deadlineNanos,
                arrivedNanos,
                new Options(options.priority, options.timeoutNanos, sequence, options.trace, options.signature),
                caller);
    }

    /**
     * Returns this request with other inputs and outputs. The new request owns the new inputs; the caller remains
     * responsible for those of this one.
     */
    public InferenceRequest with(List<Tensor> newInputs, List<RequestedOutput> newOutputs) {
        return new InferenceRequest(
                model, id, newInputs, newOutputs, parameters, deadlineNanos, arrivedNanos, options, caller);
    }

    /**
     * Rarely used settings of a request. Immutable, except for the trace.
     *
     * @param priority the priority level in the queue, where 1 is served first; 0 for the model's default
     * @param timeoutNanos the longest time in the queue, honoured where the queue policy allows an override; 0 for the
     *     queue's default
     * @param sequence the position in a sequence; null for an independent request
     * @param trace receives the request's events; null when the request is not traced
     * @param signature the name of the requested signature; empty for the model's default one
     */
    public record Options(
            long priority,
            long timeoutNanos,
            @Nullable SequenceFlags sequence,
            @Nullable RequestTrace trace,
            String signature) {
        /** No options. */
        public static final Options NONE = new Options(0, 0, null, null);

        /** Options for the model's default signature. */
        public Options(
                long priority, long timeoutNanos, @Nullable SequenceFlags sequence, @Nullable RequestTrace trace) {
            this(priority, timeoutNanos, sequence, trace, "");
        }

        /** Returns these options for another signature. */
        public Options withSignature(String name) {
            return new Options(priority, timeoutNanos, sequence, trace, name);
        }
    }

    /**
     * The position of a request in a sequence, as in Triton's sequence extension. Immutable.
     *
     * @param id the correlation id: a Long (64 bits, unsigned) or a String
     * @param start whether the request is the first one of the sequence
     * @param end whether the request is the last one of the sequence
     */
    public record SequenceFlags(Object id, boolean start, boolean end) {}

    /**
     * A requested output. Immutable.
     *
     * @param name the name of the model's output
     * @param classes when positive, the response contains the top classes instead of the values (classification
     *     extension)
     */
    public record RequestedOutput(String name, int classes) {}

    /** Closes all inputs. */
    public void release() {
        Tensor.closeAll(inputs);
    }
}
