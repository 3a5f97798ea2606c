// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.ServingException;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The program's entry. Exit codes: 0 done, 1 it failed, 2 the command line is wrong. */
@Command(
        name = "nereid",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        synopsisSubcommandLabel = "COMMAND",
        description = "Serves machine-learning models over KServe V1, Open Inference V2 (REST and gRPC) and metrics.",
        subcommands = {
            ServeCommand.class,
            InferCommand.class,
            ModelsCommand.class,
            ValidateCommand.class,
            VersionCommand.class,
            PracticeCommand.class,
            CommandLine.HelpCommand.class
        },
        footer = {
            "",
            "Try it:",
            "  nereid serve examples/models",
            "  nereid infer simple --input INPUT0=1..16 --input INPUT1=1..16"
        })
public final class Main {
    private Main() {}

    /** Runs a command and ends the process with its exit code. */
    public static void main(String[] args) {
        System.exit(commandLine().execute(args));
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setDefaultValueProvider(new Environment())
                .setExecutionExceptionHandler((e, cmd, parsed) -> {
                    ServingException failure = ServingException.from(e);
                    cmd.getErr().println("nereid: " + failure.getMessage());
                    if (failure.remedy() != null) {
                        cmd.getErr().println("  " + failure.remedy());
                    }
                    if (failure.code() == io.nereid.base.Code.INTERNAL) {
                        e.printStackTrace(cmd.getErr());
                    }
                    return 1;
                });
    }
}
