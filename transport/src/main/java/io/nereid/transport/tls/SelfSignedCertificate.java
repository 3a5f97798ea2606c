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

/**
 * A key (EC P-256) and a certificate for it that it has signed itself, both as PEM. Clients that are given the
 * certificate as an authority trust the server that holds the key. Immutable.
 *
 * @param certificate the certificate
 * @param key the private key
 */
public record SelfSignedCertificate(String certificate, String key) {
    private static final Pattern IP = Pattern.compile("[0-9.]+|[0-9a-fA-F.]*:[0-9a-fA-F.:]*");
    private static final DateTimeFormatter GENERALIZED =
            DateTimeFormatter.ofPattern("yyyyMMddHHmmss'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);
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
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
            generator.initialize(new ECGenParameterSpec("secp256r1"));
            KeyPair pair = generator.generateKeyPair();
            byte[] algorithm = DerEncoding.sequence(oid("2a8648ce3d040302"));
            byte[] subject = DerEncoding.sequence(DerEncoding.of(
                    SET,
                    DerEncoding.sequence(oid("550403"), DerEncoding.of(UTF8, name.getBytes(StandardCharsets.UTF_8)))));
            List<byte[]> names = new ArrayList<>();
            for (String host : hosts) {
                names.add(alternative(host));
            }
            byte[] extension = DerEncoding.sequence(
                    oid("551d11"),
                    DerEncoding.of(DerEncoding.OCTETS, DerEncoding.sequence(names.toArray(new byte[0][]))));
            byte[] body = DerEncoding.sequence(
                    DerEncoding.of(VERSION, DerEncoding.of(INTEGER, new byte[] {2})),
                    DerEncoding.of(INTEGER, new BigInteger(127, new SecureRandom()).toByteArray()),
                    algorithm,
                    subject,
                    DerEncoding.sequence(time(from), time(until)),
                    subject,
                    pair.getPublic().getEncoded(),
                    DerEncoding.of(EXTENSIONS, DerEncoding.sequence(extension)));
            Signature signature = Signature.getInstance("SHA256withECDSA");
            signature.initSign(pair.getPrivate());
            signature.update(body);
            byte[] whole =
                    DerEncoding.sequence(body, algorithm, DerEncoding.of(BIT_STRING, new byte[1], signature.sign()));
            return new SelfSignedCertificate(
                    pem("CERTIFICATE", whole),
                    pem("PRIVATE KEY", pair.getPrivate().getEncoded()));
        } catch (GeneralSecurityException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "this Java runtime cannot make an EC P-256 certificate: " + e.getMessage(),
                    "use a JDK with the provider SunEC",
                    e);
        }
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

    private static String pem(String label, byte[] der) {
        return "-----BEGIN " + label + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der) + "\n-----END " + label + "-----\n";
    }

    /** Without the key. */
    @Override
    public String toString() {
        return "SelfSignedCertificate[]";
    }
}
