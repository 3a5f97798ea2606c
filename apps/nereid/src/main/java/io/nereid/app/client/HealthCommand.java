// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import io.nereid.app.text.OutputOption;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * {@code nereid health}: whether a running server is ready, as an exit status. For the health checks of container engines and
 * scripts where there is no curl. Confined to one thread.
 */
@Command(
        name = "health",
        mixinStandardHelpOptions = true,
        description = "Exit with 0 when a running server is ready, with 1 and the reason when not.")
@SuppressWarnings("NullAway.Init") // set by picocli
public final class HealthCommand implements Runnable {
    @Mixin
    private ClientOptions server;

    @Option(names = "--live", description = "Only whether the server answers, not whether its models are there.")
    private boolean live;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    /** @throws ServingException UNAVAILABLE when the server does not answer or is not ready */
    @Override
    public void run() {
        String state = live ? "live" : "ready";
        try {
            server.answers(spec).send("GET", "/v2/health/" + state);
        } catch (ServingException e) {
            if (output.format().isDocument()) {
                output.format()
                        .print(
                                ServerClient.JSON
                                        .createObjectNode()
                                        .put(state, false)
                                        .put("reason", e.getMessage()),
                                spec.commandLine().getOut());
            }
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE, "the server is not " + state + ": " + e.getMessage(), e.remedy(), e);
        }
        if (output.format().isDocument()) {
            output.format()
                    .print(
                            ServerClient.JSON.createObjectNode().put(state, true),
                            spec.commandLine().getOut());
            return;
        }
        spec.commandLine().getOut().println(state);
        spec.commandLine().getOut().flush();
    }
}
