// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.app.config.ServeConfiguration;
import io.nereid.app.process.ProgramVersion;
import io.nereid.app.serve.ServeCommand;
import io.nereid.app.text.TruthValue;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

/** The entry point of the program. Its exit codes are in docs/CLI.md. Stateless. */
@Command(
        name = "nereid",
        mixinStandardHelpOptions = true,
        versionProvider = ProgramVersion.class,
        synopsisSubcommandLabel = "COMMAND",
        description = "Serves machine-learning models over KServe V1, Open Inference V2 (REST and gRPC) and metrics.",
        footer = {
            "",
            "Try it:",
            "  nereid serve examples/models",
            "  nereid infer simple --input INPUT0=1..16 --input INPUT1=1..16",
            "  nereid serve --control",
            "  nereid apply -f examples/control/flowers.yaml"
        })
public final class Main {
    private static final String SERVE = "serve";

    private Main() {}

    /** Runs a command and exits with its exit code. */
    public static void main(String[] args) {
        System.exit(run(commandLine(args), args, System.getenv()));
    }

    /** Runs a command, {@code serve} with the options of its configuration file, and returns the exit code. */
    static int run(CommandLine program, String[] args, Map<String, String> environment) {
        if (args.length == 0 || !args[0].equals(SERVE)) {
            return program.execute(args);
        }
        List<String> arguments = List.of(args).subList(1, args.length);
        ServeConfiguration configuration;
        try {
            configuration = ServeConfiguration.of(() -> subcommand(serveAlone(), SERVE), arguments, environment);
        } catch (ServingException e) {
            report(program.getErr(), e);
            return program.getCommandSpec().exitCodeOnInvalidInput();
        }
        List<String> all = new ArrayList<>(List.of(SERVE));
        all.addAll(configuration.arguments());
        subcommand(program, SERVE).<ServeCommand>getCommand().configuredBy(configuration);
        return program.setParameterExceptionHandler((e, given) -> explain(configuration.placeOf(e), e))
                .execute(all.toArray(String[]::new));
    }

    private static CommandLine subcommand(CommandLine program, String name) {
        return Objects.requireNonNull(program.getSubcommands().get(name));
    }

    private static void report(PrintWriter err, ServingException failure) {
        err.println("nereid: " + failure.getMessage());
        if (failure.remedy() != null) {
            err.println("  " + failure.remedy());
        }
        err.flush();
    }

    /** Reports an invalid command line: the place of the error in a file, the error, a suggestion, and the help command. */
    private static int explain(String place, ParameterException e) {
        CommandLine command = e.getCommandLine();
        PrintWriter err = command.getErr();
        err.println("nereid: " + place + e.getMessage());
        if (e instanceof UnmatchedArgumentException unmatched
                && !unmatched.getUnmatched().isEmpty()) {
            List<String> known = new ArrayList<>(command.getSubcommands().keySet());
            command.getCommandSpec().options().forEach(option -> known.addAll(List.of(option.names())));
            String given = unmatched.getUnmatched().get(0);
            int equals = given.indexOf('=');
            String hint = NameSuggestions.didYouMean(equals < 0 ? given : given.substring(0, equals), known, "");
            if (!hint.isEmpty()) {
                err.println("  " + hint);
            }
        }
        String name = command.getCommandSpec().qualifiedName();
        err.println("  " + (name.equals("nereid") ? "nereid help" : name.replace("nereid ", "nereid help "))
                + " lists the options");
        err.flush();
        return command.getCommandSpec().exitCodeOnInvalidInput();
    }

    private static Boolean truth(String text) {
        Boolean value = TruthValue.of(text);
        if (value == null) {
            throw new TypeConversionException("'" + text + "' is not true or false");
        }
        return value;
    }

    /** The program with all its commands. */
    public static CommandLine commandLine() {
        CommandLine program = program();
        Subcommands.addAll(program);
        return configured(program);
    }

    /** The program with the commands that a run with these arguments needs. */
    static CommandLine commandLine(String[] args) {
        CommandLine program = program();
        Subcommands.addFor(program, args);
        return configured(program);
    }

    private static CommandLine serveAlone() {
        CommandLine program = program();
        Subcommands.add(program, SERVE);
        return configured(program);
    }

    private static CommandLine program() {
        return new CommandLine(new Main());
    }

    /** Settings that apply to the commands that a program has, and so are made last. */
    private static CommandLine configured(CommandLine program) {
        return program.registerConverter(Boolean.class, Main::truth)
                .registerConverter(Boolean.TYPE, Main::truth)
                // As with the servers whose options these are, the last one counts.
                .setOverwrittenOptionsAllowed(true)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setDefaultValueProvider(new EnvironmentDefaultProvider())
                .setParameterExceptionHandler((e, args) -> explain("", e))
                .setExecutionExceptionHandler((e, cmd, parsed) -> {
                    ServingException failure = ServingException.from(e);
                    report(cmd.getErr(), failure);
                    if (failure.code() == ErrorCode.INTERNAL) {
                        e.printStackTrace(cmd.getErr());
                    }
                    return 1;
                });
    }
}
