// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.app.connection.OwnerOnlyFile;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.PemFile;
import io.nereid.transport.tls.SelfSignedCertificate;
import io.nereid.transport.tls.TlsOptions;
import io.nereid.transport.tls.TlsOptions.Pem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateParsingException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The certificate of the control API on a server without {@code --tls-cert}: clients such as kubectl send a token over
 * TLS only. It is made once, in the directory of the control plane, and made anew for other host names and before it
 * expires. Stateless.
 */
public final class ControlCertificate {
    private static final String CERTIFICATE = "control-cert.pem";
    private static final String KEY = "control-key.pem";
    private static final Duration VALID = Duration.ofDays(3650);
    private static final Duration RENEWED = Duration.ofDays(30);

    private ControlCertificate() {}

    /** The certificate of a directory, as PEM; null when there is none. */
    public static @Nullable String read(Path directory) {
        try {
            return Files.readString(directory.resolve(CERTIFICATE));
        } catch (IOException e) {
            return null;
        }
    }

    /**
     * The certificate of a directory and its key, which are made if there are none for the hosts.
     *
     * @throws ServingException FAILED_PRECONDITION when the files cannot be written
     */
    static TlsOptions readOrCreate(Path directory, Collection<String> hosts, Instant now) {
        Path certificate = directory.resolve(CERTIFICATE);
        Path key = directory.resolve(KEY);
        Set<String> names = new LinkedHashSet<>(List.of("localhost", "127.0.0.1", "0:0:0:0:0:0:0:1"));
        for (String host : hosts) {
            if (!host.equals("0.0.0.0") && !host.equals("::")) {
                names.add(host.toLowerCase(Locale.ROOT));
            }
        }
        if (!Files.exists(key) || !isFor(certificate, names, now.plus(RENEWED))) {
            SelfSignedCertificate made = SelfSignedCertificate.make(
                    "nereid control API", names, now.minus(Duration.ofDays(1)), now.plus(VALID));
            OwnerOnlyFile.write(key, made.key());
            OwnerOnlyFile.write(certificate, made.certificate());
        }
        return TlsOptions.of(Pem.file(certificate), Pem.file(key));
    }

    /** Removes the files of a directory whose server has another certificate, so that clients do not get this one. */
    static void remove(Path directory) {
        try {
            Files.deleteIfExists(directory.resolve(CERTIFICATE));
            Files.deleteIfExists(directory.resolve(KEY));
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot remove the certificate of the control API in '" + directory + "': " + e.getMessage(),
                    e);
        }
    }

    private static boolean isFor(Path file, Set<String> names, Instant time) {
        try {
            X509Certificate certificate = new PemFile("'" + file + "'", Files.readAllBytes(file))
                    .certificates()
                    .get(0);
            Set<String> known = new HashSet<>();
            Collection<List<?>> all = certificate.getSubjectAlternativeNames();
            if (all != null) {
                all.forEach(name -> known.add(String.valueOf(name.get(1)).toLowerCase(Locale.ROOT)));
            }
            return known.containsAll(names)
                    && certificate.getNotAfter().toInstant().isAfter(time);
        } catch (IOException | CertificateParsingException | ServingException e) {
            return false;
        }
    }
}
