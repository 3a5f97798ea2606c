// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** The TLS context of connections to upstream servers, created on first use. Thread-safe: guarded by itself. */
final class UpstreamTls {
    private final PooledUpstreamClient.Trust trust;

    @GuardedBy("this") private @Nullable SslContext context;

    UpstreamTls(PooledUpstreamClient.Trust trust) {
        this.trust = trust;
    }

    /** Returns the context; the first call creates it. */
    synchronized SslContext context() throws SSLException {
        SslContext made = context;
        if (made == null) {
            SslContextBuilder builder = SslContextBuilder.forClient();
            if (trust.unverified()) {
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
