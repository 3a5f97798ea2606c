// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** One gRPC call, as its handler sees it. {@link #send} and {@link #close} may be called from any thread, in order. */
public interface GrpcCall {
    /** The full path of the method. */
    String path();

    /** The first value of a metadata entry by lower-case name, or null. Event loop only. */
    @Nullable
    String metadata(String lowerCaseName);

    /** Tells every metadata entry that is text, names in lower case, in the order of arrival. Event loop only. */
    void metadata(BiConsumer<String, String> each);

    /** The client's deadline in nanoseconds of the server's clock, or {@link Long#MAX_VALUE} when it gave none. */
    long deadlineNanos();

    /** When the call's head arrived, in nanoseconds of the server's clock. */
    long arrivedNanos();

    /** Whether the calling thread is this connection's event loop. */
    boolean inEventLoop();

    /** Whether a message sent now would leave without being buffered; see {@link GrpcMethod.GrpcListener#onReady}. */
    boolean isReady();

    /**
     * Holds back ({@code false}) or lets on ({@code true}) further messages from the client; messages flow by default.
     * Event loop only.
     */
    void setReading(boolean reading);

    /**
     * Sends one message. Its text is copied before this returns and its tensors are owned by the transport from here on.
     * Dropped when the call has ended.
     */
    void send(ResponseBody message);

    /** Sends the one message of a unary answer and closes with OK, in one write. */
    void sendAndClose(ResponseBody message);

    /** Ends the call. The first end wins; later ones are ignored. */
    void close(ErrorCode code, @Nullable String message);

    /** The call as the transport made it, where this one is a wrapper around it. */
    default GrpcCall origin() {
        return this;
    }

    /** Ends the call with an error. */
    default void fail(ServingException e) {
        close(e.code(), e.describe());
    }
}
