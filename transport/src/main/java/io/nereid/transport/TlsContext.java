// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http2.Http2SecurityUtil;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import io.netty.handler.ssl.SupportedCipherSuiteFilter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The keys of an address, as they are now. {@link #newHandler} may be called from any thread; {@link #poll} and the
 * constructor read files and are called one at a time.
 */
final class TlsContext {
    private static final Logger LOG = LoggerFactory.getLogger(TlsContext.class);

    /** Contents of the three parts; the last is empty when there is none. Immutable. */
    private record Material(byte[] certificate, byte[] key, byte[] authorities) {
        boolean same(Material other) {
            return Arrays.equals(certificate, other.certificate)
                    && Arrays.equals(key, other.key)
                    && Arrays.equals(authorities, other.authorities);
        }
    }

    private final TlsOptions options;
    private Material tried;
    private @Nullable String readError;
    private volatile SslContext current;

    /**
     * Reads and checks what the options name.
     *
     * @throws ServingException FAILED_PRECONDITION
     */
    TlsContext(TlsOptions options) {
        this.options = options;
        this.tried = read();
        this.current = build(tried);
    }

    /**
     * Takes over what has changed in the files, if it can be used. Reading them is the one sure way to know: their times are
     * those of a link's target, and may lie before the last look.
     */
    void poll() {
        Material now;
        try {
            now = read();
        } catch (ServingException e) {
            if (!e.getMessage().equals(readError)) {
                readError = e.getMessage();
                LOG.warn("the certificate in use stays: {}", e.describe());
            }
            return;
        }
        readError = null;
        if (now.same(tried)) {
            return;
        }
        tried = now;
        try {
            current = build(now);
            LOG.info("new certificate from {}; open connections keep the old one", options.certificate());
        } catch (ServingException e) {
            LOG.warn("the certificate in use stays: {}", e.describe());
        } catch (RuntimeException e) {
            LOG.error("the certificate in use stays", e);
        }
    }

    private Material read() {
        TlsOptions.Pem authorities = options.clientAuthorities();
        return new Material(
                read(options.certificate()),
                read(options.key()),
                authorities == null ? new byte[0] : read(authorities));
    }

    private static byte[] read(TlsOptions.Pem pem) {
        if (pem instanceof TlsOptions.Text text) {
            return text.text().getBytes(StandardCharsets.ISO_8859_1);
        }
        TlsOptions.File file = (TlsOptions.File) pem;
        Path path = file.path();
        try {
            String text = new String(Files.readAllBytes(path), StandardCharsets.ISO_8859_1);
            return file.part().apply(text).getBytes(StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            String why = e instanceof NoSuchFileException
                    ? "there is no such file"
                    : e instanceof AccessDeniedException ? "no permission to read it" : String.valueOf(e.getMessage());
            throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "'" + path + "' cannot be read: " + why);
        }
    }

    private static String name(String what, TlsOptions.Pem pem) {
        return what + " in " + pem;
    }

    private SslContext build(Material material) {
        List<X509Certificate> chain = new PemFile(
                        name("the server certificate", options.certificate()), material.certificate())
                .certificates();
        PrivateKey key = new PemFile(name("the server key", options.key()), material.key()).key();
        checkPair(chain, key);
        SslContextBuilder builder = SslContextBuilder.forServer(key, chain.toArray(new X509Certificate[0]))
                .sslProvider(SslProvider.JDK)
                .protocols(options.protocols())
                .ciphers(Http2SecurityUtil.CIPHERS, SupportedCipherSuiteFilter.INSTANCE)
                .applicationProtocolConfig(new ApplicationProtocolConfig(
                        ApplicationProtocolConfig.Protocol.ALPN,
                        ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE,
                        ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
                        ApplicationProtocolNames.HTTP_2,
                        ApplicationProtocolNames.HTTP_1_1));
        TlsOptions.Pem authorities = options.clientAuthorities();
        if (authorities != null) {
            builder.trustManager(new PemFile(name("the client authorities", authorities), material.authorities())
                            .certificates())
                    .clientAuth(
                            switch (options.clientVerify()) {
                                case NONE -> ClientAuth.NONE;
                                case OPTIONAL -> ClientAuth.OPTIONAL;
                                case REQUIRED -> ClientAuth.REQUIRE;
                            });
        }
        try {
            return builder.build();
        } catch (SSLException | IllegalArgumentException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    name("the server certificate", options.certificate()) + " cannot be used: " + e.getMessage(),
                    e);
        }
    }

    private void checkPair(List<X509Certificate> chain, PrivateKey key) {
        X509Certificate own = chain.get(0);
        if (!PemFile.belongs(key, own.getPublicKey())) {
            List<String> owners = new ArrayList<>();
            for (X509Certificate other : chain) {
                if (PemFile.belongs(key, other.getPublicKey())) {
                    owners.add(other.getSubjectX500Principal().getName());
                }
            }
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    name("the server key", options.key()) + " does not belong to the certificate of "
                            + own.getSubjectX500Principal().getName() + " in " + options.certificate(),
                    owners.isEmpty()
                            ? "give the key that the certificate was made for"
                            : "the key belongs to the certificate of " + owners.get(0) + ": put that first");
        }
        try {
            own.checkValidity();
        } catch (java.security.cert.CertificateException e) {
            LOG.warn(
                    "the certificate of {} in {} is valid from {} to {} only: clients will refuse it",
                    own.getSubjectX500Principal().getName(),
                    options.certificate(),
                    own.getNotBefore(),
                    own.getNotAfter());
        }
    }

    /** Whether anything can change. */
    boolean reloads() {
        return !options.files().isEmpty();
    }

    long reloadMillis() {
        return Math.max(10, options.reloadInterval().toMillis());
    }

    /** The handler of a connection that begins now; {@code tasks} runs the arithmetic of its handshake. */
    SslHandler newHandler(Channel channel, Executor tasks) {
        SslHandler handler = current.newHandler(channel.alloc(), tasks);
        handler.setHandshakeTimeout(options.handshakeTimeout().toMillis(), TimeUnit.MILLISECONDS);
        return handler;
    }

    /** The subject of the certificate that the client at the other end has shown; null without TLS or certificate. */
    static @Nullable String peer(ChannelHandlerContext ctx) {
        if (ctx.pipeline().first() == ctx.handler()) {
            return null; // not encrypted
        }
        SslHandler handler = ctx.pipeline().get(SslHandler.class);
        if (handler == null) {
            return null;
        }
        try {
            return ((X509Certificate) handler.engine().getSession().getPeerCertificates()[0])
                    .getSubjectX500Principal()
                    .getName();
        } catch (SSLPeerUnverifiedException e) {
            return null;
        }
    }

    /** Whether what broke a connection is the network's or the client's doing and no fault of the server. */
    static boolean isForeign(Throwable cause) {
        return cause instanceof IOException || cause.getCause() instanceof SSLException;
    }

    /** A failure of a handshake in short. */
    static String reason(Throwable cause) {
        Throwable root = cause.getCause() instanceof SSLException ? cause.getCause() : cause;
        String message = root.getMessage();
        return message == null ? root.getClass().getSimpleName().toLowerCase(Locale.ROOT) : message;
    }
}
