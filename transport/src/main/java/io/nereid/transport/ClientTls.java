// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** Trusts the authorities that the JVM trusts, on connections to other servers. Thread-safe: guarded by itself. */
final class ClientTls {
    private @Nullable SslContext context;

    /** Reads the trust store at the first call. */
    synchronized SslContext context() throws SSLException {
        SslContext made = context;
        if (made == null) {
            made = SslContextBuilder.forClient().build();
            context = made;
        }
        return made;
    }
}
