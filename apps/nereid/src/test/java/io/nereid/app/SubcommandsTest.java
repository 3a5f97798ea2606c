// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class SubcommandsTest {
    @Test
    void everyNameIsThatOfItsCommand() {
        CommandLine program = Main.commandLine();
        assertThat(program.getSubcommands().keySet()).containsExactlyElementsOf(Subcommands.NAMES);
        program.getSubcommands()
                .forEach((name, command) ->
                        assertThat(command.getCommandSpec().name()).isEqualTo(name));
    }

    @Test
    void aRunHasItsCommandAlone() {
        assertThat(forRun("models", "list").getSubcommands().keySet()).containsExactly("models");
        assertThat(forRun("help", "serve").getSubcommands().keySet()).containsExactly("serve", "help");
        assertThat(forRun("-h", "serve").getSubcommands()).hasSameSizeAs(Subcommands.NAMES);
        assertThat(forRun("completion", "bash").getSubcommands()).hasSameSizeAs(Subcommands.NAMES);
    }

    @Test
    void whatIsPrintedDoesNotDependOnIt() {
        for (String[] args : List.of(
                new String[] {},
                new String[] {"help"},
                new String[] {"--help"},
                new String[] {"-h"},
                new String[] {"--version"},
                new String[] {"help", "serve"},
                new String[] {"help", "modles"},
                new String[] {"models", "--help"},
                new String[] {"models", "describe", "--help"},
                new String[] {"modles", "list"},
                new String[] {"models", "--no-such-option"},
                new String[] {"--no-such-option"},
                new String[] {"keys"},
                new String[] {"completion", "bash"})) {
            assertThat(run(forRun(args), args)).as(String.join(" ", args)).isEqualTo(run(Main.commandLine(), args));
        }
    }

    private static CommandLine forRun(String... args) {
        return Main.commandLine(args);
    }

    private static String run(CommandLine program, String... args) {
        StringWriter printed = new StringWriter();
        PrintWriter out = new PrintWriter(printed, true);
        int status = Main.run(program.setOut(out).setErr(out), args, Map.of());
        return status + " " + printed;
    }
}
