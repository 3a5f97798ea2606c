// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.PemFile;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.X509Certificate;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import org.jspecify.annotations.Nullable;

/**
 * Which servers a command trusts, and the certificate that it shows. Immutable.
 *
 * @param authorities the authorities of the server's certificate; null for those of the Java runtime
 * @param certificate the client's certificate chain; null for none
 * @param key the certificate's private key; null without a certificate
 * @param unverified whether any certificate of the server is accepted
 */
public record ClientTls(
        @Nullable PemFile authorities,
        @Nullable PemFile certificate,
        @Nullable PemFile key,
        boolean unverified) {
    /** What the Java runtime trusts, without a certificate of the client. */
    static final ClientTls DEFAULT = new ClientTls(null, null, null, false);

    private static final char[] NO_PASSWORD = new char[0];

    /**
     * The context; null for the one of the Java runtime.
     *
     * @throws ServingException FAILED_PRECONDITION when a file cannot be used
     */
    public @Nullable SSLContext context() {
        if (authorities == null && certificate == null && !unverified) {
            return null;
        }
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys(), trust(), null);
            return context;
        } catch (GeneralSecurityException | IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "the options of TLS cannot be used: " + e.getMessage(), e);
        }
    }

    private TrustManager @Nullable [] trust() throws GeneralSecurityException, IOException {
        if (unverified) {
            return new TrustManager[] {new AcceptAll()};
        }
        if (authorities == null) {
            return null;
        }
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        int number = 0;
        for (X509Certificate authority : authorities.certificates()) {
            store.setCertificateEntry("ca-" + number++, authority);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }

    private KeyManager @Nullable [] keys() throws GeneralSecurityException, IOException {
        if (certificate == null || key == null) {
            return null;
        }
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        store.setKeyEntry(
                "client", key.key(), NO_PASSWORD, certificate.certificates().toArray(new Certificate[0]));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, NO_PASSWORD);
        return factory.getKeyManagers();
    }

    /**
     * Reads a file that an option names.
     *
     * @return null without a file
     * @throws ServingException NOT_FOUND when it cannot be read
     */
    public static @Nullable PemFile file(String option, @Nullable Path file) {
        if (file == null) {
            return null;
        }
        try {
            return new PemFile("the file '" + file + "' of " + option, Files.readAllBytes(file));
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND,
                    "cannot read the file '" + file + "' of " + option + ": " + e.getMessage(),
                    "check the path and the mode of the file",
                    e);
        }
    }

    /** Accepts every certificate, and every name in it. Stateless. */
    private static final class AcceptAll extends X509ExtendedTrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
