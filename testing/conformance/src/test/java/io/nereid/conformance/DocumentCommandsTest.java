// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.app.Main;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;
import picocli.CommandLine.ParameterException;

/**
 * The commands of the documents: every block says what it is, a block of commands is run by {@code clients/test_documents.py}
 * or a test of its page unless the line above it says why not, and the program takes every command of its own that a page
 * shows, with all its options.
 */
class DocumentCommandsTest {
    private static final Path TOP =
            Path.of("").toAbsolutePath().resolve("../..").normalize();
    private static final Pattern FENCE = Pattern.compile("^ *```(\\S*) *$");
    private static final Pattern NOT_RUN = Pattern.compile("^ *<!-- not run: .{10,} -->$");

    /** Blocks of commands: {@code console} shows a prompt and the output. */
    private static final Set<String> COMMANDS = Set.of("sh", "console");

    private static final Set<String> OTHERS = Set.of(
            "text", "yaml", "json", "java", "python", "xml", "proto", "c", "kotlin", "properties", "mermaid", "toml");

    private static final Pattern COMMAND =
            Pattern.compile("^ *(\\$ |\\./nereid |\\./mvnw |curl |kubectl |helm |docker |mkdir |pip ).*");

    /** A command of this program, wherever it is installed, with variables before it. */
    private static final Pattern OWN = Pattern.compile("^(?:\\w+=\\S* +)*(?:\\S*/)?nereid$");

    /**
     * A block of a document.
     *
     * @param place the document and the number of the line of its fence
     * @param before the line above it
     */
    private record Block(Path document, String place, String language, String before, List<String> lines) {
        boolean isRun() {
            return !NOT_RUN.matcher(before).matches();
        }
    }

    private static List<Block> blocks() throws IOException {
        List<Path> documents = new ArrayList<>();
        for (String name : List.of("README.md", "CONTRIBUTING.md", "SECURITY.md", "RELEASE.md")) {
            documents.add(TOP.resolve(name));
        }
        for (String folder : List.of("docs", "examples", "testing")) {
            try (Stream<Path> files = Files.walk(TOP.resolve(folder))) {
                files.filter(f -> f.toString().endsWith(".md"))
                        .filter(f -> !f.toString().contains("/target/")
                                && !f.toString().contains("/venv/"))
                        .sorted()
                        .forEach(documents::add);
            }
        }
        List<Block> blocks = new ArrayList<>();
        for (Path document : documents) {
            List<String> lines = Files.readAllLines(document);
            for (int i = 0; i < lines.size(); i++) {
                Matcher fence = FENCE.matcher(lines.get(i));
                if (fence.matches()) {
                    int end = i + 1;
                    while (end < lines.size() && !lines.get(end).strip().equals("```")) {
                        end++;
                    }
                    String place = TOP.relativize(document) + ":" + (i + 1);
                    assertThat(end).as("the end of the block at " + place).isLessThan(lines.size());
                    blocks.add(new Block(
                            document,
                            place,
                            fence.group(1),
                            i == 0 ? "" : lines.get(i - 1),
                            List.copyOf(lines.subList(i + 1, end))));
                    i = end;
                }
            }
        }
        return blocks;
    }

    @Test
    void everyBlockSaysWhatItIs() throws IOException {
        List<String> wrong = new ArrayList<>();
        for (Block block : blocks()) {
            if (!COMMANDS.contains(block.language) && !OTHERS.contains(block.language)) {
                wrong.add(block.place + ": the language '" + block.language + "'");
            } else if (block.language.equals("text")
                    && block.lines.stream()
                            .anyMatch(line -> COMMAND.matcher(line).matches())) {
                wrong.add(block.place + ": commands; the language is sh, or console with a prompt and the output");
            } else if (block.language.equals("console")
                    && !block.lines.get(0).strip().startsWith("$ ")) {
                wrong.add(block.place + ": a console begins with '$ '");
            }
        }
        assertThat(wrong)
                .as("blocks, of which CONTRIBUTING.md says how they begin")
                .isEmpty();
    }

    @Test
    void theProgramTakesEveryCommand() throws IOException {
        List<String> refused = new ArrayList<>();
        int taken = 0;
        for (Block block : blocks()) {
            if (!COMMANDS.contains(block.language)) {
                continue;
            }
            for (List<String> command : ownCommands(block)) {
                try {
                    var unused = Main.commandLine().parseArgs(command.toArray(String[]::new));
                    taken++;
                } catch (ParameterException e) {
                    refused.add(block.place + ": nereid " + String.join(" ", command) + ": " + e.getMessage());
                }
            }
        }
        assertThat(refused).isEmpty();
        assertThat(taken).isGreaterThan(50);
    }

    @Test
    void thePagesHaveCommandsThatRun(TestReporter reporter) throws IOException {
        Map<String, int[]> pages = new TreeMap<>();
        for (Block block : blocks()) {
            if (COMMANDS.contains(block.language)) {
                pages.computeIfAbsent(TOP.relativize(block.document).toString(), page -> new int[2])[
                        block.isRun() ? 0 : 1]++;
            }
        }
        pages.forEach((page, blocks) -> reporter.publishEntry(
                page, "blocks of commands: " + blocks[0] + " run, " + blocks[1] + " not, with a reason"));
        assertThat(pages.values().stream().mapToInt(blocks -> blocks[0]).sum()).isGreaterThan(40);
    }

    /** The arguments of the commands of this program in a block. */
    private static List<List<String>> ownCommands(Block block) {
        List<List<String>> found = new ArrayList<>();
        StringBuilder pending = new StringBuilder();
        for (String line : block.lines) {
            String text = line.strip();
            if (block.language.equals("console")) {
                if (!text.startsWith("$ ")) {
                    continue;
                }
                text = text.substring(2);
            }
            pending.append(text.endsWith("\\") ? text.substring(0, text.length() - 1) : text);
            List<List<String>> commands = split(pending.toString());
            if (commands == null || text.endsWith("\\")) {
                pending.append(text.endsWith("\\") ? " " : "\n");
                continue;
            }
            pending.setLength(0);
            for (List<String> words : commands) {
                int at = 0;
                while (at < words.size() && words.get(at).matches("\\w+=.*")) {
                    at++;
                }
                if (at < words.size() && OWN.matcher(words.get(at)).matches()) {
                    found.add(words.subList(at + 1, words.size()));
                }
            }
        }
        return found;
    }

    /** The words of each simple command of a line of the shell; null while a quotation is open. */
    private static @Nullable List<List<String>> split(String line) {
        List<List<String>> commands = new ArrayList<>();
        List<String> words = new ArrayList<>();
        StringBuilder word = null;
        char quote = 0;
        for (int i = 0; i < line.length(); i++) {
            char c = line.charAt(i);
            if (quote != 0) {
                if (c == quote) {
                    quote = 0;
                } else {
                    word.append(c);
                }
            } else if (c == '\'' || c == '"') {
                quote = c;
                word = word == null ? new StringBuilder() : word;
            } else if (c == '#' && word == null) {
                break;
            } else if (Character.isWhitespace(c) || "|&;<>()".indexOf(c) >= 0) {
                if (word != null) {
                    words.add(word.toString());
                    word = null;
                }
                if ("|&;()".indexOf(c) >= 0) {
                    commands.add(words);
                    words = new ArrayList<>();
                } else if (c == '<' || c == '>') {
                    // What follows is for the shell.
                    commands.add(words);
                    words = new ArrayList<>();
                }
            } else {
                word = word == null ? new StringBuilder() : word;
                word.append(c);
            }
        }
        if (quote != 0) {
            return null;
        }
        if (word != null) {
            words.add(word.toString());
        }
        commands.add(words);
        return commands;
    }
}
