// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.app.access.KeysCommand;
import io.nereid.app.cds.CdsCommand;
import io.nereid.app.client.HealthCommand;
import io.nereid.app.client.InferCommand;
import io.nereid.app.client.ModelsCommand;
import io.nereid.app.client.OpenCommand;
import io.nereid.app.component.ExplainerCommand;
import io.nereid.app.component.TransformerCommand;
import io.nereid.app.config.ConfigCommand;
import io.nereid.app.config.ServeConfiguration;
import io.nereid.app.connection.LoginCommand;
import io.nereid.app.connection.LogoutCommand;
import io.nereid.app.control.ApplyCommand;
import io.nereid.app.control.DeleteCommand;
import io.nereid.app.control.DescribeCommand;
import io.nereid.app.control.ExplainSelectionCommand;
import io.nereid.app.control.GetCommand;
import io.nereid.app.control.KubeconfigCommand;
import io.nereid.app.control.LogsCommand;
import io.nereid.app.control.WaitCommand;
import io.nereid.app.convert.ConvertCommand;
import io.nereid.app.doctor.DoctorCommand;
import io.nereid.app.fetch.FetchCommand;
import io.nereid.app.operator.GatewayCommand;
import io.nereid.app.operator.OperatorCommand;
import io.nereid.app.perf.PerfCommand;
import io.nereid.app.plugins.PluginsCommand;
import io.nereid.app.process.ProgramVersion;
import io.nereid.app.replay.ReplayCommand;
import io.nereid.app.serve.IgnoredFlags;
import io.nereid.app.serve.ServeCommand;
import io.nereid.app.serve.ValidateCommand;
import io.nereid.app.text.TruthValue;
import io.nereid.app.top.TopCommand;
import io.nereid.app.tune.TuneCommand;
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
        subcommands = {
            ServeCommand.class,
            InferCommand.class,
            ReplayCommand.class,
            PerfCommand.class,
            TuneCommand.class,
            ModelsCommand.class,
            HealthCommand.class,
            OpenCommand.class,
            TopCommand.class,
            ValidateCommand.class,
            ConfigCommand.class,
            ConvertCommand.class,
            PluginsCommand.class,
            KeysCommand.class,
            LoginCommand.class,
            LogoutCommand.class,
            ApplyCommand.class,
            GetCommand.class,
            DescribeCommand.class,
            DeleteCommand.class,
            LogsCommand.class,
            WaitCommand.class,
            ExplainSelectionCommand.class,
            KubeconfigCommand.class,
            FetchCommand.class,
            TransformerCommand.class,
            ExplainerCommand.class,
            OperatorCommand.class,
            GatewayCommand.class,
            DoctorCommand.class,
            VersionCommand.class,
            CompletionCommand.class,
            ManPageCommand.class,
            CdsCommand.class,
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
    private static final String SERVE = "serve";

    private Main() {}

    /** Runs a command and exits with its exit code. */
    public static void main(String[] args) {
        System.exit(run(commandLine(), args, System.getenv()));
    }

    /** Runs a command, {@code serve} with the options of its configuration file, and returns the exit code. */
    static int run(CommandLine program, String[] args, Map<String, String> environment) {
        if (args.length == 0 || !args[0].equals(SERVE)) {
            return program.execute(args);
        }
        List<String> arguments = List.of(args).subList(1, args.length);
        ServeConfiguration configuration;
        try {
            configuration = ServeConfiguration.of(subcommand(commandLine(), SERVE), arguments, environment);
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

    public static CommandLine commandLine() {
        CommandLine program = new CommandLine(new Main());
        IgnoredFlags.addTo(subcommand(program, SERVE).getCommandSpec());
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
