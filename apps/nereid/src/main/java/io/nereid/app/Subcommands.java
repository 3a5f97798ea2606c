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
import io.nereid.app.replay.ReplayCommand;
import io.nereid.app.serve.IgnoredFlags;
import io.nereid.app.serve.ServeCommand;
import io.nereid.app.serve.ValidateCommand;
import io.nereid.app.top.TopCommand;
import io.nereid.app.tune.TuneCommand;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;

/**
 * The commands of the program by name. To read the annotations of all takes more than 200 ms of processor time, as Picocli makes
 * objects of 730 options. A run therefore has the command that it is about to run, and of the others, where they can be seen at all, name
 * and description. Stateless.
 */
final class Subcommands {
    /** All names, in the order of the help. */
    static final List<String> NAMES = List.of(
            "serve",
            "infer",
            "replay",
            "perf",
            "tune",
            "models",
            "health",
            "open",
            "top",
            "validate",
            "config",
            "convert",
            "plugins",
            "keys",
            "login",
            "logout",
            "apply",
            "get",
            "describe",
            "delete",
            "logs",
            "wait",
            "explain-selection",
            "kubeconfig",
            "fetch",
            "transformer",
            "explainer",
            "operator",
            "gateway",
            "doctor",
            "version",
            "completion",
            "man-page",
            "cds",
            "help");

    /** Commands that read the options of other commands, or run them. */
    private static final Set<String> READ_OTHERS = Set.of("completion", "config", "man-page");

    private Subcommands() {}

    /** Adds all commands. */
    static void addAll(CommandLine program) {
        NAMES.forEach(name -> add(program, name));
    }

    /**
     * Adds what a run needs.
     *
     * @param args the arguments of the program
     */
    static void addFor(CommandLine program, String[] args) {
        String first = args.length == 0 ? "help" : args[0];
        if (READ_OTHERS.contains(first) || args.length > 1 && first.startsWith("-") || hasFile(args)) {
            addAll(program);
        } else if (first.equals("help") && args.length > 1 && NAMES.contains(args[1])) {
            add(program, args[1]);
            add(program, first);
        } else if (!first.equals("help") && NAMES.contains(first)) {
            add(program, first);
        } else {
            // The list of the commands, or the error that there is no such command.
            NAMES.forEach(name -> describe(program, name));
        }
    }

    /** Whether picocli reads arguments, perhaps a command among them, from a file. */
    private static boolean hasFile(String[] args) {
        for (String argument : args) {
            if (argument.startsWith("@")) {
                return true;
            }
        }
        return false;
    }

    /** Adds a command with all its options. */
    static void add(CommandLine program, String name) {
        if (name.equals("cds")) {
            program.addSubcommand(new CdsCommand(Main::commandLine));
            return;
        }
        program.addSubcommand(type(name));
        if (name.equals("serve")) {
            IgnoredFlags.addTo(
                    Objects.requireNonNull(program.getSubcommands().get(name)).getCommandSpec());
        }
    }

    private static void describe(CommandLine program, String name) {
        if (name.equals("help")) {
            add(program, name);
            return;
        }
        Command command = type(name).getAnnotation(Command.class);
        CommandSpec spec = CommandSpec.create();
        spec.usageMessage().description(command.description()).hidden(command.hidden());
        program.addSubcommand(name, spec);
    }

    /** A switch, so that no other class is loaded. */
    private static Class<?> type(String name) {
        return switch (name) {
            case "serve" -> ServeCommand.class;
            case "infer" -> InferCommand.class;
            case "replay" -> ReplayCommand.class;
            case "perf" -> PerfCommand.class;
            case "tune" -> TuneCommand.class;
            case "models" -> ModelsCommand.class;
            case "health" -> HealthCommand.class;
            case "open" -> OpenCommand.class;
            case "top" -> TopCommand.class;
            case "validate" -> ValidateCommand.class;
            case "config" -> ConfigCommand.class;
            case "convert" -> ConvertCommand.class;
            case "plugins" -> PluginsCommand.class;
            case "keys" -> KeysCommand.class;
            case "login" -> LoginCommand.class;
            case "logout" -> LogoutCommand.class;
            case "apply" -> ApplyCommand.class;
            case "get" -> GetCommand.class;
            case "describe" -> DescribeCommand.class;
            case "delete" -> DeleteCommand.class;
            case "logs" -> LogsCommand.class;
            case "wait" -> WaitCommand.class;
            case "explain-selection" -> ExplainSelectionCommand.class;
            case "kubeconfig" -> KubeconfigCommand.class;
            case "fetch" -> FetchCommand.class;
            case "transformer" -> TransformerCommand.class;
            case "explainer" -> ExplainerCommand.class;
            case "operator" -> OperatorCommand.class;
            case "gateway" -> GatewayCommand.class;
            case "doctor" -> DoctorCommand.class;
            case "version" -> VersionCommand.class;
            case "completion" -> CompletionCommand.class;
            case "man-page" -> ManPageCommand.class;
            case "cds" -> CdsCommand.class;
            case "help" -> CommandLine.HelpCommand.class;
            default -> throw new IllegalArgumentException(name);
        };
    }
}
