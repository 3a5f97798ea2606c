// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

/**
 * The body of a reply that is sent piece by piece: chunks of HTTP/1.1, data frames of HTTP/2. Methods may be called from
 * any thread, one call at a time; after {@link #end} or {@link #abort}, and once the client has gone, they do nothing.
 */
public interface ResponseStream {
    /**
     * Sends a piece at once; an empty one sends nothing. Its text is copied before this returns and its tensors are owned
     * by the transport from here on.
     */
    void send(ResponseBody piece);

    /** The body is complete. */
    void end();

    /** The body will never be complete: the client is made to see that. */
    void abort();

    /** Bytes that were sent and that the connection has not taken yet; whoever produces faster than the client reads asks. */
    long unsentBytes();
}
