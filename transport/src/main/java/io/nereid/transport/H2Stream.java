// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.buffer.ByteBuf;

/** What a connection knows of one HTTP/2 stream. Confined to the connection's event loop. */
abstract class H2Stream {
    /**
     * Data has arrived.
     *
     * @param data the bytes; still the caller's
     * @param flow bytes to be given back to the stream's window, padding included
     * @param end whether these are the last
     * @return how many of {@code flow} may be given back at once
     */
    abstract int onData(ByteBuf data, int flow, boolean end);

    /** The stream is closed: by both sides' end, a reset or the loss of the connection. */
    abstract void onClosed();
}
