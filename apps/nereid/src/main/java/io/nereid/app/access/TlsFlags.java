// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.access;

import io.nereid.app.text.DurationConverter;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.transport.tls.TlsOptions;
import io.nereid.transport.tls.TlsOptions.ClientVerify;
import io.nereid.transport.tls.TlsOptions.Pem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The TLS options of servers. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class TlsFlags {
    @Option(
            names = "--tls-cert",
            paramLabel = "FILE",
            description = "Encrypt the ports: the server's certificate chain, as PEM. Reloaded when it changes.")
    Path cert;

    @Option(names = "--tls-key", paramLabel = "FILE", description = "The certificate's private key, as PEM.")
    Path key;

    @Option(
            names = "--tls-client-ca",
            paramLabel = "FILE",
            description = "CA certificates of clients, as PEM (see --tls-client-verify).")
    Path clientCa;

    @Option(
            names = "--tls-client-verify",
            paramLabel = "none|optional|required",
            description =
                    "Whether clients must present a certificate (default: required with --tls-client-ca, else none).")
    ClientVerify clientVerify;

    @Option(
            names = "--tls-protocols",
            split = ",",
            paramLabel = "NAME",
            description = "TLSv1.3, TLSv1.2 or both (default: both).")
    List<String> protocols = new ArrayList<>();

    @Option(
            converter = DurationConverter.class,
            names = "--tls-reload-interval",
            paramLabel = "TIME",
            description = "Poll interval for changes of the files (default: 3s).")
    String reloadInterval;

    /** Returns the TLS options of all ports; null without encryption. */
    public @Nullable TlsOptions everywhere() {
        if (cert == null && key == null) {
            if (clientCa != null || clientVerify != null || !protocols.isEmpty() || reloadInterval != null) {
                throw ServingException.invalidArgument(
                        "--tls-client-ca, --tls-client-verify, --tls-protocols and --tls-reload-interval have no effect"
                                + " without a certificate",
                        "add --tls-cert FILE --tls-key FILE");
            }
            return null;
        }
        TlsOptions tls = of("--tls-cert", cert, "--tls-key", key);
        ClientVerify verify =
                clientVerify != null ? clientVerify : clientCa == null ? ClientVerify.NONE : ClientVerify.REQUIRED;
        if (verify != ClientVerify.NONE && clientCa == null) {
            throw ServingException.invalidArgument(
                    "--tls-client-verify " + verify + " requires --tls-client-ca",
                    "set it to the file with the CA certificates of your clients");
        }
        if (clientCa != null) {
            tls = tls.withClients(Pem.file(clientCa), verify);
        }
        if (!protocols.isEmpty()) {
            tls = tls.withProtocols(protocols);
        }
        return reloadInterval == null ? tls : tls.withReloadInterval(Units.duration(reloadInterval));
    }

    /**
     * Returns the options of a certificate.
     *
     * @throws ServingException INVALID_ARGUMENT when one of the files is missing
     */
    public static TlsOptions of(String certName, @Nullable Path cert, String keyName, @Nullable Path key) {
        if (cert == null || key == null) {
            throw ServingException.invalidArgument(
                    (cert == null ? certName : keyName) + " is missing (a certificate needs its key)",
                    "set both " + certName + " and " + keyName);
        }
        return TlsOptions.of(Pem.file(cert), Pem.file(key));
    }
}
