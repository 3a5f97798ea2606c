// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import io.nereid.base.ServingException;
import java.security.KeyPair;
import java.time.Instant;
import java.util.Collection;
import java.util.List;

/**
 * A key (EC P-256) and a certificate for it that it has signed itself, both as PEM. Clients that are given the
 * certificate as an authority trust the server that holds the key. Immutable.
 *
 * @param certificate the certificate
 * @param key the private key
 */
public record SelfSignedCertificate(String certificate, String key) {
    /**
     * Makes a key and its certificate.
     *
     * @param name the common name
     * @param hosts the names and IP addresses that the certificate is for
     * @param from the beginning of its validity
     * @param until the end of its validity
     * @throws ServingException INVALID_ARGUMENT for a host that cannot be in a certificate
     */
    public static SelfSignedCertificate make(String name, Collection<String> hosts, Instant from, Instant until) {
        KeyPair pair = CertificateEncoding.keyPair();
        byte[] subject = CertificateEncoding.name(name);
        byte[] whole = CertificateEncoding.sign(
                subject,
                subject,
                pair.getPublic(),
                pair.getPrivate(),
                from,
                until,
                List.of(CertificateEncoding.alternativeNames(hosts)));
        return new SelfSignedCertificate(
                CertificateEncoding.pem("CERTIFICATE", whole),
                CertificateEncoding.pem("PRIVATE KEY", pair.getPrivate().getEncoded()));
    }

    /** Without the key. */
    @Override
    public String toString() {
        return "SelfSignedCertificate[]";
    }
}
