// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.config;

import io.nereid.app.config.ConfigurationFile.Entry;
import io.nereid.app.text.TruthValue;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/**
 * The command line of {@code nereid serve} with the options of its configuration file. A flag wins over the environment, the
 * environment over the file, and the file over the default. Immutable.
 *
 * <p>The entries of the file become arguments before those that were given, so that each is read, checked and completed as if it had
 * been given.
 *
 * @param arguments the arguments of the command, with those of the file
 * @param file null when there is none
 * @param used the entries of the file that are in force, by the option's longest name
 */
public record ServeConfiguration(
        List<String> arguments, @Nullable ConfigurationFile file, Map<String, Entry> used) {
    /** The option that names the file. */
    public static final String OPTION = "--config";

    private static final String ENVIRONMENT = "NEREID_CONFIG";
    private static final String MODELS = "models";

    /** Of the command line alone. */
    private static final Set<String> NOT_IN_A_FILE = Set.of("--config", "--help", "--version");

    private static final String ALIAS = "The same as --";

    /** The arguments without a file. */
    public static ServeConfiguration plain(List<String> arguments) {
        return new ServeConfiguration(List.copyOf(arguments), null, Map.of());
    }

    /**
     * Reads the file that the arguments or the environment name.
     *
     * @param command makes the command, whose parser is used, where there is a file
     * @param arguments those of the command, without its name
     * @param environment the variables of the process
     * @throws ServingException with file, line and column when an entry is not valid
     */
    public static ServeConfiguration of(
            Supplier<CommandLine> command, List<String> arguments, Map<String, String> environment) {
        String variable = environment.get(ENVIRONMENT);
        if (variable == null && arguments.stream().noneMatch(a -> a.equals(OPTION) || a.startsWith(OPTION + "="))) {
            return plain(arguments);
        }
        CommandLine serve = command.get();
        ParseResult given;
        try {
            given = parse(serve, arguments);
        } catch (ParameterException e) {
            // The command says what is wrong with its arguments.
            return plain(arguments);
        }
        Path path = given.matchedOptionValue(OPTION, variable == null ? null : Path.of(variable));
        if (path == null || given.isUsageHelpRequested()) {
            return plain(arguments);
        }
        ConfigurationFile file = ConfigurationFile.read(path);
        Map<String, Entry> used = new LinkedHashMap<>();
        List<String> further = new ArrayList<>();
        for (Entry entry : file.entries().values()) {
            if (entry.key().equals(MODELS)) {
                if (given.matchedPositionals().isEmpty()) {
                    further.addAll(entry.values());
                    used.put(MODELS, entry);
                }
                continue;
            }
            OptionSpec option = option(serve, file, entry);
            if (!given.hasMatchedOption(option) && !environment.containsKey(variable(option))) {
                further.addAll(arguments(file, entry, option));
                used.put(option.longestName(), entry);
            }
        }
        further.addAll(arguments);
        return new ServeConfiguration(List.copyOf(further), file, Collections.unmodifiableMap(used));
    }

    /**
     * Parses the arguments of a command as part of its program, which the parser needs.
     *
     * @throws ParameterException when they are not valid
     */
    static ParseResult parse(CommandLine command, List<String> arguments) {
        List<String> all = new ArrayList<>(List.of(command.getCommandName()));
        all.addAll(arguments);
        return command.getParent().parseArgs(all.toArray(String[]::new)).subcommand();
    }

    /** The variable that sets an option. */
    public static String variable(OptionSpec option) {
        return "NEREID_"
                + option.longestName().replaceFirst("^-+", "").replace('-', '_').toUpperCase(Locale.ROOT);
    }

    /** Whether the option may be in a file: it is not one of the command line alone, nor another server's name of another option. */
    static boolean isInFile(OptionSpec option) {
        return !NOT_IN_A_FILE.contains(option.longestName()) && original(option) == null;
    }

    private static OptionSpec option(CommandLine serve, ConfigurationFile file, Entry entry) {
        OptionSpec option = serve.getCommandSpec().findOption("--" + entry.key());
        if (option == null || NOT_IN_A_FILE.contains(option.longestName())) {
            Set<String> known = new TreeSet<>(Set.of(MODELS));
            for (OptionSpec each : serve.getCommandSpec().options()) {
                if (!each.hidden() && isInFile(each)) {
                    Arrays.stream(each.names())
                            .map(n -> n.replaceFirst("^-+", ""))
                            .forEach(known::add);
                }
            }
            throw ServingException.invalidArgument(
                    file.place(entry) + ": there is no option '" + entry.key() + "'",
                    NameSuggestions.didYouMean(
                            entry.key().replaceFirst("^-+", ""), known, "nereid help serve lists the options"));
        }
        String original = original(option);
        if (original != null) {
            // In a file it would win over flags and variables with the other name.
            throw ServingException.invalidArgument(
                    file.place(entry) + ": '" + entry.key() + "' is another name of '" + original + "'",
                    "write " + original + " in the file");
        }
        return option;
    }

    /** The option of which this one is another server's name, or null. */
    private static @Nullable String original(OptionSpec option) {
        String[] description = option.description();
        if (description.length == 0 || !description[0].startsWith(ALIAS)) {
            return null;
        }
        return description[0].substring(ALIAS.length()).split("[^a-z_-]", 2)[0];
    }

    private static List<String> arguments(ConfigurationFile file, Entry entry, OptionSpec option) {
        String name = option.longestName();
        if (entry.list() && !option.isMultiValue()) {
            throw ServingException.invalidArgument(
                    file.place(entry) + ": '" + entry.key() + "' takes one value, not a list");
        }
        if (option.arity().max() > 0) {
            return entry.values().stream().map(value -> name + "=" + value).toList();
        }
        String value = entry.values().get(0);
        Boolean on = TruthValue.of(value);
        if (on == null) {
            throw ServingException.invalidArgument(
                    file.place(entry) + ": '" + entry.key() + "' is '" + value + "' (expected: true or false)");
        }
        return on ? List.of(name) : List.of();
    }

    /** The place of the entry that an error of the parser is about, followed by a colon and a blank; empty for another error. */
    public String placeOf(ParameterException error) {
        ConfigurationFile from = file;
        if (from != null && error.getArgSpec() instanceof OptionSpec option) {
            Entry entry = used.get(option.longestName());
            if (entry != null) {
                return from.place(entry) + ": ";
            }
        }
        return "";
    }
}
