// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.certificate;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.CertificateAuthority;
import io.nereid.transport.tls.CertificateAuthority.Issued;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The authorities and the serving certificate of the webhook. A rotation has no gap, because the next authority is in the
 * bundle that the API server trusts at least a day before a certificate of it is served, and the previous one stays in it
 * until it expires. Immutable; {@link #maintained} is a pure decision but for the keys that it makes.
 *
 * @param active the authority that has issued the serving certificate
 * @param next the authority that takes its place; null while the active one has long to go
 * @param previous the certificate of the authority before; null when it has expired
 * @param serving the serving certificate
 */
record WebhookCertificates(
        CertificateAuthority active,
        @Nullable CertificateAuthority next,
        @Nullable String previous,
        Issued serving) {
    private static final String NAME = "nereid webhook";
    private static final Duration AUTHORITY = Duration.ofDays(365);
    private static final Duration NEXT_BEFORE = Duration.ofDays(180);
    private static final Duration SERVING = Duration.ofDays(90);
    private static final Duration RENEWED_BEFORE = Duration.ofDays(30);

    /** How long the API server has known an authority before a certificate of it is served. */
    private static final Duration KNOWN = Duration.ofDays(1);

    /** Certificates begin earlier than they are made, for API servers whose clock is behind. */
    private static final Duration SKEW = Duration.ofHours(1);

    /** New authority and certificate. */
    static WebhookCertificates make(Collection<String> hosts, Instant now) {
        CertificateAuthority authority = authority(now);
        return new WebhookCertificates(authority, null, null, issue(authority, hosts, now));
    }

    /** Reads the data of the Secret; null when anything is missing or cannot be read. */
    static @Nullable WebhookCertificates read(ObjectNode secret) {
        try {
            String active = entry(secret, "active-ca.crt");
            String activeKey = entry(secret, "active-ca.key");
            String serving = entry(secret, "tls.crt");
            String servingKey = entry(secret, "tls.key");
            if (active == null || activeKey == null || serving == null || servingKey == null) {
                return null;
            }
            String next = entry(secret, "next-ca.crt");
            String nextKey = entry(secret, "next-ca.key");
            String previous = entry(secret, "previous-ca.crt");
            WebhookCertificates read = new WebhookCertificates(
                    new CertificateAuthority(active, activeKey),
                    next == null || nextKey == null ? null : new CertificateAuthority(next, nextKey),
                    previous,
                    new Issued(serving, servingKey));
            return read.isReadable() ? read : null;
        } catch (ServingException | IllegalArgumentException e) {
            return null;
        }
    }

    /** Whether all certificates can be read, and end some time. */
    private boolean isReadable() {
        Instant never = Instant.MAX;
        return until(active.certificate()).isBefore(never)
                && until(serving.certificate()).isBefore(never)
                && (next == null || until(next.certificate()).isBefore(never))
                && (previous == null || until(previous).isBefore(never));
    }

    private static @Nullable String entry(ObjectNode secret, String name) {
        String text = secret.path("data").path(name).asText("");
        return text.isEmpty() ? null : new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    /** The data of the Secret. */
    ObjectNode data() {
        ObjectNode data = JsonNodeFactory.instance.objectNode();
        put(data, "tls.crt", serving.certificate());
        put(data, "tls.key", serving.key());
        put(data, "ca.crt", bundle());
        put(data, "active-ca.crt", active.certificate());
        put(data, "active-ca.key", active.key());
        if (next != null) {
            put(data, "next-ca.crt", next.certificate());
            put(data, "next-ca.key", next.key());
        }
        if (previous != null) {
            put(data, "previous-ca.crt", previous);
        }
        return data;
    }

    private static void put(ObjectNode data, String name, String text) {
        data.put(name, Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8)));
    }

    /** The certificates of all authorities that the API server is to trust. */
    String bundle() {
        return active.certificate() + (next == null ? "" : next.certificate()) + (previous == null ? "" : previous);
    }

    /** What the certificates should be at a time; this object when nothing has to change. */
    WebhookCertificates maintained(Collection<String> hosts, Instant now) {
        if (!until(active.certificate()).isAfter(now)) {
            return next != null && until(next.certificate()).isAfter(now)
                    ? new WebhookCertificates(next, null, null, issue(next, hosts, now))
                    : make(hosts, now);
        }
        CertificateAuthority successor = next;
        if (successor == null && until(active.certificate()).isBefore(now.plus(NEXT_BEFORE))) {
            successor = authority(now);
        }
        String before = previous != null && until(previous).isAfter(now) ? previous : null;
        boolean renewed = !isFor(hosts) || until(serving.certificate()).isBefore(now.plus(RENEWED_BEFORE));
        if (renewed
                && successor != null
                && from(successor.certificate()).plus(SKEW).plus(KNOWN).isBefore(now)) {
            return new WebhookCertificates(successor, null, active.certificate(), issue(successor, hosts, now));
        }
        if (renewed || successor != next || !Objects.equals(before, previous)) {
            return new WebhookCertificates(active, successor, before, renewed ? issue(active, hosts, now) : serving);
        }
        return this;
    }

    /** Whether the serving certificate is of the active authority and for the hosts. */
    private boolean isFor(Collection<String> hosts) {
        try {
            X509Certificate certificate = CertificateAuthority.parse(serving.certificate());
            certificate.verify(CertificateAuthority.parse(active.certificate()).getPublicKey());
            Set<String> known = new HashSet<>();
            Collection<List<?>> names = certificate.getSubjectAlternativeNames();
            if (names != null) {
                names.forEach(name -> known.add(String.valueOf(name.get(1)).toLowerCase(Locale.ROOT)));
            }
            return known.containsAll(hosts);
        } catch (GeneralSecurityException e) {
            return false;
        }
    }

    private static CertificateAuthority authority(Instant now) {
        return CertificateAuthority.make(NAME + " CA " + now.getEpochSecond(), now.minus(SKEW), now.plus(AUTHORITY));
    }

    private static Issued issue(CertificateAuthority authority, Collection<String> hosts, Instant now) {
        Instant last = until(authority.certificate());
        Instant until = now.plus(SERVING);
        return authority.issue(NAME, hosts, now.minus(SKEW), until.isAfter(last) ? last : until);
    }

    private static Instant from(String certificate) {
        return CertificateAuthority.parse(certificate).getNotBefore().toInstant();
    }

    private static Instant until(String certificate) {
        return CertificateAuthority.parse(certificate).getNotAfter().toInstant();
    }

    /** Without keys. */
    @Override
    public String toString() {
        return "WebhookCertificates[until " + until(serving.certificate()) + "]";
    }
}
