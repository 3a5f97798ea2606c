// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.config;

import io.nereid.app.text.OutputFormat;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.TextTable;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Unmatched;

/** {@code nereid config}: what is in force, and the schema of the configuration file. Confined to one thread. */
@Command(
        name = "config",
        mixinStandardHelpOptions = true,
        subcommands = {ConfigCommand.Show.class, ConfigCommand.Schema.class},
        description = "Show what nereid serve would run with and where each value comes from, or the schema of its"
                + " configuration file.")
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ConfigCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "a command is missing (expected: show or schema)");
    }

    private static CommandLine serve(CommandSpec spec) {
        return Objects.requireNonNull(spec.root().commandLine().getSubcommands().get("serve"));
    }

    /** {@code nereid config show}. */
    @Command(
            name = "show",
            mixinStandardHelpOptions = true,
            customSynopsis = "nereid config show [--all] [OPTIONS OF nereid serve]",
            description = {
                "Print the options that nereid serve would have, and where each value comes from: a flag, the"
                        + " environment, the file of --config, or the default. The file is checked.",
                "Example: nereid config show --config nereid.yaml --port 9000"
            })
    @SuppressWarnings("NullAway.Init") // set by picocli
    static final class Show implements Runnable {
        @Option(names = "--all", description = "Options without a value too.")
        private boolean all;

        @Mixin
        private OutputOption output;

        @Unmatched
        private List<String> arguments = new ArrayList<>();

        @Spec
        private CommandSpec spec;

        @Override
        public void run() {
            CommandLine serve = serve(spec);
            Map<String, String> environment = System.getenv();
            // The parser is used again, and its results with it.
            List<String> serving = List.copyOf(arguments);
            boolean every = all;
            // For errors in what was given; the file's then name their place.
            var unused = ServeConfiguration.parse(serve, serving);
            ServeConfiguration configuration = ServeConfiguration.of(() -> serve, serving, environment);
            ParseResult result;
            try {
                result = ServeConfiguration.parse(serve, configuration.arguments());
            } catch (ParameterException e) {
                throw new ParameterException(spec.commandLine(), configuration.placeOf(e) + e.getMessage(), e);
            }
            if (!result.unmatched().isEmpty()) {
                throw new ParameterException(
                        spec.commandLine(),
                        "Unknown option: '" + result.unmatched().get(0) + "'");
            }
            OutputFormat format = output.format();
            List<EffectiveOptions.Row> rows = EffectiveOptions.of(result, configuration, environment, every);
            PrintWriter out = spec.commandLine().getOut();
            if (format.isDocument()) {
                format.print(EffectiveOptions.document(rows), out);
                return;
            }
            TextTable table = new TextTable("OPTION", "VALUE", "FROM");
            rows.forEach(row -> table.row(row.option(), row.value(), row.from()));
            table.print(out);
            out.flush();
        }
    }

    /** {@code nereid config schema}. */
    @Command(
            name = "schema",
            mixinStandardHelpOptions = true,
            description = {
                "Print the JSON schema of the configuration file, with which editors complete and check it.",
                "A file names it in its first line: # yaml-language-server: $schema=nereid.schema.json"
            })
    static final class Schema implements Runnable {
        @Spec
        private CommandSpec spec;

        @Override
        public void run() {
            PrintWriter out = spec.commandLine().getOut();
            out.println(ConfigurationSchema.of(serve(spec).getCommandSpec()).toPrettyString());
            out.flush();
        }
    }
}
