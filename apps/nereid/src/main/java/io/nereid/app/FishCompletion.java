// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The completion script of fish, from the commands of the program: picocli writes those of bash and zsh only. Stateless. */
final class FishCompletion {
    private static final int SHORT = 80;

    private FishCompletion() {}

    /** The script. */
    static String of(CommandSpec program) {
        StringBuilder script = new StringBuilder();
        script.append("complete -c nereid -f\n");
        Map<String, CommandSpec> commands = commands(program);
        commands.forEach((name, command) -> line(
                script,
                "__fish_use_subcommand",
                "-a " + name,
                first(command.usageMessage().description())));
        commands.forEach((name, command) -> {
            Map<String, CommandSpec> inner = commands(command);
            String seen = "__fish_seen_subcommand_from " + name;
            if (!inner.isEmpty()) {
                String none = seen + "; and not __fish_seen_subcommand_from " + String.join(" ", inner.keySet());
                inner.forEach((sub, spec) -> line(
                        script, none, "-a " + sub, first(spec.usageMessage().description())));
                inner.forEach((sub, spec) -> options(script, seen + "; and __fish_seen_subcommand_from " + sub, spec));
                options(script, none, command);
            } else {
                options(script, seen, command);
            }
        });
        return script.toString();
    }

    private static Map<String, CommandSpec> commands(CommandSpec parent) {
        Map<String, CommandSpec> all = new LinkedHashMap<>();
        for (String name : new TreeSet<>(parent.subcommands().keySet())) {
            CommandLine command = parent.subcommands().get(name);
            if (command != null && !command.getCommandSpec().usageMessage().hidden()) {
                all.put(name, command.getCommandSpec());
            }
        }
        return all;
    }

    private static void options(StringBuilder script, String condition, CommandSpec command) {
        for (OptionSpec option : command.options()) {
            if (option.hidden()) {
                continue;
            }
            StringBuilder names = new StringBuilder();
            for (String name : option.names()) {
                names.append(names.isEmpty() ? "" : " ");
                names.append(name.startsWith("--") ? "-l " + name.substring(2) : "-s " + name.substring(1));
            }
            if (!option.typeInfo().isBoolean() && !option.usageHelp() && !option.versionHelp()) {
                List<String> values = values(option);
                // the value of an option without a list of them is often a file
                names.append(values.isEmpty() ? " -r -F" : " -x -a " + quoted(String.join(" ", values)));
            }
            line(script, condition, names.toString(), first(option.description()));
        }
    }

    private static List<String> values(OptionSpec option) {
        Class<?> type = option.typeInfo().getType();
        return type.isEnum()
                ? Arrays.stream(type.getEnumConstants()).map(Object::toString).toList()
                : List.of();
    }

    private static void line(StringBuilder script, String condition, String what, String description) {
        script.append("complete -c nereid -n ")
                .append(quoted(condition))
                .append(' ')
                .append(what);
        script.append(description.isEmpty() ? "" : " -d " + quoted(description)).append('\n');
    }

    private static String first(String[] description) {
        if (description.length == 0) {
            return "";
        }
        String text = Ansi.OFF.new Text(description[0].replace("%n", " ")).toString();
        return text.length() <= SHORT ? text : text.substring(0, SHORT - 1) + "…";
    }

    /** A word of fish: within single quotes only these two characters have a meaning. */
    private static String quoted(String text) {
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
    }
}
