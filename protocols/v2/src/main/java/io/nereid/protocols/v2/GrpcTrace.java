// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.observe.Observability;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.transport.api.GrpcCall;
import org.jspecify.annotations.Nullable;

/** Notes arrival and answer of gRPC requests in their traces, where they have one. Immutable. */
final class GrpcTrace {
    private GrpcTrace() {}

    /** The trace of a request that has arrived, or null. */
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

    /** What came with the call, looked up only where somebody may want it. Event loop only. */
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
