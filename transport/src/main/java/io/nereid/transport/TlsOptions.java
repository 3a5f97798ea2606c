// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The encryption of an address that is listened on. What comes from files is read again when they change: new connections
 * get the new certificate, those that are open go on, and what cannot be used is logged and changes nothing. Immutable.
 *
 * @param certificate the server's certificate first, then those of the authorities up to the root
 * @param key its private key, not encrypted: PKCS#8, PKCS#1 (RSA) or SEC 1 (EC)
 * @param clientAuthorities authorities whose clients are known; null for none
 * @param clientVerify whether clients show a certificate; anything but NONE needs {@code clientAuthorities}
 * @param protocols the versions of TLS spoken, of {@code TLSv1.3} and {@code TLSv1.2}
 * @param reloadInterval how often the files are looked at
 * @param handshakeTimeout a handshake that takes longer is broken off
 */
public record TlsOptions(
        Pem certificate,
        Pem key,
        @Nullable Pem clientAuthorities,
        ClientVerify clientVerify,
        List<String> protocols,
        Duration reloadInterval,
        Duration handshakeTimeout) {
    /** The versions there are. */
    static final List<String> PROTOCOLS = List.of("TLSv1.3", "TLSv1.2");

    /** What is asked of clients. */
    public enum ClientVerify {
        /** Nothing. */
        NONE,
        /** A certificate if they have one, which must be good then. */
        OPTIONAL,
        /** A good certificate. */
        REQUIRED
    }

    /** Where text in PEM form is. */
    public sealed interface Pem {
        /** In a file, which may change. */
        static Pem file(Path path) {
            return new File(path, UnaryOperator.identity());
        }

        /** A part of the text of a file, which may change. */
        static Pem in(Path path, UnaryOperator<String> part) {
            return new File(path, part);
        }

        /** Here. */
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

    /** Text; does not show itself, as it may be a key. Immutable. */
    record Text(String text) implements Pem {
        @Override
        public String toString() {
            return "the PEM text given";
        }
    }

    /**
     * Copies the list.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a version of TLS that is not offered, and when clients
     *     shall be verified against nobody
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
                    "clients shall be verified, but no authority is given that could have signed their certificates",
                    "give the authority's certificate as PEM (custom_ca in an ssl_config_file), or verify nobody");
        }
    }

    /** A certificate and its key, no verification of clients, TLS 1.2 and 1.3, a look at the files every 3 seconds. */
    public static TlsOptions of(Pem certificate, Pem key) {
        return new TlsOptions(
                certificate, key, null, ClientVerify.NONE, PROTOCOLS, Duration.ofSeconds(3), Duration.ofSeconds(10));
    }

    /** These options with clients that show certificates signed by {@code authorities}. */
    public TlsOptions withClients(Pem authorities, ClientVerify verify) {
        return new TlsOptions(certificate, key, authorities, verify, protocols, reloadInterval, handshakeTimeout);
    }

    /** These options with other versions of TLS. */
    public TlsOptions withProtocols(List<String> versions) {
        return new TlsOptions(
                certificate, key, clientAuthorities, clientVerify, versions, reloadInterval, handshakeTimeout);
    }

    /** These options with another interval between looks at the files. */
    public TlsOptions withReloadInterval(Duration interval) {
        return new TlsOptions(certificate, key, clientAuthorities, clientVerify, protocols, interval, handshakeTimeout);
    }

    /** These options with another time for a handshake. */
    public TlsOptions withHandshakeTimeout(Duration timeout) {
        return new TlsOptions(certificate, key, clientAuthorities, clientVerify, protocols, reloadInterval, timeout);
    }

    /**
     * Reads and checks everything, as a server that starts does.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION that names the file and what is wrong with it
     */
    public void check() {
        new TlsContext(this);
    }

    /** The files that are named. */
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
