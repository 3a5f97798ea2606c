// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

/**
 * One gRPC method. Immutable.
 *
 * @param path the full path, {@code /package.Service/Method}
 * @param kind which sides stream
 * @param handler starts a call, on the event loop of the connection
 */
public record GrpcMethod(String path, Kind kind, GrpcHandler handler) {
    /** Which sides of a call stream. */
    public enum Kind {
        /** One message each way. */
        UNARY,
        /** Many messages from the client, one back. */
        CLIENT_STREAMING,
        /** One message from the client, many back. */
        SERVER_STREAMING,
        /** Many messages both ways. */
        BIDI_STREAMING
    }

    /** Starts calls of a method. */
    @FunctionalInterface
    public interface GrpcHandler {
        /**
         * A call has begun. Called on the event loop; must not block. What it or the listener throws ends the call with
         * the exception's code and text.
         */
        GrpcListener start(GrpcCall call);
    }

    /**
     * Receives what the client sends in one call. All methods run on the event loop of the connection, one at a time.
     */
    public interface GrpcListener {
        /**
         * One message, inflated, without its gRPC prefix. The transport owns it and drops it when this returns; retain to
         * keep it.
         */
        void onMessage(io.nereid.tensor.MemoryRegion message);

        /** The client has sent its last message. */
        void onHalfClose();

        /** The call ended before {@link GrpcCall#close}: the client cancelled, its deadline passed or the connection broke. */
        void onCancel();

        /** The call can take more messages without buffering; only after {@link GrpcCall#isReady} was false. */
        default void onReady() {}
    }
}
