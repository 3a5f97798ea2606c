// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.app.connection.ServerConnection.Credentials;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.PemFile;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;

/**
 * The options by which commands reach a server: encryption and credentials. Set by picocli; confined to one thread.
 *
 * <p>Credentials come from the first of: {@code --token} or {@code --token-file}, NEREID_TOKEN, what {@code nereid login}
 * has stored for the server, and, for the control API on this machine, the token in its directory.
 */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class ConnectionOptions {
    /** The option whose variable is read here, as other credentials of the command line come before it. */
    public static final String TOKEN = "--token";

    @Option(
            names = TOKEN,
            paramLabel = "TOKEN",
            scope = ScopeType.INHERIT,
            description = "API key or token to send; @FILE reads it from a file. Other users of this machine can see a"
                    + " command line: prefer --token-file, NEREID_TOKEN or nereid login.")
    private @Nullable String token;

    @Option(
            names = "--token-file",
            paramLabel = "FILE",
            scope = ScopeType.INHERIT,
            description = "File with the API key or token to send.")
    private @Nullable Path tokenFile;

    @Option(
            names = "--ca-cert",
            paramLabel = "FILE",
            scope = ScopeType.INHERIT,
            description = "Certificates of the authorities that sign the server's certificate, as PEM.")
    private @Nullable Path authorities;

    @Option(
            names = "--client-cert",
            paramLabel = "FILE",
            scope = ScopeType.INHERIT,
            description = "Certificate to show to the server, as PEM; with --client-key.")
    private @Nullable Path clientCertificate;

    @Option(
            names = "--client-key",
            paramLabel = "FILE",
            scope = ScopeType.INHERIT,
            description = "Private key of --client-cert, as PEM.")
    private @Nullable Path clientKey;

    @Option(
            names = "--insecure-skip-tls-verify",
            scope = ScopeType.INHERIT,
            description = "Accept any certificate of the server. Who can intercept the connection can read the token.")
    private boolean unverified;

    @Option(
            names = "--credentials",
            paramLabel = "FILE",
            scope = ScopeType.INHERIT,
            description = "File of nereid login (default: $XDG_CONFIG_HOME/nereid/credentials.yaml, or"
                    + " ~/.config/nereid/credentials.yaml).")
    private @Nullable Path credentialsFile;

    /** The file in which {@code nereid login} stores tokens. */
    CredentialsFile credentialsFile() {
        return new CredentialsFile(
                credentialsFile != null ? credentialsFile : CredentialsFile.defaultPath(System.getenv()));
    }

    /** The token that would be sent to a server; null for none. */
    public @Nullable String token(ServerAddress server, Supplier<@Nullable String> own) {
        Credentials chosen = choose(System.getenv(), server, credentialsFile().find(server), own);
        return chosen == null ? null : chosen.token();
    }

    /** The content of the file of {@code --ca-cert}; null without one. */
    public @Nullable String authorityPem() {
        Path file = authorities;
        if (file == null) {
            return null;
        }
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND, "cannot read the file '" + file + "' of --ca-cert: " + e.getMessage(), e);
        }
    }

    /** The file of {@code --ca-cert}. */
    @Nullable Path authorities() {
        return authorities;
    }

    /**
     * Connects to a server.
     *
     * @param missing what is said when no server responds
     * @param err receives warnings
     */
    public ServerConnection connect(ServerAddress server, Missing missing, PrintWriter err) {
        return connect(server, missing, () -> null, err);
    }

    /**
     * Connects to a control API.
     *
     * @param own the token of the control API on this machine, asked for a loopback address only
     */
    public ServerConnection connect(
            ServerAddress server, Missing missing, Supplier<@Nullable String> own, PrintWriter err) {
        CredentialsFile.Entry stored = credentialsFile().find(server);
        Credentials chosen = choose(System.getenv(), server, stored, own);
        return connect(server, missing, chosen, stored, err);
    }

    /** Connects with a token that is given, instead of the one that the options name. */
    ServerConnection connectWith(ServerAddress server, Missing missing, String given, PrintWriter err) {
        return connect(
                server, missing, new Credentials(checked(given, "the given token"), "the given token"), null, err);
    }

    private ServerConnection connect(
            ServerAddress server,
            Missing missing,
            @Nullable Credentials chosen,
            CredentialsFile.@Nullable Entry stored,
            PrintWriter err) {
        if ((clientCertificate == null) != (clientKey == null)) {
            throw ServingException.invalidArgument((clientCertificate == null ? "--client-key" : "--client-cert")
                    + " is given alone (expected: both" + " --client-cert and --client-key)");
        }
        if (unverified) {
            err.println("nereid: warning: the certificate of " + server.url() + " is not verified");
            err.flush();
        }
        Path known = authorities;
        if (known == null && stored != null && stored.certificateAuthority() != null) {
            known = Path.of(stored.certificateAuthority());
        }
        ClientTls tls = server.encrypted()
                ? new ClientTls(
                        ClientTls.file("--ca-cert", known),
                        ClientTls.file("--client-cert", clientCertificate),
                        ClientTls.file("--client-key", clientKey),
                        unverified)
                : ClientTls.DEFAULT;
        return new ServerConnection(server, chosen, tls, missing);
    }

    /**
     * What the command line says about a server that a kubeconfig names; it wins over the kubeconfig. Variables of the
     * environment do not count, as they are meant for servers of Nereid.
     *
     * @param token the token to send; null for the credentials of the kubeconfig
     * @param unverified whether any certificate of the server may be accepted
     */
    public record Overrides(
            @Nullable String token,
            @Nullable PemFile authorities,
            @Nullable PemFile certificate,
            @Nullable PemFile key,
            boolean unverified) {
        /** Without the token. */
        @Override
        public String toString() {
            return "Overrides[unverified=" + unverified + "]";
        }
    }

    /** What the options of a command line say about a server that a kubeconfig names. */
    public Overrides overrides(ParseResult line) {
        boolean certificate = line.hasMatchedOption("--client-cert");
        if (certificate != line.hasMatchedOption("--client-key")) {
            throw ServingException.invalidArgument((certificate ? "--client-cert" : "--client-key")
                    + " is given alone (expected: both --client-cert and --client-key)");
        }
        Credentials given = line.hasMatchedOption(TOKEN) || line.hasMatchedOption("--token-file") ? given() : null;
        return new Overrides(
                given == null ? null : given.token(),
                line.hasMatchedOption("--ca-cert") ? ClientTls.file("--ca-cert", authorities) : null,
                certificate ? ClientTls.file("--client-cert", clientCertificate) : null,
                certificate ? ClientTls.file("--client-key", clientKey) : null,
                line.hasMatchedOption("--insecure-skip-tls-verify") && unverified);
    }

    /** The token of the options; null when none is given. */
    @Nullable Credentials given() {
        if (token != null && tokenFile != null) {
            throw ServingException.invalidArgument("both --token and --token-file are given (expected one of them)");
        }
        if (tokenFile != null) {
            return new Credentials(read(tokenFile), "the token of '" + tokenFile + "'");
        }
        if (token == null) {
            return null;
        }
        return token.startsWith("@")
                ? new Credentials(read(Path.of(token.substring(1))), "the token of '" + token.substring(1) + "'")
                : new Credentials(checked(token, "--token"), "the token of --token");
    }

    /** The first credentials that there are; null for none. */
    @Nullable Credentials choose(
            Map<String, String> environment,
            ServerAddress server,
            CredentialsFile.@Nullable Entry stored,
            Supplier<@Nullable String> own) {
        Credentials given = given();
        if (given != null) {
            return given;
        }
        String variable = environment.getOrDefault("NEREID_TOKEN", "");
        if (!variable.isBlank()) {
            return new Credentials(checked(variable, "NEREID_TOKEN"), "the token of NEREID_TOKEN");
        }
        if (stored != null) {
            return new Credentials(
                    checked(stored.token(), "the stored token"), "the token that nereid login has stored");
        }
        String local = server.isLoopback() ? own.get() : null;
        return local == null ? null : new Credentials(local, "the token of the control directory");
    }

    private static String read(Path file) {
        try {
            return checked(Files.readString(file), "the token file '" + file + "'");
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND,
                    "cannot read the token file '" + file + "': " + e.getMessage(),
                    "check the path and the mode of the file",
                    e);
        }
    }

    /** A token without white space around it; the error does not show it. */
    private static String checked(String text, String where) {
        String stripped = text.strip();
        if (stripped.isEmpty() || !stripped.chars().allMatch(c -> c > ' ' && c < 0x7f)) {
            throw ServingException.invalidArgument(
                    where + " is not a token (expected: one word of visible ASCII characters)");
        }
        return stripped;
    }
}
