// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import io.nereid.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Receives the events of one traced request, or of one step of an ensemble. Thread-safe; {@link #end} is the last call
 * and happens once. Times are nanoseconds of the server's {@code Clock}.
 */
public interface RequestTrace {
    /** The timestamps of a request, under Triton's names. */
    enum Event {
        HTTP_RECV_START,
        HTTP_RECV_END,
        HTTP_SEND_START,
        HTTP_SEND_END,
        GRPC_WAITREAD_START,
        GRPC_WAITREAD_END,
        GRPC_SEND_START,
        GRPC_SEND_END,
        REQUEST_START,
        QUEUE_START,
        COMPUTE_START,
        COMPUTE_INPUT_END,
        COMPUTE_OUTPUT_START,
        COMPUTE_END,
        INFER_RESPONSE_COMPLETE,
        REQUEST_END
    }

    /** Records a timestamp. */
    void event(Event event, long nanos);

    /**
     * Records an attribute that is not a timestamp, such as why the request's batch was closed:
     * {@code batch.cut=preferred_size}.
     */
    void attribute(String name, String value);

    /** Whether {@link #tensors} should be called for this trace. */
    boolean includesTensors();

    /**
     * Records tensors at a stage such as {@code TENSOR_QUEUE_INPUT}. The trace reads them before this method returns
     * and does not own them. Shapes include the batch dimension where the model is batched.
     */
    void tensors(String activity, List<Tensor> tensors);

    /** Records the model and version that the request was routed to. Called once, before the model's first event. */
    void model(String name, long version, String requestId);

    /** Creates the trace of a request that this request causes, such as an ensemble's step. */
    RequestTrace child(String model);

    /** The id by which the trace is found where it is written to: the W3C trace id, or the id in the trace file. */
    String traceId();

    /** The W3C {@code traceparent} to propagate; null when the trace has none. */
    @Nullable String traceparent();

    /** Ends the trace. */
    void end();
}
