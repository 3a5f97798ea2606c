// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import java.security.SignatureException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

class CertificateAuthorityTest {
    private static final Instant NOW = Instant.parse("2030-01-01T00:00:00Z");
    private static final Instant UNTIL = NOW.plus(Duration.ofDays(30_000));

    @Test
    void anIssuedCertificateIsSignedByTheAuthorityAndForTheHosts() throws Exception {
        CertificateAuthority authority = CertificateAuthority.make("own CA", NOW, UNTIL);
        X509Certificate root = CertificateAuthority.parse(authority.certificate());
        assertThat(root.getBasicConstraints()).isZero();
        assertThat(root.getKeyUsage()).containsExactly(false, false, false, false, false, true, false, false, false);
        root.verify(root.getPublicKey());
        CertificateAuthority.Issued issued =
                authority.issue("server", List.of("a.svc", "10.0.0.1"), NOW, NOW.plusSeconds(60));
        X509Certificate leaf = CertificateAuthority.parse(issued.certificate());
        leaf.verify(root.getPublicKey());
        assertThat(leaf.getIssuerX500Principal()).isEqualTo(root.getSubjectX500Principal());
        assertThat(leaf.getSubjectAlternativeNames())
                .extracting(name -> String.valueOf(name.get(1)))
                .containsExactly("a.svc", "10.0.0.1");
        assertThat(leaf.getBasicConstraints()).isEqualTo(-1);
        assertThat(leaf.getNotAfter().toInstant()).isEqualTo(NOW.plusSeconds(60));
        CertificateAuthority other = CertificateAuthority.make("own CA", NOW, UNTIL);
        assertThatThrownBy(() -> leaf.verify(
                        CertificateAuthority.parse(other.certificate()).getPublicKey()))
                .isInstanceOf(SignatureException.class);
        assertThat(authority + "" + issued).doesNotContain("PRIVATE");
    }

    @Test
    void whatIsNoCertificateIsRefused() {
        assertThatThrownBy(() -> CertificateAuthority.parse("text")).isInstanceOf(ServingException.class);
    }
}
