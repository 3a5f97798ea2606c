// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.app.connection.ServerConnection.Credentials;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.BufferedReader;
import java.io.Console;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid login}: checks a token against a server, and stores it for the other commands. */
@Command(
        name = "login",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Store an API key or token for a server, after a check that the server accepts it.",
            "It is read from the terminal, from standard input, or from --token-file."
        },
        footer = {
            "",
            "  nereid login https://models.example.com",
            "  nereid login https://models.example.com < key.txt",
            "  nereid login https://127.0.0.1:8443 --ca-cert ca.pem"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class LoginCommand implements Callable<Integer> {
    /** A path that every server knows; wrong credentials are refused wherever they are sent. */
    private static final String CHECKED = "/v2/health/live";

    @Parameters(paramLabel = "URL", description = "The server.")
    private String url;

    @Mixin
    private ConnectionOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ServerAddress server = ServerAddress.of(url);
        PrintWriter err = spec.commandLine().getErr();
        if (!server.encrypted() && !server.isLoopback()) {
            err.println("nereid: warning: the connection to " + server.url()
                    + " is not encrypted; others in the network can read the token");
            err.flush();
        }
        Credentials given = options.given();
        String token = given != null ? given.token() : ask(server);
        ServerConnection connection = options.connectWith(server, Missing.SERVER, token, err);
        int status = connection.exchange("GET", CHECKED, null, null).status();
        if (status == 401 || status >= 300 && status < 400) {
            ServingException refusal = connection.refusal(status, "the token is not valid");
            if (refusal != null) {
                throw refusal;
            }
        }
        if (status == 429 || status >= 500) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    server.url() + " answered HTTP " + status + ", so the token could not be checked",
                    "try again later");
        }
        // any other status, 403 and 404 included, comes after the check of the credentials
        CredentialsFile file = options.credentialsFile();
        Path authorities = options.authorities();
        file.put(
                server,
                new CredentialsFile.Entry(
                        connection.token(),
                        authorities == null
                                ? null
                                : authorities.toAbsolutePath().toString()));
        PrintWriter out = spec.commandLine().getOut();
        out.println("the token for " + server.origin() + " is stored in " + file.path());
        out.flush();
        return 0;
    }

    @SuppressWarnings("SystemConsoleNull") // a console that is not a terminal, since JDK 22, reads the same line
    private static String ask(ServerAddress server) {
        Console console = System.console();
        if (console != null) {
            char[] typed = console.readPassword("API key or token for %s: ", server.url());
            return typed == null ? "" : new String(typed);
        }
        try {
            // the reader is not closed, as standard input is not this command's to close
            @Nullable String line = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
            return line == null ? "" : line;
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot read the token from standard input: " + e.getMessage(), e);
        }
    }
}
