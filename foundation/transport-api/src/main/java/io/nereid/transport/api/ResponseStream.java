// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

/**
 * The body of a response that is streamed in pieces: HTTP/1.1 chunks or HTTP/2 data frames. Methods may be called from
 * any thread, one call at a time. After {@link #end} or {@link #abort}, and once the client has disconnected, they do
 * nothing.
 */
public interface ResponseStream {
    /**
     * Sends a piece immediately; an empty piece sends nothing. The text is copied before this method returns; the
     * transport owns the tensors from here on.
     */
    void send(ResponseBody piece);

    /** Ends the body normally. */
    void end();

    /** Ends an incomplete body such that the client detects the truncation. */
    void abort();

    /**
     * The number of bytes that are buffered because the connection has not taken them yet. A producer that may be
     * faster than its client checks this value for backpressure.
     */
    long unsentBytes();
}
