// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import io.nereid.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Notes what happens to one traced request, or one step of an ensemble. Thread-safe; {@link #end} is called once and
 * last. Times are nanoseconds of the server's clock.
 */
public interface RequestTrace {
    /** The moments of a request, under Triton's names. */
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

    /** Something happened. */
    void event(Event event, long nanos);

    /** Something that is no moment, such as why the request's batch was cut: {@code batch.cut=preferred_size}. */
    void attribute(String name, String value);

    /** Whether tensors are to be told too. */
    boolean wantsTensors();

    /** Tensors at a place such as {@code TENSOR_QUEUE_INPUT}; read before this returns. */
    void tensors(String activity, List<Tensor> tensors);

    /** The model, with its version, that the request has come to; called once, before the first event of the model. */
    void model(String name, long version, String requestId);

    /** The trace of a request that this one causes. */
    RequestTrace child(String model);

    /** The W3C {@code traceparent} to hand on, or null when there is none. */
    @Nullable String traceparent();

    /** Nothing follows. */
    void end();
}
