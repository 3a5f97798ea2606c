// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.interfaces.RSAKey;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads certificates and private keys from PEM text. Keys in PKCS#1 and SEC 1 form, as older tools write them, are
 * wrapped into PKCS#8, the only form that the JDK reads. Immutable.
 */
public final class PemFile {
    private static final Pattern BLOCK =
            Pattern.compile("-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \\1-----", Pattern.DOTALL);

    /** AlgorithmIdentifier rsaEncryption, without parameters. */
    private static final byte[] RSA = {
        0x30, 0x0d, 0x06, 0x09, 0x2a, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00
    };

    /** The object identifier ecPublicKey. */
    private static final byte[] EC = {0x06, 0x07, 0x2a, (byte) 0x86, 0x48, (byte) 0xce, 0x3d, 0x02, 0x01};

    private static final byte[] MESSAGE = {1, 2, 3};
    private static final byte[] VERSION_0 = {0x02, 0x01, 0x00};

    /** One block; its text may begin with headers. Immutable. */
    private record Block(String label, String text) {}

    private final String where;
    private final List<Block> blocks = new ArrayList<>();

    /**
     * Finds the blocks of a text.
     *
     * @param where the name of the text in error messages
     */
    public PemFile(String where, byte[] bytes) {
        this.where = where;
        Matcher m = BLOCK.matcher(new String(bytes, StandardCharsets.ISO_8859_1));
        while (m.find()) {
            blocks.add(new Block(m.group(1), m.group(2)));
        }
    }

    private ServingException unusable(String why, @Nullable String remedy) {
        return ServingException.of(ErrorCode.FAILED_PRECONDITION, where + " " + why, remedy);
    }

    private ServingException missing(String what) {
        StringBuilder found = new StringBuilder();
        for (Block block : blocks) {
            found.append(found.isEmpty() ? "" : ", ").append(block.label());
        }
        return blocks.isEmpty()
                ? unusable(
                        "holds no " + what + ": it is not in PEM form (expected: -----BEGIN ...-----)",
                        "from a PKCS#12 keystore: openssl pkcs12 -nodes -in KEYSTORE -out FILE.pem")
                : unusable("holds no " + what + " but " + found, null);
    }

    private byte[] decode(Block block) {
        try {
            return Base64.getMimeDecoder().decode(block.text().strip());
        } catch (IllegalArgumentException e) {
            throw unusable("has a " + block.label() + " that is not base64: " + e.getMessage(), null);
        }
    }

    /**
     * The certificates, at least one.
     *
     * @throws ServingException FAILED_PRECONDITION
     */
    public List<X509Certificate> certificates() {
        List<X509Certificate> all = new ArrayList<>();
        for (Block block : blocks) {
            if (!block.label().equals("CERTIFICATE") && !block.label().equals("X509 CERTIFICATE")) {
                continue;
            }
            try {
                all.add((X509Certificate) CertificateFactory.getInstance("X.509")
                        .generateCertificate(new ByteArrayInputStream(decode(block))));
            } catch (CertificateException e) {
                throw unusable(
                        "has a certificate (number " + (all.size() + 1) + ") that cannot be read: " + e.getMessage(),
                        null);
            }
        }
        if (all.isEmpty()) {
            throw missing("certificate");
        }
        return all;
    }

    /**
     * The first private key.
     *
     * @throws ServingException FAILED_PRECONDITION
     */
    public PrivateKey key() {
        for (Block block : blocks) {
            if (!block.label().endsWith("PRIVATE KEY")) {
                continue;
            }
            if (block.label().startsWith("ENCRYPTED") || block.text().contains("ENCRYPTED")) {
                throw unusable("holds an encrypted private key", convert());
            }
            byte[] der = decode(block);
            return switch (block.label()) {
                case "PRIVATE KEY" -> pkcs8(der);
                case "RSA PRIVATE KEY" ->
                    pkcs8(DerEncoding.sequence(VERSION_0, RSA, DerEncoding.of(DerEncoding.OCTETS, der)));
                case "EC PRIVATE KEY" ->
                    pkcs8(DerEncoding.sequence(
                            VERSION_0, DerEncoding.sequence(EC, curve(der)), DerEncoding.of(DerEncoding.OCTETS, der)));
                default -> throw unusable("holds a key in an unsupported form: " + block.label(), convert());
            };
        }
        throw missing("private key");
    }

    private static String convert() {
        return "write it as plain PKCS#8: openssl pkcs8 -topk8 -nocrypt -in OLD.pem -out NEW.pem";
    }

    /** The object identifier of the curve in a SEC 1 key. */
    private byte[] curve(byte[] sec1) {
        DerEncoding parts = new DerEncoding(sec1).enter(DerEncoding.SEQUENCE);
        while (parts != null && parts.more()) {
            if (parts.tag() == DerEncoding.CONTEXT_0) {
                DerEncoding named = parts.enter(DerEncoding.CONTEXT_0);
                if (named != null && named.more() && named.tag() == DerEncoding.OID) {
                    return named.whole();
                }
                break;
            }
            parts.skip();
        }
        throw unusable("holds an EC key that does not name its curve", convert());
    }

    private PrivateKey pkcs8(byte[] encoded) {
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(encoded);
        String reason = "";
        for (String algorithm : new String[] {"RSA", "EC", "RSASSA-PSS", "EdDSA"}) {
            try {
                PrivateKey key = KeyFactory.getInstance(algorithm).generatePrivate(spec);
                if (algorithm.equals("EC")) {
                    sign(key); // some curves can be read, but not be used
                }
                return key;
            } catch (InvalidKeySpecException e) {
                // try the next algorithm; keep the message of EC, which names an unknown curve
                if (algorithm.equals("EC") || reason.isEmpty()) {
                    reason = String.valueOf(e.getMessage());
                }
            } catch (GeneralSecurityException e) {
                reason = String.valueOf(e.getMessage());
            }
        }
        throw unusable(
                "holds a private key that cannot be read (expected: RSA, EC P-256, P-384 or P-521, Ed25519): " + reason,
                convert());
    }

    private static String algorithm(PrivateKey key) {
        return key.getAlgorithm().equals("EC") ? "SHA256withECDSA" : key.getAlgorithm();
    }

    private static byte[] sign(PrivateKey key) throws GeneralSecurityException {
        Signature signer = Signature.getInstance(algorithm(key));
        signer.initSign(key);
        signer.update(MESSAGE);
        return signer.sign();
    }

    /** Whether a private and a public key are a pair. */
    static boolean belongs(PrivateKey mine, PublicKey theirs) {
        if (mine instanceof RSAKey a && theirs instanceof RSAKey b) {
            return a.getModulus().equals(b.getModulus());
        }
        try {
            byte[] signature = sign(mine);
            Signature verifier = Signature.getInstance(algorithm(mine));
            verifier.initVerify(theirs);
            verifier.update(MESSAGE);
            return verifier.verify(signature);
        } catch (GeneralSecurityException e) {
            return false;
        }
    }
}
