// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import io.nereid.observe.Observability;
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

    /** Begins the trace of a request; null when it is not traced. */
    static @Nullable RequestTrace begin(
            CodecContext context, @Nullable String traceparent, String model, long arrived) {
        if (context.observation == Observability.NONE) {
            return null;
        }
        RequestTrace trace = context.observation.trace(model, traceparent);
        if (trace != null) {
            trace.event(Event.GRPC_WAITREAD_START, arrived);
            trace.event(Event.GRPC_WAITREAD_END, context.clock.nanos());
        }
        return trace;
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
