// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid logout}: removes the stored token of a server. */
@Command(
        name = "logout",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Remove the stored token of a server. The token stays valid: nereid keys revoke ends that.")
@SuppressWarnings("NullAway.Init") // set by picocli
public final class LogoutCommand implements Callable<Integer> {
    @Parameters(paramLabel = "URL", description = "The server.")
    private String url;

    @Mixin
    private ConnectionOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ServerAddress server = ServerAddress.of(url);
        CredentialsFile file = options.credentialsFile();
        if (!file.remove(server)) {
            List<String> known = file.servers();
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "no token is stored for " + server.origin(),
                    known.isEmpty()
                            ? "'" + file.path() + "' has none"
                            : "there are tokens for " + String.join(", ", known));
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println("the token for " + server.origin() + " is removed");
        out.flush();
        return 0;
    }
}
