// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.certificate;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.transport.tls.CertificateAuthority;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertPathValidator;
import java.security.cert.CertificateFactory;
import java.security.cert.PKIXParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class WebhookCertificatesTest {
    private static final Instant START = Instant.parse("2030-01-01T00:00:00Z");
    private static final List<String> HOSTS = CertificateKeeper.hosts("nereid-webhook", "nereid");

    private static Set<TrustAnchor> anchors(String bundle) throws Exception {
        return CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(bundle.getBytes(StandardCharsets.US_ASCII)))
                .stream()
                .map(one -> new TrustAnchor((X509Certificate) one, null))
                .collect(Collectors.toSet());
    }

    private static void trusted(String serving, String bundle, Instant now) throws Exception {
        PKIXParameters parameters = new PKIXParameters(anchors(bundle));
        parameters.setRevocationEnabled(false);
        parameters.setDate(Date.from(now));
        CertPathValidator.getInstance("PKIX")
                .validate(
                        CertificateFactory.getInstance("X.509")
                                .generateCertPath(List.of(CertificateAuthority.parse(serving))),
                        parameters);
    }

    @Test
    void everyCertificateIsTrustedByTheBundlesOfTheDayBeforeAndAfter() throws Exception {
        WebhookCertificates now = WebhookCertificates.make(HOSTS, START);
        Set<String> authorities = new HashSet<>();
        Set<String> certificates = new HashSet<>();
        int changes = 0;
        for (int day = 1; day < 5 * 365; day++) {
            Instant time = START.plus(Duration.ofDays(day));
            WebhookCertificates then = now.maintained(HOSTS, time);
            // A replica serves the old certificate for a while, and an API server has the old bundle for a while.
            trusted(now.serving().certificate(), then.bundle(), time);
            trusted(then.serving().certificate(), now.bundle(), time);
            trusted(then.serving().certificate(), then.bundle(), time);
            changes += then.equals(now) ? 0 : 1;
            authorities.add(then.active().certificate());
            certificates.add(then.serving().certificate());
            now = then;
        }
        assertThat(authorities).hasSizeBetween(6, 12);
        assertThat(certificates).hasSizeBetween(25, 40);
        assertThat(changes).isLessThan(60);
    }

    @Test
    void theDataOfTheSecretReadsBack() {
        WebhookCertificates made = WebhookCertificates.make(HOSTS, START);
        WebhookCertificates withNext = made.maintained(HOSTS, START.plus(Duration.ofDays(200)));
        assertThat(withNext.next()).isNotNull();
        WebhookCertificates rotated = withNext.maintained(HOSTS, START.plus(Duration.ofDays(280)));
        assertThat(rotated.previous()).isEqualTo(made.active().certificate());
        for (WebhookCertificates one : List.of(made, withNext, rotated)) {
            ObjectNode secret = JsonNodeFactory.instance.objectNode();
            secret.set("data", one.data());
            assertThat(WebhookCertificates.read(secret)).isEqualTo(one);
            assertThat(one.toString()).doesNotContain("PRIVATE");
        }
    }

    @Test
    void aBrokenSecretIsReadAsNone() {
        ObjectNode secret = JsonNodeFactory.instance.objectNode();
        assertThat(WebhookCertificates.read(secret)).isNull();
        ObjectNode data = WebhookCertificates.make(HOSTS, START).data();
        secret.set("data", data);
        data.put("tls.crt", "bm90IGEgY2VydGlmaWNhdGU=");
        assertThat(WebhookCertificates.read(secret)).isNull();
        data.put("tls.crt", "%");
        assertThat(WebhookCertificates.read(secret)).isNull();
    }

    @Test
    void otherHostsGetAnotherCertificateOfTheSameAuthority() {
        WebhookCertificates made = WebhookCertificates.make(HOSTS, START);
        WebhookCertificates moved = made.maintained(List.of("other.svc"), START);
        assertThat(moved.active()).isEqualTo(made.active());
        assertThat(moved.serving()).isNotEqualTo(made.serving());
        assertThat(made.maintained(HOSTS, START)).isSameAs(made);
    }

    @Test
    void whatHasExpiredWhileNoOperatorRanIsMadeAnew() throws Exception {
        WebhookCertificates made = WebhookCertificates.make(HOSTS, START);
        Instant later = START.plus(Duration.ofDays(2000));
        WebhookCertificates anew = made.maintained(HOSTS, later);
        assertThat(anew.active()).isNotEqualTo(made.active());
        trusted(anew.serving().certificate(), anew.bundle(), later);
    }
}
