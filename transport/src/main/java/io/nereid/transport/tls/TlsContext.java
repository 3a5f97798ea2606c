// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

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
 * The current certificate and key of an address with TLS, reloaded when their files change. {@link #newHandler} may be
 * called on any thread; the constructor and {@link #poll} read files and are called one at a time.
 */
public final class TlsContext {
    private static final Logger LOG = LoggerFactory.getLogger(TlsContext.class);

    /** The PEM texts; that of the authorities is empty when none are given. Immutable. */
    private record Material(byte[] certificate, byte[] key, byte[] authorities) {
        boolean same(Material other) {
            return Arrays.equals(certificate, other.certificate)
                    && Arrays.equals(key, other.key)
                    && Arrays.equals(authorities, other.authorities);
        }
    }

    private final TlsOptions options;

    /** What was read last, usable or not: unusable content is reported once and not at every poll. */
    private Material tried;

    private @Nullable String readError;
    private volatile SslContext current;

    /**
     * Reads and validates certificates and keys.
     *
     * @throws ServingException FAILED_PRECONDITION
     */
    public TlsContext(TlsOptions options) {
        this.options = options;
        this.tried = read();
        this.current = build(tried);
    }

    /**
     * Reloads the files if their content has changed and is usable. Compares content, not modification times:
     * Kubernetes updates mounted secrets by a symbolic link to files that may be older than the last poll.
     */
    public void poll() {
        Material now;
        try {
            now = read();
        } catch (ServingException e) {
            if (!e.getMessage().equals(readError)) {
                readError = e.getMessage();
                LOG.warn("cannot reload the certificate, the old one stays in use: {}", e.describe());
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
            LOG.info("reloaded the certificate from {}; open connections keep the old one", options.certificate());
        } catch (ServingException e) {
            LOG.warn("cannot use the new certificate, the old one stays in use: {}", e.describe());
        } catch (RuntimeException e) {
            LOG.error("cannot use the new certificate, the old one stays in use", e);
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

    /**
     * Checks that the key belongs to the first certificate; only warns of one that has expired, as clocks can be wrong.
     */
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
                    "the certificate of {} in {} is valid from {} to {} only: clients will reject it",
                    own.getSubjectX500Principal().getName(),
                    options.certificate(),
                    own.getNotBefore(),
                    own.getNotAfter());
        }
    }

    /** Whether the options refer to files, which can change. */
    public boolean reloads() {
        return !options.files().isEmpty();
    }

    public long reloadMillis() {
        return Math.max(10, options.reloadInterval().toMillis());
    }

    /** The TLS handler of a new connection; {@code tasks} runs the expensive parts of its handshake. */
    public SslHandler newHandler(Channel channel, Executor tasks) {
        SslHandler handler = current.newHandler(channel.alloc(), tasks);
        handler.setHandshakeTimeout(options.handshakeTimeout().toMillis(), TimeUnit.MILLISECONDS);
        return handler;
    }

    /** The subject of the client's certificate; null without TLS or without a certificate. */
    public static @Nullable String peer(ChannelHandlerContext ctx) {
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

    /** Whether an exception was caused by the network or the client and not by the server. */
    public static boolean isForeign(Throwable cause) {
        return cause instanceof IOException || cause.getCause() instanceof SSLException;
    }

    /** A short text for the failure of a handshake. */
    public static String reason(Throwable cause) {
        Throwable root = cause.getCause() instanceof SSLException ? cause.getCause() : cause;
        String message = root.getMessage();
        return message == null ? root.getClass().getSimpleName().toLowerCase(Locale.ROOT) : message;
    }
}
