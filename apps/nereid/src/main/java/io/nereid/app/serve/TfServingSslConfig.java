// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.base.ServingException;
import io.nereid.repository.tfserving.SslConfig;
import io.nereid.transport.tls.TlsOptions;
import io.nereid.transport.tls.TlsOptions.ClientVerify;
import io.nereid.transport.tls.TlsOptions.Pem;
import java.nio.file.Path;
import java.util.function.Function;

/** Converts TensorFlow Serving's {@code --ssl_config_file} to the transport's TLS options. Stateless. */
final class TfServingSslConfig {
    private TfServingSslConfig() {}

    /** Reads the key and the certificates of the file, which are reloaded when it changes. */
    static TlsOptions tls(Path file) {
        SslConfig now = SslConfig.read(file);
        TlsOptions tls = TlsOptions.of(part(file, SslConfig::serverCert), part(file, SslConfig::serverKey));
        if (now.customCa().isEmpty()) {
            if (now.clientVerify()) {
                throw ServingException.invalidArgument(
                        "'" + file + "' sets client_verify, but no certificates to verify clients against",
                        "add custom_ca with the CA certificates of your clients");
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
