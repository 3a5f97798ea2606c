// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.app.process.ProgramVersion;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Help.Ansi.Text;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;
import picocli.CommandLine.Spec;

/**
 * Prints the manual page of the program, from its commands, in the macros of man(7). Hidden, because only a release uses it:
 * {@code nereid man-page > nereid.1}. Confined to one thread.
 */
@Command(name = "man-page", hidden = true, description = "Print the manual page.")
@SuppressWarnings("NullAway.Init") // set by picocli
final class ManPageCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        CommandSpec program = spec.root();
        out.println(".TH NEREID 1 \"\" \"Nereid " + ProgramVersion.number() + "\" \"User commands\"");
        out.println(".SH NAME\nnereid \\- a server for machine\\-learning models");
        out.println(".SH SYNOPSIS\n.B nereid\n.I COMMAND\n[\\fIoptions\\fR]");
        out.println(".SH DESCRIPTION");
        lines(out, program.usageMessage().description());
        out.println(
                ".PP\nEach option of a command may come from the environment: NEREID_DRAIN_TIMEOUT for \\-\\-drain\\-timeout.");
        out.println(".SH COMMANDS");
        Set<CommandSpec> seen = new HashSet<>();
        program.subcommands().values().forEach(c -> command(out, c, seen));
        out.println(
                ".SH EXIT STATUS\n0 for success, 1 for a failure, 2 for a command line that is not valid, 3 for a threshold of perf"
                        + " that is not kept, 130 after Ctrl\\-C, 143 after SIGTERM.");
        out.println(".SH EXAMPLES");
        out.println(".nf");
        for (String line : program.usageMessage().footer()) {
            out.println(escaped(line));
        }
        out.println(".fi");
        out.flush();
    }

    private static void command(PrintWriter out, CommandLine command, Set<CommandSpec> seen) {
        CommandSpec spec = command.getCommandSpec();
        // A command with a second name is one command.
        if (spec.usageMessage().hidden() || !seen.add(spec)) {
            return;
        }
        out.println(".SS " + escaped(spec.qualifiedName()));
        lines(out, spec.usageMessage().description());
        for (PositionalParamSpec parameter : spec.positionalParameters()) {
            if (!parameter.hidden()) {
                out.println(".TP\n.I " + escaped(parameter.paramLabel()));
                lines(out, parameter.description());
            }
        }
        for (OptionSpec option : spec.options()) {
            if (!option.hidden()) {
                String value = option.typeInfo().isBoolean() ? "" : "=\\fI" + escaped(option.paramLabel()) + "\\fR";
                String names = Arrays.stream(option.names())
                        .map(ManPageCommand::escaped)
                        .collect(Collectors.joining("\\fR, \\fB"));
                out.println(".TP\n\\fB" + names + "\\fR" + value);
                lines(out, option.description());
            }
        }
        spec.subcommands().values().forEach(c -> command(out, c, seen));
    }

    private static void lines(PrintWriter out, String[] description) {
        for (String line : description) {
            Text plain = Ansi.OFF.new Text(line);
            out.println(escaped(plain.toString()));
        }
    }

    /** Text that the formatter takes as it is; a line of it is not a request. */
    private static String escaped(String text) {
        String safe = text.replace("\\", "\\e").replace("-", "\\-");
        return safe.startsWith(".") || safe.startsWith("'") ? "\\&" + safe : safe;
    }
}
