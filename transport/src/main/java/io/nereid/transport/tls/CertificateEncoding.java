// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/** Encodes and signs certificates (X.509, RFC 5280) with keys of EC P-256: the JDK can only read them. Stateless. */
final class CertificateEncoding {
    private static final Pattern IP = Pattern.compile("[0-9.]+|[0-9a-fA-F.]*:[0-9a-fA-F.:]*");
    private static final DateTimeFormatter GENERALIZED =
            DateTimeFormatter.ofPattern("yyyyMMddHHmmss'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);
    private static final int BOOLEAN = 0x01;
    private static final int INTEGER = 0x02;
    private static final int BIT_STRING = 0x03;
    private static final int UTF8 = 0x0c;
    private static final int UTC_TIME = 0x17;
    private static final int GENERALIZED_TIME = 0x18;
    private static final int SET = 0x31;
    private static final int VERSION = 0xa0;
    private static final int EXTENSIONS = 0xa3;
    private static final int DNS_NAME = 0x82;
    private static final int IP_ADDRESS = 0x87;

    private CertificateEncoding() {}

    static KeyPair keyPair() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
            generator.initialize(new ECGenParameterSpec("secp256r1"));
            return generator.generateKeyPair();
        } catch (GeneralSecurityException e) {
            throw unsupported(e);
        }
    }

    /** A distinguished name with a common name. */
    static byte[] name(String common) {
        return DerEncoding.sequence(DerEncoding.of(
                SET,
                DerEncoding.sequence(oid("550403"), DerEncoding.of(UTF8, common.getBytes(StandardCharsets.UTF_8)))));
    }

    /** The certificate of a public key, signed by the issuer's private key. */
    static byte[] sign(
            byte[] subject,
            byte[] issuer,
            PublicKey key,
            PrivateKey signer,
            Instant from,
            Instant until,
            List<byte[]> extensions) {
        try {
            byte[] algorithm = DerEncoding.sequence(oid("2a8648ce3d040302"));
            byte[] body = DerEncoding.sequence(
                    DerEncoding.of(VERSION, DerEncoding.of(INTEGER, new byte[] {2})),
                    DerEncoding.of(INTEGER, new BigInteger(127, new SecureRandom()).toByteArray()),
                    algorithm,
                    issuer,
                    DerEncoding.sequence(time(from), time(until)),
                    subject,
                    key.getEncoded(),
                    DerEncoding.of(EXTENSIONS, DerEncoding.sequence(extensions.toArray(new byte[0][]))));
            Signature signature = Signature.getInstance("SHA256withECDSA");
            signature.initSign(signer);
            signature.update(body);
            return DerEncoding.sequence(body, algorithm, DerEncoding.of(BIT_STRING, new byte[1], signature.sign()));
        } catch (GeneralSecurityException e) {
            throw unsupported(e);
        }
    }

    /** The extension with the hosts that a certificate is for. */
    static byte[] alternativeNames(Collection<String> hosts) {
        List<byte[]> names = new ArrayList<>();
        for (String host : hosts) {
            names.add(alternative(host));
        }
        return extension("551d11", false, DerEncoding.sequence(names.toArray(new byte[0][])));
    }

    /** The extensions of an authority whose certificates sign no further authorities: constraints and use of the key. */
    static List<byte[]> ofAuthority() {
        byte[] constraints =
                DerEncoding.sequence(DerEncoding.of(BOOLEAN, new byte[] {-1}), DerEncoding.of(INTEGER, new byte[1]));
        // keyCertSign is bit 5 of 8, so that the two lowest are unused
        byte[] use = DerEncoding.of(BIT_STRING, new byte[] {2, 4});
        return List.of(extension("551d13", true, constraints), extension("551d0f", true, use));
    }

    private static byte[] extension(String oid, boolean critical, byte[] value) {
        byte[] octets = DerEncoding.of(DerEncoding.OCTETS, value);
        return critical
                ? DerEncoding.sequence(oid(oid), DerEncoding.of(BOOLEAN, new byte[] {-1}), octets)
                : DerEncoding.sequence(oid(oid), octets);
    }

    private static byte[] alternative(String host) {
        if (IP.matcher(host).matches()) {
            try {
                // a literal address, which is not resolved
                return DerEncoding.of(IP_ADDRESS, InetAddress.getByName(host).getAddress());
            } catch (UnknownHostException e) {
                throw ServingException.invalidArgument("'" + host + "' is not an IP address");
            }
        }
        if (!StandardCharsets.US_ASCII.newEncoder().canEncode(host)) {
            throw ServingException.invalidArgument(
                    "'" + host + "' is not a host name of ASCII characters", "write it in Punycode: xn--…");
        }
        return DerEncoding.of(DNS_NAME, host.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] oid(String hex) {
        return DerEncoding.of(DerEncoding.OID, HexFormat.of().parseHex(hex));
    }

    /** RFC 5280 wants the shorter form of years before 2050. */
    private static byte[] time(Instant instant) {
        String text = GENERALIZED.format(instant);
        return text.compareTo("2050") < 0
                ? DerEncoding.of(UTC_TIME, text.substring(2).getBytes(StandardCharsets.US_ASCII))
                : DerEncoding.of(GENERALIZED_TIME, text.getBytes(StandardCharsets.US_ASCII));
    }

    static String pem(String label, byte[] der) {
        return "-----BEGIN " + label + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der) + "\n-----END " + label + "-----\n";
    }

    private static ServingException unsupported(GeneralSecurityException e) {
        return ServingException.wrap(
                ErrorCode.FAILED_PRECONDITION,
                "this Java runtime cannot make an EC P-256 certificate: " + e.getMessage(),
                "use a JDK with the provider SunEC",
                e);
    }
}
