// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * Comments, messages and documents have none of the words that docs/GLOSSARY.md replaces by terms of the field. Reads
 * comments and string literals of all Java sources, the Markdown pages without their code, and comments of the Python
 * and shell files below testing/.
 */
class VocabularyTest {
    private static final String HEADING = "## Words that are not used";

    /** What stands for program text between two comments or literals. No word contains it. */
    private static final char CODE = '\u0001';

    /** A place where a word stays, with the reason. An entry that no longer matches is an error too. */
    private record Allowed(String file, String text, String reason) {}

    private static final List<Allowed> ALLOWED = List.of(
            new Allowed("docs/FORMATS.md", "HardSigmoid, Tanh, Swish", "an operator of Caffe2"),
            new Allowed("docs/FORMATS.md", "leaky_relu, elu, selu", "an operator of PaddlePaddle"),
            new Allowed(
                    "foundation/json/src/main/java/io/nereid/json/number/ShortestDecimal.java",
                    "(log10(2^q))",
                    "the mathematical function"));

    private record Hit(String file, int line, String word, String text) {
        @Override
        public String toString() {
            return file + ":" + line + ": '" + word + "' in: " + text;
        }
    }

    private final Path top = top();

    private static Path top() {
        Path here = Path.of("").toAbsolutePath();
        return Files.isDirectory(here.resolve("apps"))
                ? here
                : here.resolve("../..").normalize();
    }

    @Test
    void theWordsOfTheTableAreUsedNowhere() throws IOException {
        Pattern words = words(Files.readString(top.resolve("docs/GLOSSARY.md")));
        Set<Allowed> used = new HashSet<>();
        List<Hit> hits = new ArrayList<>();
        for (Path file : files()) {
            String name = top.relativize(file).toString();
            for (Hit hit : hits(name, Files.readString(file), words)) {
                List<Allowed> allowed = ALLOWED.stream()
                        .filter(a -> a.file().equals(name) && hit.text().contains(a.text()))
                        .toList();
                used.addAll(allowed);
                if (allowed.isEmpty()) {
                    hits.add(hit);
                }
            }
        }
        assertThat(hits)
                .as(
                        "words that docs/GLOSSARY.md replaces:\n%s\n",
                        hits.stream().map(Hit::toString).collect(Collectors.joining("\n")))
                .isEmpty();
        assertThat(ALLOWED).as("exceptions that are needed").allMatch(used::contains);
    }

    @Test
    void aPlantedWordIsFoundWithItsLine() throws IOException {
        String java = """
            // a planted WORD
            class A {
                /** A {@code word} of code, and X PHRASE
                 *  tree. */
                String word = "word" + "a " + "planted word\\nword";
                String name = "the 'word' of another";
                char quote = '"'; // word
                String block = \"""
                    of word ""\";
            }
            """;
        assertThat(planted("a/src/test/java/A.java", java)).containsExactly(1, 3, 5, 5, 7, 9);
        String markdown = """
            A word, `word`
            ```
            word
            ```
            wordy swords sword's **word**
            there PHRASE tree; PHRASE longer tree; PHRASE more trees; PHRASE tree
            """;
        assertThat(planted("docs/A.md", markdown)).containsExactly(1, 5, 6);
        String python = """
            \"""A word.\"""
            word = "# the word"  # word
            text = \"""
            a word
            \"""
            """;
        assertThat(planted("testing/a.py", python)).containsExactly(1, 2);
        assertThat(planted("testing/a.sh", "#!/bin/word\nword=${#word} # word\n# a word\n"))
                .containsExactly(2, 3);
        assertThat(kind("backends/a.py")).as("not below testing/").isNull();
    }

    /** The lines of the hits in a text with words of the table in the place of WORD and PHRASE. */
    private List<Integer> planted(String file, String text) throws IOException {
        String word = "ho" + "use";
        String filled = text.replace("word", word)
                .replace("WORD", word.toUpperCase(Locale.ROOT))
                .replace("PHRASE", "is" + " no");
        return hits(file, filled, words(Files.readString(top.resolve("docs/GLOSSARY.md")))).stream()
                .map(Hit::line)
                .toList();
    }

    /** The words of the left column of the glossary's table, as one pattern. */
    private static Pattern words(String glossary) {
        List<String> words = new ArrayList<>();
        glossary.substring(glossary.indexOf(HEADING))
                .lines()
                .filter(l -> l.startsWith("| ") && !l.startsWith("| Not "))
                .flatMap(l -> Stream.of(l.substring(1, l.indexOf('|', 1)).split(",")))
                .map(String::strip)
                .forEach(word -> words.add(pattern(word)));
        assertThat(words).as("the table in docs/GLOSSARY.md").hasSizeGreaterThan(10);
        return Pattern.compile("\\b(?<!')(?:" + String.join("|", words) + ")", Pattern.CASE_INSENSITIVE);
    }

    /**
     * A word or phrase, in any case, unless it is quoted and so a name. A phrase that ends in "no" is wrong before a noun
     * and right in "there is no", which says what exists.
     */
    private static String pattern(String word) {
        String text = word.replace(" ", "\\s+") + "\\b(?!')";
        return word.endsWith(" no")
                ? text + "(?<!\\bthere\\s{1,40}" + word.replace(" ", "\\s{1,40}") + ")\\s+(?!longer\\b|more\\b)\\p{L}"
                : text;
    }

    private List<Path> files() throws IOException {
        List<Path> files = new ArrayList<>();
        Files.walkFileTree(top, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path dir, BasicFileAttributes attributes) {
                String name = dir.getFileName().toString();
                boolean other = name.equals("target") || (name.startsWith(".") && !dir.equals(top));
                return other ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                if (kind(top.relativize(file).toString()) != null) {
                    files.add(file);
                }
                return FileVisitResult.CONTINUE;
            }
        });
        files.sort(null);
        return files;
    }

    /** How a file is read. */
    private enum Kind {
        JAVA,
        MARKDOWN,
        PYTHON,
        SHELL
    }

    private static @Nullable Kind kind(String name) {
        boolean source = name.matches("(.*/)?src/(main|test)/java/.*\\.java");
        boolean testing = name.startsWith("testing/");
        return source
                ? Kind.JAVA
                : name.endsWith(".md")
                        ? Kind.MARKDOWN
                        : testing && name.endsWith(".py")
                                ? Kind.PYTHON
                                : testing && name.endsWith(".sh") ? Kind.SHELL : null;
    }

    private static List<Hit> hits(String name, String text, Pattern words) {
        List<Hit> hits = new ArrayList<>();
        Kind kind = Objects.requireNonNull(kind(name));
        int end = name.equals("docs/GLOSSARY.md") ? text.indexOf(HEADING) : text.length();
        String prose = new Prose(text.substring(0, end)).of(kind);
        Matcher found = words.matcher(prose);
        while (found.find()) {
            int line = 1
                    + (int) text.chars()
                            .limit(found.start())
                            .filter(c -> c == '\n')
                            .count();
            int from = text.lastIndexOf('\n', found.start()) + 1;
            int to = text.indexOf('\n', found.start());
            String whole = text.substring(from, to < 0 ? text.length() : to).strip();
            hits.add(new Hit(name, line, found.group().replaceAll("\\s+", " "), whole));
        }
        return hits;
    }

    /**
     * Finds what people read in a file: the result is as long as the file, with {@link #CODE} in the place of program
     * text. A literal without a space is a name, such as that of an operator, and counts as program text. Confined to
     * one call.
     */
    private static final class Prose {
        private static final Pattern CODE_IN_COMMENT =
                Pattern.compile("\\{@(code|link|linkplain|value)\\s[^}]*}|<pre>.*?</pre>", Pattern.DOTALL);

        private final String text;
        private final char[] out;
        private int at;

        Prose(String text) {
            this.text = text;
            this.out = new char[text.length()];
            Arrays.fill(out, CODE);
        }

        String of(Kind kind) {
            switch (kind) {
                case JAVA -> java();
                case MARKDOWN -> markdown();
                case PYTHON -> python();
                case SHELL -> shell();
            }
            return new String(out);
        }

        private void java() {
            while (at < text.length()) {
                char c = text.charAt(at);
                if (text.startsWith("//", at)) {
                    comment(at + 2, end("\n", at));
                } else if (text.startsWith("/*", at)) {
                    comment(at + 2, end("*/", at + 2));
                } else if (text.startsWith("\"\"\"", at)) {
                    literal(3);
                } else if (c == '"') {
                    literal(1);
                } else if (c == '\'') {
                    at = text.charAt(at + 1) == '\\' ? end("'", at + 3) : at + 3;
                } else {
                    if (c == '+' || Character.isWhitespace(c)) {
                        out[at] = ' ';
                    }
                    at++;
                }
            }
        }

        /** The index after the next {@code mark}, or the end of the file. */
        private int end(String mark, int from) {
            int found = text.indexOf(mark, from);
            return found < 0 ? text.length() : found + mark.length();
        }

        private void comment(int from, int to) {
            Arrays.fill(out, at, from, ' ');
            String body =
                    text.substring(from, to).replaceAll("(?m)^(\\s*)\\*", "$1 ").replace("*/", "  ");
            body.getChars(0, body.length(), out, from);
            // code in a comment
            Matcher code = CODE_IN_COMMENT.matcher(body);
            while (code.find()) {
                Arrays.fill(out, from + code.start(), from + code.end(), CODE);
            }
            at = to;
        }

        private void literal(int quotes) {
            String mark = "\"".repeat(quotes);
            int start = at + quotes;
            int i = start;
            while (i < text.length() && !text.startsWith(mark, i)) {
                i += text.charAt(i) == '\\' ? 2 : 1;
            }
            String body = text.substring(start, Math.min(i, text.length()));
            if (body.chars().anyMatch(Character::isWhitespace)) {
                body = body.replaceAll("\\\\.", "  ");
                Arrays.fill(out, at, start, ' ');
                body.getChars(0, body.length(), out, start);
                Arrays.fill(out, i, Math.min(i + quotes, text.length()), ' ');
            }
            at = i + quotes;
        }

        private void markdown() {
            boolean fenced = false;
            for (String line : text.split("(?<=\n)")) {
                boolean fence = line.stripLeading().startsWith("```");
                if (!fenced && !fence) {
                    Matcher code = Pattern.compile("`[^`\n]+`").matcher(line);
                    line.getChars(0, line.length(), out, at);
                    while (code.find()) {
                        Arrays.fill(out, at + code.start(), at + code.end(), CODE);
                    }
                }
                fenced ^= fence;
                at += line.length();
            }
        }

        private void python() {
            while (at < text.length()) {
                char c = text.charAt(at);
                if (c == '#') {
                    comment(at + 1, end("\n", at));
                } else if (c == '"' || c == '\'') {
                    String mark = text.startsWith(("" + c).repeat(3), at) ? ("" + c).repeat(3) : "" + c;
                    boolean statement =
                            text.substring(text.lastIndexOf('\n', at) + 1, at).isBlank();
                    int i = at + mark.length();
                    while (i < text.length() && !text.startsWith(mark, i)) {
                        i += text.charAt(i) == '\\' ? 2 : 1;
                    }
                    int to = Math.min(i + mark.length(), text.length());
                    if (statement && mark.length() == 3) {
                        comment(at + 3, to);
                    }
                    at = to;
                } else {
                    if (Character.isWhitespace(c)) {
                        out[at] = ' ';
                    }
                    at++;
                }
            }
        }

        private void shell() {
            for (String line : text.split("(?<=\n)")) {
                Matcher comment = Pattern.compile("(^|\\s)#").matcher(line);
                int next = at + line.length();
                if (comment.find() && !line.startsWith("#!")) {
                    Arrays.fill(out, at, at + comment.end(), line.isBlank() ? ' ' : comment.start() == 0 ? ' ' : CODE);
                    line.getChars(comment.end(), line.length(), out, at + comment.end());
                }
                at = next;
            }
        }
    }
}
