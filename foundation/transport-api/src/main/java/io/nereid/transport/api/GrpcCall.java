// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** One gRPC call, as its handler sees it. {@link #send} and {@link #close} may be called from any thread, in order. */
public interface GrpcCall {
    /** The full path of the method. */
    String path();

    /** The first value of a metadata entry by lower-case name, or null. Event loop only. */
    @Nullable String metadata(String lowerCaseName);

    /**
     * Passes every text metadata entry to {@code each}, names in lower case, in the order of arrival. Event loop only.
     */
    void metadata(BiConsumer<String, String> each);

    /** The client's deadline in nanoseconds of the server's clock, or {@link Long#MAX_VALUE} when it gave none. */
    long deadlineNanos();

    /** When the headers of the call arrived, in nanoseconds of the server's clock. */
    long arrivedNanos();

    /** Whether the calling thread is this connection's event loop. */
    boolean inEventLoop();

    /**
     * Whether a message that is sent now leaves without being buffered; see {@link GrpcMethod.GrpcListener#onReady}.
     */
    boolean isReady();

    /**
     * Stops ({@code false}) or resumes ({@code true}) the delivery of messages from the client (flow control);
     * messages are delivered by default. Event loop only.
     */
    void setReading(boolean reading);

    /**
     * Sends one message. Its text is copied before this method returns; the transport owns its tensors from here on.
     * The message is dropped when the call has ended.
     */
    void send(ResponseBody message);

    /** Sends the only message of a unary response and closes the call with OK, in one write. */
    void sendAndClose(ResponseBody message);

    /** Ends the call. Only the first call has an effect. */
    void close(ErrorCode code, @Nullable String message);

    /** Who makes the call. */
    default Caller caller() {
        GrpcCall origin = origin();
        return origin == this ? Caller.ANONYMOUS : origin.caller();
    }

    /**
     * Checks, once a message names the model, that the caller holds a permission for it. The transport has checked
     * before that the caller holds the permission of the method for any model.
     *
     * @throws ServingException PERMISSION_DENIED when not
     */
    default void require(Permission permission, @Nullable String model) {
        caller().require(permission, model);
    }

    /** The call that the transport created, when this one wraps it. */
    default GrpcCall origin() {
        return this;
    }

    /** Ends the call with an error. */
    default void fail(ServingException e) {
        close(e.code(), e.describe());
    }
}
