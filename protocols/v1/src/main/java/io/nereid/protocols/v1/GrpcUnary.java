// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.GrpcMethod.Kind;
import io.nereid.transport.api.ResponseBody;
import java.util.function.BiConsumer;

/** The client's side of a call with one message. Its methods are called on the event loop, one at a time. */
abstract class GrpcUnary implements GrpcListener {
    private boolean started;

    /** The one message; the transport drops it when this returns. */
    abstract void message(MemoryRegion message);

    @Override
    public final void onMessage(MemoryRegion message) {
        if (started) {
            throw ServingException.invalidArgument("more than one message in a unary call");
        }
        started = true;
        message(message);
    }

    @Override
    public final void onHalfClose() {
        if (!started) {
            throw ServingException.invalidArgument("the call ended without a message");
        }
    }

    @Override
    public void onCancel() {
        // Where nothing can be stopped, the answer is dropped.
    }

    /** A method whose handler answers now, or sees to it that the call is answered. */
    static GrpcMethod method(String path, BiConsumer<GrpcCall, MemoryRegion> handler) {
        return new GrpcMethod(path, Kind.UNARY, call -> new GrpcUnary() {
            @Override
            void message(MemoryRegion message) {
                handler.accept(call, message);
            }
        });
    }

    /** Answers a call with what was written. */
    static void send(GrpcCall call, ProtobufWriter out) {
        call.sendAndClose(new ResponseBody(out.array(), out.length()));
    }
}
