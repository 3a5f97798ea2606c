// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.netty.buffer.ByteBuf;

/** The server's side of one HTTP/2 stream: a gRPC call or an HTTP request. Confined to the connection's event loop. */
abstract class Http2ServerStream {
    /**
     * Receives data.
     *
     * @param data the bytes; the caller keeps the ownership
     * @param flow the bytes that count against the stream's window, padding included
     * @param end whether the client has ended its side with them
     * @return how many bytes of {@code flow} to return to the window now; the stream returns the others later with
     *     {@link Http2ServerConnection#consumed}
     */
    abstract int onData(ByteBuf data, int flow, boolean end);

    /** Called when the stream is closed: ended by both sides, reset, or lost with its connection. */
    abstract void onClosed();
}
