// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.GrpcMethod.Kind;
import io.nereid.transport.api.ResponseBody;
import java.util.function.BiConsumer;

/** The handler of a unary call: checks that exactly one message arrives. Confined to the call's event loop. */
abstract class GrpcUnaryHandler implements GrpcListener {
    private boolean started;

    /** Handles the message; the transport releases it when this returns. */
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
        // By default a call cannot be cancelled; its response is dropped.
    }

    /** A method whose handler answers the call, now or later. */
    static GrpcMethod method(String path, Operation operation, BiConsumer<GrpcCall, MemoryRegion> handler) {
        return new GrpcMethod(path, Kind.UNARY, operation, call -> new GrpcUnaryHandler() {
            @Override
            void message(MemoryRegion message) {
                handler.accept(call, message);
            }
        });
    }

    /** Ends a call with the message in {@code out}. */
    static void send(GrpcCall call, ProtobufWriter out) {
        call.sendAndClose(new ResponseBody(out.array(), out.length()));
    }
}
