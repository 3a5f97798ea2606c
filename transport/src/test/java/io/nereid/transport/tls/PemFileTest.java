// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PemFileTest {
    private static PemFile of(String text) {
        return new PemFile("the server key in 'k.pem'", text.getBytes(StandardCharsets.ISO_8859_1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"RSA", "EC", "Ed25519"})
    void keysInPkcs8AreRead(String algorithm) throws GeneralSecurityException {
        Identity identity = Identity.authority("ca").issue("server", algorithm);
        assertThat(identity.sameKeyAs(of(identity.keyPem()).key())).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"RSA", "EC"})
    void keysOfOlderToolsAreRead(String algorithm) throws GeneralSecurityException {
        Identity identity = Identity.authority("ca").issue("server", algorithm);
        assertThat(PemFile.belongs(of(identity.oldKeyPem()).key(), identity.certificate.getPublicKey()))
                .isTrue();
        assertThat(PemFile.belongs(
                        of(identity.oldKeyPem()).key(), Identity.pair(algorithm).getPublic()))
                .isFalse();
    }

    @Test
    void textAroundTheBlocksAndWindowsLineEndsDoNotMatter() throws GeneralSecurityException {
        Identity ca = Identity.authority("ca");
        Identity own = ca.issue("server", "EC");
        String text = "subject=/CN=server\r\n" + own.certificatePem() + "\n# the authority\n" + ca.certificatePem()
                + own.keyPem();
        PemFile file = of(text.replace("\n", "\r\n"));
        assertThat(file.certificates()).isEqualTo(List.of(own.certificate, ca.certificate));
        assertThat(own.sameKeyAs(file.key())).isTrue();
    }

    private static void refuses(String text, String why, String remedy) {
        assertThatThrownBy(() -> of(text).key())
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe())
                                .contains("the server key in 'k.pem'")
                                .contains(why)
                                .contains(remedy));
    }

    @Test
    void unreadableKeysAreRejectedWithARemedy() throws GeneralSecurityException {
        String convert = "openssl pkcs8 -topk8 -nocrypt";
        byte[] junk = {0x30, 0x03, 0x02, 0x01, 0x00};
        refuses(Identity.pem("ENCRYPTED PRIVATE KEY", junk), "encrypted", convert);
        refuses(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nMAA=\n"
                        + "-----END RSA PRIVATE KEY-----\n",
                "encrypted",
                convert);
        refuses(Identity.pem("DSA PRIVATE KEY", junk), "DSA PRIVATE KEY", convert);
        refuses(Identity.pem("OPENSSH PRIVATE KEY", junk), "OPENSSH PRIVATE KEY", convert);
        refuses(Identity.pem("EC PRIVATE KEY", junk), "does not name its curve", convert);
        refuses(Identity.pem("PRIVATE KEY", junk), "cannot be read", convert);
        refuses("\u0030\u0082 not text", "not in PEM form", "openssl pkcs12");
        refuses(Identity.authority("ca").certificatePem(), "holds no private key but CERTIFICATE", "");
        KeyPairGenerator dsa = KeyPairGenerator.getInstance("DSA");
        dsa.initialize(1024);
        refuses(
                Identity.pem("PRIVATE KEY", dsa.generateKeyPair().getPrivate().getEncoded()),
                "cannot be read",
                convert);
    }

    @Test
    void aBrokenCertificateIsNamedByItsNumber() throws GeneralSecurityException {
        String text = Identity.authority("ca").certificatePem() + Identity.pem("CERTIFICATE", new byte[] {0x30, 0x00});
        assertThatThrownBy(() -> of(text).certificates()).hasMessageContaining("certificate (number 2)");
    }
}
