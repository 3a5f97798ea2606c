// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.transport.TlsOptions;
import io.nereid.transport.TlsOptions.ClientVerify;
import io.nereid.transport.TlsOptions.Pem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Encryption of connections: this server's options, and those of {@code tritonserver}. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class TlsFlags {
    @Option(
            names = "--tls-cert",
            paramLabel = "FILE",
            description =
                    "Encrypt every port: the server's certificate and those above it, as PEM. Read again when it changes.")
    Path cert;

    @Option(names = "--tls-key", paramLabel = "FILE", description = "The certificate's private key, as PEM.")
    Path key;

    @Option(
            names = "--tls-client-ca",
            paramLabel = "FILE",
            description = "Authorities whose clients are known, as PEM (see --tls-client-verify).")
    Path clientCa;

    @Option(
            names = "--tls-client-verify",
            paramLabel = "none|optional|required",
            description =
                    "Whether clients must show a certificate (default: required with --tls-client-ca, else none).")
    ClientVerify clientVerify;

    @Option(
            names = "--tls-protocols",
            split = ",",
            paramLabel = "NAME",
            description = "TLSv1.3, TLSv1.2 or both (default: both).")
    List<String> protocols = new ArrayList<>();

    @Option(
            names = "--tls-reload-interval",
            paramLabel = "TIME",
            description = "How often the files are looked at (default: 3s).")
    String reloadInterval;

    @Option(
            names = "--grpc-use-ssl",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Encrypt --grpc-port, or --port where there is none, with --grpc-server-cert and -key.")
    boolean grpcUseSsl;

    @Option(
            names = "--grpc-use-ssl-mutual",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "As --grpc-use-ssl; clients must show a certificate of --grpc-root-cert.")
    boolean grpcMutual;

    @Option(names = "--grpc-server-cert", hidden = true)
    Path grpcCert;

    @Option(names = "--grpc-server-key", hidden = true)
    Path grpcKey;

    @Option(names = "--grpc-root-cert", hidden = true)
    Path grpcRoot;

    /** For every port; null when connections are not encrypted. */
    @Nullable TlsOptions everywhere() {
        if (cert == null && key == null) {
            if (clientCa != null || clientVerify != null || !protocols.isEmpty() || reloadInterval != null) {
                throw ServingException.invalidArgument(
                        "--tls-client-ca, --tls-client-verify, --tls-protocols and --tls-reload-interval say nothing"
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
                    "--tls-client-verify " + verify + " needs --tls-client-ca",
                    "name the file with the certificates of those who sign your clients' certificates");
        }
        if (clientCa != null) {
            tls = tls.withClients(Pem.file(clientCa), verify);
        }
        if (!protocols.isEmpty()) {
            tls = tls.withProtocols(protocols);
        }
        return reloadInterval == null ? tls : tls.withReloadInterval(Units.duration(reloadInterval));
    }

    /** For gRPC's port alone, as Triton has it; null for none. */
    @Nullable TlsOptions grpc() {
        if (!grpcUseSsl && !grpcMutual) {
            if (grpcCert != null || grpcKey != null || grpcRoot != null) {
                throw ServingException.invalidArgument(
                        "--grpc-server-cert, --grpc-server-key and --grpc-root-cert say nothing without --grpc-use-ssl",
                        "add --grpc-use-ssl");
            }
            return null;
        }
        TlsOptions tls = of("--grpc-server-cert", grpcCert, "--grpc-server-key", grpcKey);
        if (!grpcMutual) {
            return tls;
        }
        if (grpcRoot == null) {
            throw ServingException.invalidArgument("--grpc-use-ssl-mutual needs --grpc-root-cert");
        }
        return tls.withClients(Pem.file(grpcRoot), ClientVerify.REQUIRED);
    }

    private static TlsOptions of(String certName, @Nullable Path cert, String keyName, @Nullable Path key) {
        if (cert == null || key == null) {
            throw ServingException.invalidArgument(
                    (cert == null ? certName : keyName) + " is missing (a certificate goes with its key)",
                    "give both " + certName + " and " + keyName);
        }
        return TlsOptions.of(Pem.file(cert), Pem.file(key));
    }
}
