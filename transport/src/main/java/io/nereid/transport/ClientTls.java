// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** Whom connections to other servers trust. Thread-safe: guarded by itself. */
final class ClientTls {
    private final Relay.Trust trust;
    private @Nullable SslContext context;

    ClientTls(Relay.Trust trust) {
        this.trust = trust;
    }

    /** Reads what is trusted at the first call. */
    synchronized SslContext context() throws SSLException {
        SslContext made = context;
        if (made == null) {
            SslContextBuilder builder = SslContextBuilder.forClient();
            if (trust.anybody()) {
                builder.trustManager(InsecureTrustManagerFactory.INSTANCE).endpointIdentificationAlgorithm(null);
            } else if (!trust.certificates().isEmpty()) {
                builder.trustManager(trust.certificates());
            }
            made = builder.build();
            context = made;
        }
        return made;
    }
}
