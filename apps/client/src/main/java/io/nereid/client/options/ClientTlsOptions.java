// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.options;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/**
 * TLS of a client, the same for REST and gRPC: whom to trust, and the certificate to show. Files are read when the client is
 * built. Host names are always verified. Immutable.
 *
 * <pre>{@code
 * ClientTlsOptions.trusting(Path.of("ca.pem")).withClientCertificate(Path.of("client.pem"), Path.of("client-key.pem"))
 * }</pre>
 */
public final class ClientTlsOptions {
    private static final Pattern KEY =
            Pattern.compile("-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END");

    private final @Nullable SSLContext context;
    private final @Nullable Path authorities;
    private final @Nullable Path certificate;
    private final @Nullable Path key;

    private ClientTlsOptions(
            @Nullable SSLContext context, @Nullable Path authorities, @Nullable Path certificate, @Nullable Path key) {
        this.context = context;
        this.authorities = authorities;
        this.certificate = certificate;
        this.key = key;
    }

    /** Trusts the certificate authorities of the JVM. */
    public static ClientTlsOptions standard() {
        return new ClientTlsOptions(null, null, null, null);
    }

    /** Trusts the certificates of a PEM file instead of those of the JVM. */
    public static ClientTlsOptions trusting(Path certificates) {
        return new ClientTlsOptions(null, certificates, null, null);
    }

    /** Uses a context that the application has made. */
    public static ClientTlsOptions of(SSLContext context) {
        return new ClientTlsOptions(context, null, null, null);
    }

    /**
     * Shows a certificate to servers that ask for one.
     *
     * @param chain a PEM file with the certificate, followed by those of intermediate authorities
     * @param privateKey a PEM file with its key in PKCS#8, without a password
     */
    public ClientTlsOptions withClientCertificate(Path chain, Path privateKey) {
        if (context != null) {
            throw new IllegalStateException(
                    "a client certificate besides an SSLContext (expected: a context that has it)");
        }
        return new ClientTlsOptions(null, authorities, chain, privateKey);
    }

    /**
     * Makes the context.
     *
     * @throws IllegalArgumentException for a file that cannot be read or does not contain what is expected
     */
    public SSLContext sslContext() {
        if (context != null) {
            return context;
        }
        try {
            SSLContext made = SSLContext.getInstance("TLS");
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(authorities == null ? null : trusted(authorities));
            KeyManagerFactory keys = null;
            if (certificate != null && key != null) {
                keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
                KeyStore store = emptyStore();
                Certificate[] chain = certificates(certificate).toArray(new Certificate[0]);
                store.setKeyEntry("client", privateKey(key), new char[0], chain);
                keys.init(store, new char[0]);
            }
            made.init(keys == null ? null : keys.getKeyManagers(), trust.getTrustManagers(), null);
            return made;
        } catch (GeneralSecurityException e) {
            throw new IllegalArgumentException("TLS cannot be set up: " + e.getMessage(), e);
        } catch (IOException e) {
            throw new IllegalArgumentException("a file for TLS cannot be read: " + e, e);
        }
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static KeyStore trusted(Path file) throws GeneralSecurityException, IOException {
        KeyStore store = emptyStore();
        int next = 0;
        for (Certificate each : certificates(file)) {
            store.setCertificateEntry("ca" + next++, each);
        }
        return store;
    }

    private static Collection<? extends Certificate> certificates(Path file)
            throws GeneralSecurityException, IOException {
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> found =
                    CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (found.isEmpty()) {
                throw new IllegalArgumentException(file + " has no certificates (expected: a PEM file)");
            }
            return found;
        }
    }

    private static PrivateKey privateKey(Path file) throws GeneralSecurityException, IOException {
        Matcher m = KEY.matcher(Files.readString(file, StandardCharsets.US_ASCII));
        if (!m.find() || !m.group(1).isEmpty()) {
            throw new IllegalArgumentException(file + " has no private key that can be read (expected: PEM with 'BEGIN"
                    + " PRIVATE KEY', which 'openssl pkcs8 -topk8 -nodes' makes of other forms)");
        }
        PKCS8EncodedKeySpec spec =
                new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(m.group(2)));
        for (String algorithm : List.of("RSA", "EC", "Ed25519")) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(spec);
            } catch (InvalidKeySpecException e) {
                // a key of another algorithm
            }
        }
        throw new IllegalArgumentException(file + " has a key of an unknown algorithm (expected: RSA, EC or Ed25519)");
    }
}
