// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import java.io.ByteArrayInputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/** A key and its certificate, made for a test; signed by another one or self-signed. Immutable. */
public final class Identity {
    private static final AtomicInteger SERIAL = new AtomicInteger(1);
    private static final int SET = 0x31;
    private static final int UTF8 = 0x0c;
    private static final int TIME = 0x17;

    public final PrivateKey key;
    public final X509Certificate certificate;
    private final KeyPair pair;

    private Identity(KeyPair pair, X509Certificate certificate) {
        this.pair = pair;
        this.key = pair.getPrivate();
        this.certificate = certificate;
    }

    static KeyPair pair(String algorithm) throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
        if (algorithm.equals("EC")) {
            generator.initialize(new ECGenParameterSpec("secp256r1"));
        } else if (algorithm.equals("RSA")) {
            generator.initialize(2048);
        }
        return generator.generateKeyPair();
    }

    /** An authority. */
    public static Identity authority(String name) throws GeneralSecurityException {
        return make(name, pair("EC"), null, "250101000000Z", "491231000000Z");
    }

    /** An identity signed by an authority. */
    public Identity issue(String name, String algorithm) throws GeneralSecurityException {
        return make(name, pair(algorithm), this, "250101000000Z", "491231000000Z");
    }

    static Identity make(String name, KeyPair pair, @Nullable Identity issuer, String from, String to)
            throws GeneralSecurityException {
        PrivateKey signer = issuer == null ? pair.getPrivate() : issuer.key;
        String algorithm = signer.getAlgorithm().equals("RSA") ? "SHA256withRSA" : "SHA256withECDSA";
        byte[] algorithmId = algorithm.equals("SHA256withRSA")
                ? DerEncoding.sequence(oid("2a864886f70d01010b"), DerEncoding.of(0x05))
                : DerEncoding.sequence(oid("2a8648ce3d040302"));
        byte[] subject = name(name);
        byte[] issuerName = issuer == null
                ? subject
                : issuer.certificate.getSubjectX500Principal().getEncoded();
        byte[] alternative = DerEncoding.sequence(
                DerEncoding.of(0x82, "localhost".getBytes(StandardCharsets.US_ASCII)),
                DerEncoding.of(0x87, new byte[] {127, 0, 0, 1}));
        byte[] extension = issuer == null
                ? DerEncoding.sequence(
                        oid("551d13"),
                        DerEncoding.of(DerEncoding.OCTETS, DerEncoding.sequence(DerEncoding.of(0x01, new byte[] {-1}))))
                : DerEncoding.sequence(oid("551d11"), DerEncoding.of(DerEncoding.OCTETS, alternative));
        byte[] body = DerEncoding.sequence(
                DerEncoding.of(0xa0, DerEncoding.of(0x02, new byte[] {2})),
                DerEncoding.of(
                        0x02, BigInteger.valueOf(SERIAL.getAndIncrement()).toByteArray()),
                algorithmId,
                issuerName,
                DerEncoding.sequence(time(from), time(to)),
                subject,
                pair.getPublic().getEncoded(),
                DerEncoding.of(0xa3, DerEncoding.sequence(extension)));
        Signature signature = Signature.getInstance(algorithm);
        signature.initSign(signer);
        signature.update(body);
        byte[] whole = DerEncoding.sequence(body, algorithmId, DerEncoding.of(0x03, new byte[1], signature.sign()));
        return new Identity(pair, (X509Certificate)
                CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(whole)));
    }

    private static byte[] oid(String hex) {
        return DerEncoding.of(DerEncoding.OID, java.util.HexFormat.of().parseHex(hex));
    }

    private static byte[] time(String utc) {
        return DerEncoding.of(TIME, utc.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] name(String common) {
        return DerEncoding.sequence(DerEncoding.of(
                SET,
                DerEncoding.sequence(oid("550403"), DerEncoding.of(UTF8, common.getBytes(StandardCharsets.UTF_8)))));
    }

    static String pem(String label, byte[] der) {
        return "-----BEGIN " + label + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der) + "\n-----END " + label + "-----\n";
    }

    public String certificatePem() throws GeneralSecurityException {
        return pem("CERTIFICATE", certificate.getEncoded());
    }

    public String keyPem() {
        return pem("PRIVATE KEY", key.getEncoded());
    }

    /** The key as {@code openssl genrsa} of old, or {@code openssl ecparam -genkey}, writes it. */
    public String oldKeyPem() {
        DerEncoding parts = Objects.requireNonNull(new DerEncoding(key.getEncoded()).enter(DerEncoding.SEQUENCE));
        parts.skip();
        DerEncoding algorithm = Objects.requireNonNull(parts.enter(DerEncoding.SEQUENCE));
        parts.skip();
        byte[] inner = parts.content();
        if (key.getAlgorithm().equals("RSA")) {
            return pem("RSA PRIVATE KEY", inner);
        }
        algorithm.skip();
        byte[] curve = algorithm.whole();
        DerEncoding sec1 = Objects.requireNonNull(new DerEncoding(inner).enter(DerEncoding.SEQUENCE));
        byte[] version = sec1.whole();
        sec1.skip();
        byte[] number = sec1.whole();
        return pem("EC PARAMETERS", curve)
                + pem(
                        "EC PRIVATE KEY",
                        DerEncoding.sequence(version, number, DerEncoding.of(DerEncoding.CONTEXT_0, curve)));
    }

    /** A client's context that trusts this authority, and presents {@code own} if it is not null. */
    public SSLContext client(@Nullable Identity own) throws GeneralSecurityException, java.io.IOException {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", certificate);
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManager[] keys = {};
        if (own != null) {
            char[] password = "secret".toCharArray();
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setKeyEntry("own", own.key, password, new X509Certificate[] {own.certificate});
            KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            factory.init(store, password);
            keys = factory.getKeyManagers();
        }
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys, trust.getTrustManagers(), null);
        return context;
    }

    boolean sameKeyAs(PrivateKey other) {
        return PemFile.belongs(other, pair.getPublic()) && Arrays.equals(key.getEncoded(), other.getEncoded());
    }
}
