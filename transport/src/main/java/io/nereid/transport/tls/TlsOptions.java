// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The TLS options of a listening address. Certificates and keys in files are reloaded when the files change: new
 * connections get the new certificate, open ones are not affected. Unusable content is logged and the old certificate
 * stays in use. Immutable.
 *
 * <pre>{@code
 * TlsOptions tls = TlsOptions.of(TlsOptions.Pem.file(certificatePath), TlsOptions.Pem.file(keyPath))
 *         .withClients(TlsOptions.Pem.file(caPath), TlsOptions.ClientVerify.REQUIRED);
 * }</pre>
 *
 * @param certificate the server's certificate first, then those of the authorities up to the root
 * @param key its unencrypted private key: PKCS#8, PKCS#1 (RSA) or SEC 1 (EC)
 * @param clientAuthorities certificate authorities that sign client certificates; null for none
 * @param clientVerify whether client certificates are verified; anything but NONE needs {@code clientAuthorities}
 * @param protocols the allowed versions of TLS, of {@code TLSv1.3} and {@code TLSv1.2}
 * @param reloadInterval how often the files are polled
 * @param handshakeTimeout the time limit of a handshake
 */
public record TlsOptions(
        Pem certificate,
        Pem key,
        @Nullable Pem clientAuthorities,
        ClientVerify clientVerify,
        List<String> protocols,
        Duration reloadInterval,
        Duration handshakeTimeout) {
    /** The supported versions. */
    static final List<String> PROTOCOLS = List.of("TLSv1.3", "TLSv1.2");

    /** The verification of client certificates (mutual TLS). */
    public enum ClientVerify {
        /** Clients are not asked for a certificate. */
        NONE,
        /** Clients may present a certificate, which must then be valid. */
        OPTIONAL,
        /** Clients must present a valid certificate. */
        REQUIRED
    }

    /** The source of a text in PEM form. */
    public sealed interface Pem {
        /** A file, which may change. */
        static Pem file(Path path) {
            return new File(path, UnaryOperator.identity());
        }

        /** A part of the text of a file, which may change. */
        static Pem in(Path path, UnaryOperator<String> part) {
            return new File(path, part);
        }

        /** The text itself. */
        static Pem text(String text) {
            return new Text(text);
        }
    }

    /** A file. Immutable. */
    record File(Path path, UnaryOperator<String> part) implements Pem {
        @Override
        public String toString() {
            return "'" + path + "'";
        }
    }

    /** A text; {@link #toString} does not reveal it, as it may be a key. Immutable. */
    record Text(String text) implements Pem {
        @Override
        public String toString() {
            return "the PEM text given";
        }
    }

    /**
     * Copies the list.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an unsupported version of TLS, and for verification
     *     of clients without authorities
     */
    public TlsOptions {
        protocols = List.copyOf(protocols);
        for (String protocol : protocols) {
            if (!PROTOCOLS.contains(protocol)) {
                throw io.nereid.base.ServingException.invalidArgument("TLS version '" + protocol
                        + "' is not offered (expected: " + String.join(" or ", PROTOCOLS) + ")");
            }
        }
        if (protocols.isEmpty()) {
            throw io.nereid.base.ServingException.invalidArgument(
                    "no TLS version is allowed (expected: " + String.join(" or ", PROTOCOLS) + ")");
        }
        if (clientVerify != ClientVerify.NONE && clientAuthorities == null) {
            throw io.nereid.base.ServingException.invalidArgument(
                    "client certificates are to be verified, but no certificate authority is given",
                    "give the authority's certificate as PEM (custom_ca in an ssl_config_file), or do not verify");
        }
    }

    /** A certificate and its key; clients are not verified, TLS 1.2 and 1.3, files are polled every 3 seconds. */
    public static TlsOptions of(Pem certificate, Pem key) {
        return new TlsOptions(
                certificate, key, null, ClientVerify.NONE, PROTOCOLS, Duration.ofSeconds(3), Duration.ofSeconds(10));
    }

    /** These options with client certificates that {@code authorities} have signed. */
    public TlsOptions withClients(Pem authorities, ClientVerify verify) {
        return new TlsOptions(certificate, key, authorities, verify, protocols, reloadInterval, handshakeTimeout);
    }

    /** These options with other versions of TLS. */
    public TlsOptions withProtocols(List<String> versions) {
        return new TlsOptions(
                certificate, key, clientAuthorities, clientVerify, versions, reloadInterval, handshakeTimeout);
    }

    /** These options with another polling interval of the files. */
    public TlsOptions withReloadInterval(Duration interval) {
        return new TlsOptions(certificate, key, clientAuthorities, clientVerify, protocols, interval, handshakeTimeout);
    }

    /** These options with another time limit for handshakes. */
    public TlsOptions withHandshakeTimeout(Duration timeout) {
        return new TlsOptions(certificate, key, clientAuthorities, clientVerify, protocols, reloadInterval, timeout);
    }

    /**
     * Reads and validates certificates and keys, as the start of a server does.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION with the file's name and the reason
     */
    public void check() {
        new TlsContext(this);
    }

    /** The files that the options refer to. */
    Set<Path> files() {
        Set<Path> files = new java.util.LinkedHashSet<>();
        for (Pem pem : new @Nullable Pem[] {certificate, key, clientAuthorities}) {
            if (pem instanceof File file) {
                files.add(file.path());
            }
        }
        return files;
    }
}
