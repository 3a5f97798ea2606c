// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import io.nereid.app.connection.ConnectionOptions;
import io.nereid.app.connection.Missing;
import io.nereid.app.connection.ServerAddress;
import io.nereid.app.connection.ServerConnection;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The options of the commands that use a running server. Set by picocli; confined to one thread. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class ClientOptions {
    @Option(
            names = "--url",
            paramLabel = "URL",
            // Where a server with the same environment listens, as in a container.
            defaultValue = "http://127.0.0.1:${env:NEREID_PORT:-8080}",
            scope = ScopeType.INHERIT,
            description = "The server (default: ${DEFAULT-VALUE}).")
    private String url;

    @Mixin
    private ConnectionOptions connection;

    /** A client of the server. */
    public ServerClient client(CommandSpec spec) {
        return client(spec, url);
    }

    /** A reader of the answers of the server, for a command that asks once. */
    ServerAnswers answers(CommandSpec spec) {
        return new ServerAnswers(connect(spec, url));
    }

    /** A client of another address of the server, with the same options. */
    public ServerClient client(CommandSpec spec, String other) {
        return new ServerClient(connect(spec, other));
    }

    private ServerConnection connect(CommandSpec spec, String to) {
        return connection.connect(
                ServerAddress.of(to), Missing.SERVER, spec.commandLine().getErr());
    }
}
