// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.tfserving;

import io.nereid.base.ServingException;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.tfserving.TfServingTextFiles.Read;
import java.nio.file.Path;
import java.util.regex.Pattern;

/**
 * TensorFlow Serving's TLS configuration: {@code --ssl_config_file}, in protobuf's text format, with the contents of
 * PEM files as strings. Immutable; {@link #toString} does not show the key.
 *
 * @param serverKey the server's private key, PEM
 * @param serverCert the server's certificate chain, its own certificate first, PEM
 * @param customCa the trusted certificates for client certificates, PEM; empty for the JVM's default
 * @param clientVerify whether clients must have a certificate
 */
public record SslConfig(String serverKey, String serverCert, String customCa, boolean clientVerify) {
    /** Matches texts that are long enough to be a part of a key. */
    private static final Pattern SECRET = Pattern.compile("'[^']{25,}'|[A-Za-z0-9+/=]{20,}");

    /** Validates the PEM texts; throws INVALID_ARGUMENT. */
    public SslConfig {
        pem("server_key", serverKey, "PRIVATE KEY", true);
        pem("server_cert", serverCert, "CERTIFICATE", true);
        pem("custom_ca", customCa, "CERTIFICATE", false);
    }

    private static void pem(String field, String text, String what, boolean needed) {
        if (text.isEmpty() && needed) {
            throw ServingException.invalidArgument(
                    field + " is not given", "write " + field + ": \"-----BEGIN …\\n…\", the contents of a PEM file");
        }
        if (!text.isEmpty() && !(text.contains("-----BEGIN ") && text.contains(what + "-----"))) {
            throw ServingException.invalidArgument(
                    field + " is not in the PEM format (expected: -----BEGIN " + what + "----- and so on)",
                    "give the contents of the file, not its name, each line ending in \\n");
        }
    }

    /**
     * Reads a text.
     *
     * @param where the origin of the text, for messages
     * @throws ServingException INVALID_ARGUMENT with every error and its position; it does not quote parts of a key
     */
    public static SslConfig parse(String text, String where) {
        try {
            Read read = TfServingTextFiles.read(TfServingTextFiles.SSL, text, where);
            read.check();
            TypedMessage ssl = read.root();
            return new SslConfig(
                    ssl.text("server_key"), ssl.text("server_cert"), ssl.text("custom_ca"), ssl.flag("client_verify"));
        } catch (ServingException e) {
            String prefix = where + ":";
            String message = e.getMessage();
            boolean placed = message.startsWith(prefix);
            String redacted = SECRET.matcher(placed ? message.substring(prefix.length()) : " " + message)
                    .replaceAll("'…'");
            String remedy = e.remedy();
            throw ServingException.of(
                    e.code(),
                    prefix + redacted,
                    remedy == null ? null : SECRET.matcher(remedy).replaceAll("'…'"));
        }
    }

    /** As {@link #parse}, of a file, which must be readable. */
    public static SslConfig read(Path file) {
        return parse(TfServingTextFiles.text(file), file.toString());
    }

    @Override
    public String toString() {
        return "SslConfig[clientVerify=" + clientVerify + ", customCa=" + !customCa.isEmpty() + "]";
    }
}
