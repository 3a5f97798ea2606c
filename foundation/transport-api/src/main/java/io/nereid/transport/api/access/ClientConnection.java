// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api.access;

import java.net.SocketAddress;
import org.jspecify.annotations.Nullable;

/** The connection of a client, as an {@link AccessPolicy} sees it. Confined to its event loop. */
public interface ClientConnection {
    /** The address of the client's end. */
    SocketAddress remote();

    /** Whether the connection is encrypted. */
    boolean secure();

    /** Whether it was made through a Unix domain socket, whose file's mode decides who can connect. */
    boolean unixSocket();

    /** Whether every address that the server listens on is a loopback address or a Unix domain socket. */
    boolean serverIsLocal();

    /** The subject of the client's certificate; null when it has shown none. */
    @Nullable String peer();

    /** What the policy has stored with {@link #remember}; null at first. */
    @Nullable Object remembered();

    /** Stores the policy's result for this connection, to be found again for its next request. */
    void remember(@Nullable Object result);
}
