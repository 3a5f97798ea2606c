// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.access.OperationSelector;

/**
 * One gRPC method. Immutable.
 *
 * @param path the full path, {@code /package.Service/Method}
 * @param kind which sides stream
 * @param operations what the calls do, and so the permission that they need; the transport checks it before it reads a
 *     message
 * @param handler starts a call, on the event loop of the connection
 */
public record GrpcMethod(String path, Kind kind, OperationSelector operations, GrpcHandler handler) {
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

    /** Starts the calls of a method. */
    @FunctionalInterface
    public interface GrpcHandler {
        /**
         * Handles the start of a call. Called on the event loop; must not block. An exception of this method or of the
         * listener ends the call with the exception's code and message.
         */
        GrpcListener start(GrpcCall call);
    }

    /**
     * Receives the messages of the client in one call. All methods run on the event loop of the connection, one at a
     * time.
     */
    public interface GrpcListener {
        /**
         * Receives one message, decompressed and without its gRPC prefix. The transport owns it and releases it when
         * this method returns; retain it to keep it.
         */
        void onMessage(io.nereid.tensor.MemoryRegion message);

        /** The client has sent its last message. */
        void onHalfClose();

        /**
         * The call has ended before {@link GrpcCall#close}: the client cancelled, the deadline passed or the
         * connection failed.
         */
        void onCancel();

        /**
         * The call can take messages without buffering again; called only after {@link GrpcCall#isReady} returned
         * false.
         */
        default void onReady() {}
    }
}
