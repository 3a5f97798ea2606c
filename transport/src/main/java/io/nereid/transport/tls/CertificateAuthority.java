// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.Collection;
import java.util.List;

/**
 * A certificate authority of one's own: its certificate, which clients trust, and its key (EC P-256), both as PEM. It
 * issues certificates for servers; the chain has two certificates. Immutable.
 *
 * <pre>{@code
 * CertificateAuthority authority = CertificateAuthority.make("nereid webhook", now, now.plus(Duration.ofDays(365)));
 * CertificateAuthority.Issued server = authority.issue("webhook", List.of("nereid-webhook.nereid.svc"), now, until);
 * }</pre>
 *
 * @param certificate the certificate of the authority
 * @param key its private key
 */
public record CertificateAuthority(String certificate, String key) {
    /** Makes an authority. */
    public static CertificateAuthority make(String name, Instant from, Instant until) {
        KeyPair pair = CertificateEncoding.keyPair();
        byte[] subject = CertificateEncoding.name(name);
        byte[] whole = CertificateEncoding.sign(
                subject, subject, pair.getPublic(), pair.getPrivate(), from, until, CertificateEncoding.ofAuthority());
        return new CertificateAuthority(
                CertificateEncoding.pem("CERTIFICATE", whole),
                CertificateEncoding.pem("PRIVATE KEY", pair.getPrivate().getEncoded()));
    }

    /**
     * Makes a key and its certificate, signed by this authority.
     *
     * @param name the common name
     * @param hosts the names and IP addresses that the certificate is for
     * @throws ServingException INVALID_ARGUMENT for a host that cannot be in a certificate; FAILED_PRECONDITION when
     *     the certificate or the key of the authority cannot be read
     */
    public Issued issue(String name, Collection<String> hosts, Instant from, Instant until) {
        X509Certificate own = parse(certificate);
        KeyPair pair = CertificateEncoding.keyPair();
        byte[] whole = CertificateEncoding.sign(
                CertificateEncoding.name(name),
                own.getSubjectX500Principal().getEncoded(),
                pair.getPublic(),
                file("the key of a certificate authority", key).key(),
                from,
                until,
                List.of(CertificateEncoding.alternativeNames(hosts)));
        return new Issued(
                CertificateEncoding.pem("CERTIFICATE", whole),
                CertificateEncoding.pem("PRIVATE KEY", pair.getPrivate().getEncoded()));
    }

    /**
     * Reads the first certificate of a text in PEM form.
     *
     * @throws ServingException FAILED_PRECONDITION when it is not a certificate
     */
    public static X509Certificate parse(String pem) {
        return file("a certificate", pem).certificates().get(0);
    }

    private static PemFile file(String what, String text) {
        return new PemFile(what, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Without the key. */
    @Override
    public String toString() {
        return "CertificateAuthority[]";
    }

    /**
     * A certificate that an authority has issued, and its private key, both as PEM. Immutable.
     *
     * @param certificate the certificate
     * @param key the private key
     */
    public record Issued(String certificate, String key) {
        /** Without the key. */
        @Override
        public String toString() {
            return "Issued[]";
        }
    }
}
