// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.access.TlsFlags;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.TlsOptions;
import io.nereid.transport.tls.TlsOptions.ClientVerify;
import io.nereid.transport.tls.TlsOptions.Pem;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The TLS options of {@code tritonserver}. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class GrpcTlsFlags {
    @Option(
            names = "--grpc-use-ssl",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Encrypt --grpc-port, or --port without one, with --grpc-server-cert and -key.")
    boolean grpcUseSsl;

    @Option(
            names = "--grpc-use-ssl-mutual",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "As --grpc-use-ssl; clients must present a certificate of --grpc-root-cert.")
    boolean grpcMutual;

    @Option(names = "--grpc-server-cert", hidden = true)
    Path grpcCert;

    @Option(names = "--grpc-server-key", hidden = true)
    Path grpcKey;

    @Option(names = "--grpc-root-cert", hidden = true)
    Path grpcRoot;

    /** Returns the TLS options of the gRPC port, by Triton's options; null without encryption. */
    @Nullable TlsOptions grpc() {
        if (!grpcUseSsl && !grpcMutual) {
            if (grpcCert != null || grpcKey != null || grpcRoot != null) {
                throw ServingException.invalidArgument(
                        "--grpc-server-cert, --grpc-server-key and --grpc-root-cert have no effect without"
                                + " --grpc-use-ssl",
                        "add --grpc-use-ssl");
            }
            return null;
        }
        TlsOptions tls = TlsFlags.of("--grpc-server-cert", grpcCert, "--grpc-server-key", grpcKey);
        if (!grpcMutual) {
            return tls;
        }
        if (grpcRoot == null) {
            throw ServingException.invalidArgument("--grpc-use-ssl-mutual requires --grpc-root-cert");
        }
        return tls.withClients(Pem.file(grpcRoot), ClientVerify.REQUIRED);
    }
}
