// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.netty.buffer.ByteBufAllocator;
import io.netty.handler.codec.http2.Http2SecurityUtil;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolConfig.Protocol;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectedListenerFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectorFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.JdkSslContext;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SupportedCipherSuiteFilter;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.jspecify.annotations.Nullable;

/**
 * The TLS contexts of connections to upstream servers, one for HTTP/1.1 and one that negotiates HTTP/2, created on first
 * use. Thread-safe: guarded by itself.
 */
final class UpstreamTls {
    private static final ApplicationProtocolConfig HTTP2 = new ApplicationProtocolConfig(
            Protocol.ALPN,
            SelectorFailureBehavior.NO_ADVERTISE,
            SelectedListenerFailureBehavior.ACCEPT,
            ApplicationProtocolNames.HTTP_2);

    private final PooledUpstreamClient.Trust trust;

    @GuardedBy("this") private @Nullable SslContext http1Context;

    @GuardedBy("this") private @Nullable SslContext http2Context;

    UpstreamTls(PooledUpstreamClient.Trust trust) {
        this.trust = trust;
    }

    /** The handler of a new connection; the first call for a protocol creates its context. */
    SslHandler handler(ByteBufAllocator memory, String host, int port, boolean http2) throws SSLException {
        SslHandler handler = context(http2).newHandler(memory, host, port);
        if (trust.context() != null) {
            // a trust manager that accepts any certificate does not look at the name either
            SSLParameters parameters = handler.engine().getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            handler.engine().setSSLParameters(parameters);
        }
        return handler;
    }

    private synchronized SslContext context(boolean http2) throws SSLException {
        SslContext made = http2 ? http2Context : http1Context;
        if (made == null) {
            made = create(http2);
            if (http2) {
                http2Context = made;
            } else {
                http1Context = made;
            }
        }
        return made;
    }

    private SslContext create(boolean http2) throws SSLException {
        SSLContext given = trust.context();
        if (given != null) {
            return new JdkSslContext(
                    given,
                    true,
                    http2 ? Http2SecurityUtil.CIPHERS : null,
                    SupportedCipherSuiteFilter.INSTANCE,
                    http2 ? HTTP2 : ApplicationProtocolConfig.DISABLED,
                    ClientAuth.NONE,
                    null,
                    false);
        }
        SslContextBuilder builder = SslContextBuilder.forClient();
        if (trust.unverified()) {
            builder.trustManager(InsecureTrustManagerFactory.INSTANCE).endpointIdentificationAlgorithm(null);
        } else if (!trust.certificates().isEmpty()) {
            builder.trustManager(trust.certificates());
        }
        if (http2) {
            builder.ciphers(Http2SecurityUtil.CIPHERS, SupportedCipherSuiteFilter.INSTANCE)
                    .applicationProtocolConfig(HTTP2);
        }
        return builder.build();
    }
}
