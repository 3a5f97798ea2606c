// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.PemFile;
import java.io.File;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A program that prints credentials, by the protocol {@code client.authentication.k8s.io} in the versions {@code v1} and
 * {@code v1beta1}: it reads the request from the variable {@code KUBERNETES_EXEC_INFO} and prints an {@code
 * ExecCredential}. Its error output is the terminal's. Immutable.
 *
 * @param where the user that it belongs to, for messages
 * @param command the program: a path, or a name that is looked for in PATH
 * @param installHint what to do where it is missing; empty for nothing
 * @param clusterInfo whether the request describes the cluster
 * @param interaction {@code Never}, {@code IfAvailable} or {@code Always}: whether it reads from the terminal
 */
record ExecPlugin(
        String where,
        String apiVersion,
        String command,
        List<String> arguments,
        Map<String, String> environment,
        String installHint,
        boolean clusterInfo,
        String interaction) {
    /** The supported versions of the protocol. */
    static final List<String> VERSIONS =
            List.of("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1");

    /** The values of {@code interactiveMode}. */
    static final List<String> INTERACTIONS = List.of("Never", "IfAvailable", "Always");

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_BYTES = 1 << 20;

    /**
     * What a plugin has printed: a token, a certificate with its key, or both.
     *
     * @param expires when to ask again; null for never
     */
    record Credential(
            @Nullable String token,
            @Nullable PemFile certificate,
            @Nullable PemFile key,
            @Nullable Instant expires) {
        /** Without the credentials. */
        @Override
        public String toString() {
            return "Credential[expires=" + expires + "]";
        }
    }

    /**
     * Runs the plugin and waits for it.
     *
     * @throws ServingException UNAUTHENTICATED when it gives no credentials
     */
    Credential run(KubeCluster cluster) {
        boolean terminal = !interaction.equals("Never") && terminal();
        if (interaction.equals("Always") && !terminal) {
            throw failed(
                    "needs a terminal (interactiveMode: Always), and the standard input is none",
                    "run the command in a terminal");
        }
        List<String> line = new ArrayList<>();
        line.add(command);
        line.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(line)
                .redirectError(Redirect.INHERIT)
                .redirectInput(terminal ? Redirect.INHERIT : Redirect.from(new File("/dev/null")));
        builder.environment().putAll(environment);
        builder.environment()
                .put("KUBERNETES_EXEC_INFO", info(cluster, terminal).toString());
        byte[] output;
        int status;
        try {
            Process process = builder.start();
            output = process.getInputStream().readNBytes(MOST_BYTES);
            process.getInputStream().close();
            status = process.waitFor();
        } catch (IOException e) {
            throw failed(
                    "cannot be run: " + e.getMessage(),
                    installHint.isEmpty() ? "install it, or put its folder into PATH" : installHint.strip());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, "interrupted");
        }
        if (status != 0) {
            throw failed("ended with the exit code " + status, "its error output says why");
        }
        return read(new String(output, StandardCharsets.UTF_8));
    }

    private ObjectNode info(KubeCluster cluster, boolean terminal) {
        ObjectNode info = JSON.createObjectNode();
        info.put("kind", "ExecCredential").put("apiVersion", apiVersion);
        ObjectNode spec = info.putObject("spec");
        spec.put("interactive", terminal);
        if (clusterInfo) {
            ObjectNode about = spec.putObject("cluster");
            about.put("server", cluster.server().url());
            if (cluster.authoritiesText() != null) {
                about.put("certificate-authority-data", Base64.getEncoder().encodeToString(cluster.authoritiesText()));
            }
            if (cluster.unverified()) {
                about.put("insecure-skip-tls-verify", true);
            }
            if (cluster.proxy() != null) {
                about.put(
                        "proxy-url",
                        "http://" + cluster.proxy().getHostString() + ":"
                                + cluster.proxy().getPort());
            }
        }
        return info;
    }

    private Credential read(String output) {
        JsonNode tree;
        try {
            tree = JSON.readTree(output);
        } catch (JsonProcessingException e) {
            throw failed("printed something else than an ExecCredential in JSON", null);
        }
        String version = tree.path("apiVersion").asText("");
        if (!tree.path("kind").asText("").equals("ExecCredential") || !version.equals(apiVersion)) {
            throw failed(
                    "printed " + (version.isEmpty() ? "no apiVersion" : version) + " "
                            + tree.path("kind").asText("without a kind") + " (expected: " + apiVersion
                            + " ExecCredential)",
                    "set apiVersion in the kubeconfig to the version that the plugin speaks");
        }
        JsonNode status = tree.path("status");
        String token = status.path("token").asText("").strip();
        String certificate = status.path("clientCertificateData").asText("");
        String key = status.path("clientKeyData").asText("");
        if (certificate.isEmpty() != key.isEmpty()) {
            throw failed("printed a certificate or a key alone (expected: both)", null);
        }
        if (token.isEmpty() && certificate.isEmpty()) {
            throw failed("printed neither a token nor a certificate", null);
        }
        String expires = status.path("expirationTimestamp").asText("");
        try {
            return new Credential(
                    token.isEmpty() ? null : token,
                    certificate.isEmpty() ? null : pem("clientCertificateData", certificate),
                    key.isEmpty() ? null : pem("clientKeyData", key),
                    expires.isEmpty() ? null : OffsetDateTime.parse(expires).toInstant());
        } catch (DateTimeException e) {
            throw failed(
                    "printed the expirationTimestamp " + expires + " (expected: a time such as 2026-01-02T03:04:05Z)",
                    null);
        }
    }

    private PemFile pem(String field, String text) {
        return new PemFile(field + " of the plugin '" + command + "'", text.getBytes(StandardCharsets.UTF_8));
    }

    private ServingException failed(String why, @Nullable String remedy) {
        return ServingException.of(
                ErrorCode.UNAUTHENTICATED, "the credential plugin '" + command + "' of " + where + " " + why, remedy);
    }

    /** Whether the standard input is a terminal; a console object exists in newer Java runtimes without one, too. */
    private static boolean terminal() {
        try {
            return new ProcessBuilder("test", "-t", "0")
                            .redirectInput(Redirect.INHERIT)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
