// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import io.nereid.observe.Observability;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.transport.api.GrpcCall;
import org.jspecify.annotations.Nullable;

/**
 * Records the receive and send events of gRPC requests in their traces, for requests that are traced. Holds no state.
 */
final class GrpcTrace {
    private GrpcTrace() {}

    /**
     * Begins the trace of a request; null when it is neither traced nor asks for its times.
     *
     * @param timed whether the call asks for its times
     */
    static @Nullable RequestTrace begin(
            CodecContext context, @Nullable String traceparent, boolean timed, String model, long arrived) {
        RequestTrace trace =
                context.observation == Observability.NONE ? null : context.observation.trace(model, traceparent);
        if (timed) {
            trace = RequestTiming.of(trace, arrived);
        }
        if (trace != null) {
            trace.event(Event.GRPC_WAITREAD_START, arrived);
            trace.event(Event.GRPC_WAITREAD_END, context.clock.nanos());
        }
        return trace;
    }

    /**
     * Whether a call asks for the times of its requests. Event loop only.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value other than true and false
     */
    static boolean timed(GrpcCall call) {
        String timing = call.metadata(RequestTiming.HEADER);
        return timing != null && RequestTiming.asks(timing);
    }

    /** The {@code traceparent} of a call; not looked up when tracing is not available. Event loop only. */
    static @Nullable String parent(CodecContext context, GrpcCall call) {
        return context.observation == Observability.NONE ? null : call.metadata("traceparent");
    }

    static void sending(CodecContext context, @Nullable RequestTrace trace) {
        if (trace != null) {
            trace.event(Event.GRPC_SEND_START, context.clock.nanos());
        }
    }

    static void sent(CodecContext context, @Nullable RequestTrace trace) {
        if (trace != null) {
            trace.event(Event.GRPC_SEND_END, context.clock.nanos());
            trace.end();
        }
    }
}
