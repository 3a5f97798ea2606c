// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * The Java blocks of {@code docs/how-to} and of the guides for applications are parts of files that the build compiles: each is contained, line by line, in
 * the file that the link before it names. Indentation common to all lines of a block may differ.
 */
class HowToTest {
    private static final Path TOP =
            Path.of("").toAbsolutePath().resolve("../..").normalize();
    private static final Path PAGES = TOP.resolve("docs/how-to");
    private static final Path EXAMPLES = TOP.resolve("examples/extending/src");
    private static final Pattern LINK = Pattern.compile("\\[[^\\]]*]\\(([^)\\s]+\\.java)\\)");

    /**
     * A block of Java.
     *
     * @param line the number of its first line in the page
     * @param file the file that it is said to be a part of; null without a link before it
     * @param code its lines
     */
    private record Block(int line, Path file, List<String> code) {}

    private static final List<String> GUIDES = List.of("docs/EMBEDDING.md", "docs/CLIENT.md", "docs/SPRING-BOOT.md");

    private static List<Path> pages() throws IOException {
        try (Stream<Path> files = Files.list(PAGES)) {
            return files.filter(f -> f.toString().endsWith(".md")).sorted().toList();
        }
    }

    private static List<Block> blocks(Path page) throws IOException {
        List<Block> blocks = new ArrayList<>();
        List<String> code = null;
        Path file = null;
        int number = 0;
        for (String line : Files.readAllLines(page)) {
            number++;
            Matcher link = LINK.matcher(line);
            if (code != null && line.equals("```")) {
                blocks.add(new Block(number - code.size(), file, code));
                code = null;
                file = null;
            } else if (code != null) {
                code.add(line);
            } else if (line.startsWith("```java")) {
                code = new ArrayList<>();
            } else if (link.find()) {
                file = page.resolveSibling(link.group(1)).normalize();
            }
        }
        assertThat(code).as("a block of " + page + " that does not end").isNull();
        return blocks;
    }

    /** Whether a file has the lines of a block one after the other, all moved by the same number of spaces. */
    private static boolean contains(List<String> file, List<String> block) {
        for (int from = 0; from + block.size() <= file.size(); from++) {
            int move = file.get(from).length() - block.get(0).length();
            if (move >= 0 && matches(file.subList(from, from + block.size()), block, " ".repeat(move))) {
                return true;
            }
        }
        return false;
    }

    private static boolean matches(List<String> lines, List<String> block, String indent) {
        for (int i = 0; i < block.size(); i++) {
            String expected = block.get(i).isEmpty() ? "" : indent + block.get(i);
            if (!lines.get(i).equals(expected)) {
                return false;
            }
        }
        return true;
    }

    @TestFactory
    List<DynamicTest> everyBlockIsAPartOfTheFileNamedBeforeIt() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        List<Path> all = new ArrayList<>(pages());
        GUIDES.forEach(guide -> all.add(TOP.resolve(guide)));
        for (Path page : all) {
            for (Block block : blocks(page)) {
                tests.add(DynamicTest.dynamicTest(page.getFileName() + " line " + block.line(), () -> {
                    assertThat(block.code()).isNotEmpty();
                    assertThat(block.file())
                            .as("the link to a file before the block")
                            .isNotNull();
                    assertThat(contains(Files.readAllLines(block.file()), block.code()))
                            .as("%s has these lines:%n%s", block.file(), String.join("\n", block.code()))
                            .isTrue();
                }));
            }
        }
        assertThat(tests).hasSizeGreaterThan(40);
        return tests;
    }

    @Test
    void everyPageQuotesTheExamples() throws IOException {
        Map<String, Long> quotes = new TreeMap<>();
        for (Path page : pages()) {
            quotes.put(
                    page.getFileName().toString(),
                    blocks(page).stream()
                            .filter(b -> b.file() != null && b.file().startsWith(EXAMPLES))
                            .count());
        }
        assertThat(quotes)
                .containsOnlyKeys(
                        "add-a-backend.md",
                        "add-a-kubernetes-field.md",
                        "add-a-storage-provider.md",
                        "add-an-api-route.md");
        assertThat(quotes.values()).allMatch(count -> count >= 3);
    }
}
