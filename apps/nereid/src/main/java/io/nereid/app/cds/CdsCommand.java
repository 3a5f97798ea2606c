// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.cds;

import io.nereid.app.operator.OperatorTraining;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.concurrent.Callable;
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/**
 * A training run for class-data sharing (CDS). The launcher runs it once and archives the classes that it loads, for faster
 * starts. For {@code serve} it starts the server, serves one request, runs the clients' commands and stops; for {@code operator}
 * it starts an operator, which carries out one service; for {@code all} it does both, for one archive. Hidden, because only the launcher and the
 * release use it. Confined to one thread.
 */
@Command(
        name = "cds",
        hidden = true,
        description = "Start, serve one request or carry out one service, and stop (CDS training run).")
public final class CdsCommand implements Callable<Integer> {
    @Parameters(arity = "0..1", paramLabel = "PROGRAM", defaultValue = "serve", description = "serve, operator or all")
    String program = "serve";

    private final Function<String[], CommandLine> commands;

    /** @param commands makes the program for a run with some arguments, as each run of it does */
    public CdsCommand(Function<String[], CommandLine> commands) {
        this.commands = commands;
    }

    @Override
    public Integer call() throws Exception {
        return switch (program) {
            case "serve" -> ServeTraining.run(commands);
            case "operator" -> OperatorTraining.run();
            case "all" -> Math.max(ServeTraining.run(commands), OperatorTraining.run());
            default ->
                throw ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "there is no training run of '" + program + "'; use serve, operator or all");
        };
    }
}
