// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import java.security.KeyManagementException;
import java.security.Provider;
import java.security.SecureRandom;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;

/**
 * The context of an HTTP client that only connects to {@code http://} addresses. Without it the client reads the certificates of
 * the Java runtime and starts its implementation of TLS, which no request uses. An encrypted connection fails. Immutable.
 */
public final class NoTls extends SSLContext {
    private NoTls() {
        super(new Refusing(), new NoProvider(), "none");
    }

    /** A context without trust. */
    public static SSLContext context() {
        return new NoTls();
    }

    private static final class NoProvider extends Provider {
        private static final long serialVersionUID = 1;

        NoProvider() {
            super("none", "1", "no TLS");
        }
    }

    private static final class Refusing extends SSLContextSpi {
        private static UnsupportedOperationException refusal() {
            return new UnsupportedOperationException("this client has no TLS: its server has an http:// address");
        }

        @Override
        protected SSLParameters engineGetDefaultSSLParameters() {
            return new SSLParameters(new String[0], new String[0]);
        }

        @Override
        protected SSLParameters engineGetSupportedSSLParameters() {
            return engineGetDefaultSSLParameters();
        }

        @Override
        protected void engineInit(KeyManager[] keys, TrustManager[] trusted, SecureRandom random)
                throws KeyManagementException {
            throw new KeyManagementException(refusal());
        }

        @Override
        protected SSLSocketFactory engineGetSocketFactory() {
            throw refusal();
        }

        @Override
        protected SSLServerSocketFactory engineGetServerSocketFactory() {
            throw refusal();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine() {
            throw refusal();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine(String host, int port) {
            throw refusal();
        }

        @Override
        protected SSLSessionContext engineGetServerSessionContext() {
            throw refusal();
        }

        @Override
        protected SSLSessionContext engineGetClientSessionContext() {
            throw refusal();
        }
    }
}
