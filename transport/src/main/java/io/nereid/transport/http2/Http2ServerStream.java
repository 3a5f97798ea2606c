// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.transport.memory.ClientMemory;
import io.netty.buffer.ByteBuf;
import java.net.SocketAddress;

/**
 * The server's side of one HTTP/2 stream: a gRPC call or an HTTP request. While the client sends its body it is
 * observed, as described at {@link ClientMemory}. Confined to the connection's event loop.
 */
abstract class Http2ServerStream extends ClientMemory {
    final Http2ServerConnection connection;

    Http2ServerStream(Http2ServerConnection connection) {
        this.connection = connection;
    }

    @Override
    protected final SocketAddress client() {
        return connection.client().remote();
    }

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
