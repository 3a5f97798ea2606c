// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

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
            ReplayCommand.class,
            ModelsCommand.class,
            ValidateCommand.class,
            PluginsCommand.class,
            ApplyCommand.class,
            GetCommand.class,
            DescribeCommand.class,
            DeleteCommand.class,
            LogsCommand.class,
            WaitCommand.class,
            ExplainSelectionCommand.class,
            VersionCommand.class,
            PracticeCommand.class,
            CommandLine.HelpCommand.class
        },
        footer = {
            "",
            "Try it:",
            "  nereid serve examples/models",
            "  nereid infer simple --input INPUT0=1..16 --input INPUT1=1..16",
            "  nereid serve --control",
            "  nereid apply -f examples/control/flowers.yaml"
        })
public final class Main {
    private Main() {}

    /** Runs a command and ends the process with its exit code. */
    public static void main(String[] args) {
        System.exit(commandLine().execute(args));
    }

    /** A wrong command line: what is wrong, what may have been meant, and where the options are listed. */
    private static int explain(ParameterException e, String[] args) {
        CommandLine command = e.getCommandLine();
        PrintWriter err = command.getErr();
        String refused = refused(e, command);
        err.println("nereid: " + (refused == null ? e.getMessage() : refused));
        if (e instanceof UnmatchedArgumentException unmatched
                && !unmatched.getUnmatched().isEmpty()) {
            List<String> known = new ArrayList<>(command.getSubcommands().keySet());
            command.getCommandSpec().options().forEach(option -> known.addAll(List.of(option.names())));
            String given = unmatched.getUnmatched().get(0);
            int equals = given.indexOf('=');
            String hint = refused != null
                    ? ""
                    : NameSuggestions.didYouMean(equals < 0 ? given : given.substring(0, equals), known, "");
            if (!hint.isEmpty()) {
                err.println("  " + hint);
            }
        }
        String name = command.getCommandSpec().qualifiedName();
        err.println("  " + (name.equals("nereid") ? "nereid help" : name.replace("nereid ", "nereid help "))
                + " lists what there is");
        err.flush();
        return command.getCommandSpec().exitCodeOnInvalidInput();
    }

    /** What to say of an option of tritonserver that this server does not have; null for any other mistake. */
    private static @Nullable String refused(ParameterException e, CommandLine command) {
        if (!(e instanceof UnmatchedArgumentException unmatched)
                || unmatched.getUnmatched().isEmpty()
                || !command.getCommandName().equals("serve")) {
            return null;
        }
        String option = unmatched.getUnmatched().get(0).replaceFirst("=.*", "");
        String why = RefusedFlags.why(option);
        return why == null ? null : option + " is not supported: " + why;
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setDefaultValueProvider(new Environment())
                .setParameterExceptionHandler(Main::explain)
                .setExecutionExceptionHandler((e, cmd, parsed) -> {
                    ServingException failure = ServingException.from(e);
                    cmd.getErr().println("nereid: " + failure.getMessage());
                    if (failure.remedy() != null) {
                        cmd.getErr().println("  " + failure.remedy());
                    }
                    if (failure.code() == ErrorCode.INTERNAL) {
                        e.printStackTrace(cmd.getErr());
                    }
                    return 1;
                });
    }
}
