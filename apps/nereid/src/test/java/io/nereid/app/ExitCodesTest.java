// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import picocli.CommandLine;

/** Provokes every exit code of the table in docs/CLI.md by the command beside it. */
class ExitCodesTest {
    private static final Pattern ROW = Pattern.compile("\\| (\\d+) \\| .* \\| `nereid (.*)` \\|");
    private static final Pattern WORD = Pattern.compile("'([^']*)'|(\\S+)");

    private static Map<Integer, List<String>> table() throws IOException {
        Map<Integer, List<String>> rows = new LinkedHashMap<>();
        for (String line : Files.readAllLines(Path.of("../../docs/CLI.md"))) {
            Matcher row = ROW.matcher(line);
            if (row.matches()) {
                List<String> words = new ArrayList<>();
                Matcher word = WORD.matcher(row.group(2));
                while (word.find()) {
                    String text = word.group(1) != null ? word.group(1) : word.group(2);
                    words.add(text.replace("examples/models", "../../examples/models"));
                }
                rows.put(Integer.parseInt(row.group(1)), words);
            }
        }
        return rows;
    }

    @Test
    void theTableHasAllCodes() throws IOException {
        assertThat(table().keySet()).containsExactly(0, 1, 2, 3, 130, 143);
    }

    @TestFactory
    List<DynamicTest> everyCodeIsGivenByItsExample() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        table().forEach((code, words) -> tests.add(DynamicTest.dynamicTest(
                code + ": " + String.join(" ", words),
                () -> assertThat(code < 128 ? here(words) : signalled(words, code - 128))
                        .isEqualTo(code))));
        return tests;
    }

    private static int here(List<String> words) {
        CommandLine program = Main.commandLine();
        program.setOut(new PrintWriter(new StringWriter())).setErr(new PrintWriter(new StringWriter()));
        return Main.run(program, words.toArray(String[]::new), Map.of());
    }

    /** Runs a command in a process, sends it a signal when it has begun, and returns its exit code. */
    private static int signalled(List<String> words, int signal) throws Exception {
        List<String> command = new ArrayList<>();
        // A shell in the background ignores SIGINT, and so would all its children, this build among them.
        command.addAll(List.of("env", "--default-signal=INT"));
        Process probe = new ProcessBuilder(List.of("env", "--default-signal=INT", "true")).start();
        assumeTrue(probe.waitFor() == 0, "this env has no --default-signal");
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 24) {
            command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"));
        }
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        command.add("io.nereid.app.Main");
        command.addAll(words);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        try (BufferedReader lines = process.inputReader()) {
            String line = lines.readLine();
            List<String> printed = new ArrayList<>();
            while (line != null && !line.contains("LOAD")) {
                printed.add(line);
                line = lines.readLine();
            }
            assertThat(line).as("%s", printed).isNotNull();
            assertThat(new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid()))
                            .start()
                            .waitFor())
                    .isZero();
            lines.lines().forEach(printed::add); // until it has ended
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            return process.exitValue();
        } finally {
            process.destroyForcibly();
        }
    }
}
