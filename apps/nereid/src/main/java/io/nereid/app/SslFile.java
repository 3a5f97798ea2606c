// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.ServingException;
import io.nereid.repository.tfserving.SslConfig;
import io.nereid.transport.TlsOptions;
import io.nereid.transport.TlsOptions.ClientVerify;
import io.nereid.transport.TlsOptions.Pem;
import java.nio.file.Path;
import java.util.function.Function;

/** TensorFlow Serving's {@code --ssl_config_file} as the transport's options. Has no state. */
final class SslFile {
    private SslFile() {}

    /** Keys and certificates of a file, which are read again when it changes. */
    static TlsOptions tls(Path file) {
        SslConfig now = SslConfig.read(file);
        TlsOptions tls = TlsOptions.of(part(file, SslConfig::serverCert), part(file, SslConfig::serverKey));
        if (now.customCa().isEmpty()) {
            if (now.clientVerify()) {
                throw ServingException.invalidArgument(
                        "'" + file + "' asks for clients to be verified (client_verify), but not by whose certificates",
                        "add custom_ca with the certificates of those who sign your clients' certificates");
            }
            return tls;
        }
        return tls.withClients(
                part(file, SslConfig::customCa), now.clientVerify() ? ClientVerify.REQUIRED : ClientVerify.OPTIONAL);
    }

    private static Pem part(Path file, Function<SslConfig, String> part) {
        return Pem.in(file, text -> part.apply(SslConfig.parse(text, file.toString())));
    }
}
