// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.repository.SslConfig;
import io.nereid.transport.TlsOptions;
import io.nereid.transport.TlsOptions.ClientVerify;
import io.nereid.transport.TlsOptions.Pem;
import java.nio.file.Path;

/** TensorFlow Serving's {@code --ssl_config_file} as the transport's options. Has no state. */
final class SslFile {
    private SslFile() {}

    /** Keys and certificates of a file, which are read again when it changes. */
    static TlsOptions tls(Path file) {
        SslConfig now = SslConfig.read(file);
        TlsOptions tls = TlsOptions.of(Pem.text(now.serverCert()), Pem.text(now.serverKey()));
        if (now.customCa().isEmpty()) {
            return tls;
        }
        return tls.withClients(
                Pem.text(now.customCa()), now.clientVerify() ? ClientVerify.REQUIRED : ClientVerify.OPTIONAL);
    }
}
