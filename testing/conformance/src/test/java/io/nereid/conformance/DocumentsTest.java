// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The documents name only files, headings and types that exist. */
class DocumentsTest {
    private static final Path TOP =
            Path.of("").toAbsolutePath().resolve("../..").normalize();

    private static final Pattern LINK = Pattern.compile("\\[[^\\]]*]\\(([^)\\s]+)\\)");
    private static final Pattern CODE = Pattern.compile("`([^`\n]+)`");
    private static final Pattern DOCUMENT = Pattern.compile("[A-Z]+\\.md");
    private static final Pattern TYPE = Pattern.compile("[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+");

    /** The folders of the project; a word of a document that begins with one of them is a path. */
    private static final List<String> FOLDERS = List.of(
            ".ci",
            "apps",
            "backends",
            "build",
            "caches",
            "control",
            "docs",
            "examples",
            "foundation",
            "protocols",
            "serving",
            "testing",
            "transport");

    /** Types of other projects that the documents on architecture name. */
    private static final Set<String> FOREIGN = Set.of(
            "DoubleNode",
            "JsonNode",
            "LongAdder",
            "OpenTelemetry",
            "PredictionLog",
            "TarArchiveInputStream",
            "TextFormat",
            "TensorProto",
            "ZipFile");

    private static List<Path> documents() throws IOException {
        List<Path> found = new ArrayList<>();
        for (String name : List.of("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASE.md")) {
            if (Files.exists(TOP.resolve(name))) {
                found.add(TOP.resolve(name));
            }
        }
        for (String folder : List.of("docs", "examples", "testing")) {
            try (Stream<Path> files = Files.walk(TOP.resolve(folder))) {
                files.filter(f -> f.toString().endsWith(".md"))
                        .filter(f -> !f.toString().contains("/target/")
                                && !f.toString().contains("/venv/"))
                        .forEach(found::add);
            }
        }
        assertThat(found).hasSizeGreaterThan(20);
        return found;
    }

    @Test
    void linksLeadToFilesAndHeadings() throws IOException {
        List<String> broken = new ArrayList<>();
        for (Path document : documents()) {
            Matcher link = LINK.matcher(Files.readString(document));
            while (link.find()) {
                String target = link.group(1);
                if (target.contains("://") || target.startsWith("mailto:")) {
                    continue;
                }
                int hash = target.indexOf('#');
                Path file = hash == 0
                        ? document
                        : document.resolveSibling(hash < 0 ? target : target.substring(0, hash))
                                .normalize();
                if (!Files.exists(file)) {
                    broken.add(TOP.relativize(document) + ": " + target);
                } else if (hash >= 0 && !anchors(file).contains(target.substring(hash + 1))) {
                    broken.add(TOP.relativize(document) + ": no heading for " + target);
                }
            }
        }
        assertThat(broken).as("links").isEmpty();
    }

    /** The anchors of a document's headings, as GitHub makes them. */
    private static Set<String> anchors(Path document) throws IOException {
        return Files.readAllLines(document).stream()
                .filter(line -> line.matches("#+ .*"))
                .map(line -> line.replaceFirst("#+ ", "")
                        .toLowerCase(Locale.ROOT)
                        .replaceAll("[^\\p{L}\\p{N}_ -]", "")
                        .replace(' ', '-'))
                .collect(Collectors.toSet());
    }

    @Test
    void namedFilesExist() throws IOException {
        List<String> missing = new ArrayList<>();
        int checked = 0;
        for (Path document : documents()) {
            if (document.endsWith("CHANGELOG.md")) {
                continue; // it names what modules were called before
            }
            for (String word : codeWords(document)) {
                if (isPath(word)) {
                    checked++;
                    if (!Files.exists(TOP.resolve(word))) {
                        missing.add(TOP.relativize(document) + ": " + word);
                    }
                } else if (DOCUMENT.matcher(word).matches()
                        && !Files.exists(document.resolveSibling(word))
                        && !Files.exists(TOP.resolve(word))) {
                    missing.add(TOP.relativize(document) + ": " + word);
                }
            }
        }
        assertThat(missing).as("files that documents name").isEmpty();
        assertThat(checked).isGreaterThan(100);
    }

    private static boolean isPath(String word) {
        return FOLDERS.stream().anyMatch(folder -> word.startsWith(folder + "/"))
                && !word.matches(".*[*<>…{}$=].*")
                && !word.contains("/target/");
    }

    /** The words of code spans and code blocks, without the punctuation around them. */
    private static List<String> codeWords(Path document) throws IOException {
        List<String> words = new ArrayList<>();
        boolean block = false;
        for (String line : Files.readAllLines(document)) {
            if (line.startsWith("```")) {
                block = !block;
            } else if (block) {
                words.addAll(words(line));
            } else {
                Matcher code = CODE.matcher(line);
                while (code.find()) {
                    words.addAll(words(code.group(1)));
                }
            }
        }
        return words;
    }

    private static List<String> words(String text) {
        return Stream.of(text.split("[\\s\"'|@]+"))
                .map(word -> word.replaceFirst("^\\./", "").replaceFirst("[.,;:)]+$", ""))
                .filter(word -> !word.isEmpty())
                .toList();
    }

    @Test
    void typesOfTheArchitectureExist() throws IOException {
        Set<String> types = new TreeSet<>();
        for (String folder : FOLDERS) {
            if (Files.isDirectory(TOP.resolve(folder))) {
                try (Stream<Path> files = Files.walk(TOP.resolve(folder))) {
                    files.map(f -> f.getFileName().toString())
                            .filter(name -> name.endsWith(".java"))
                            .forEach(name -> types.add(name.substring(0, name.length() - ".java".length())));
                }
            }
        }
        Set<String> unknown = new TreeSet<>();
        for (Path document : documents()) {
            if (!document.endsWith("docs/ARCHITECTURE.md") && !document.startsWith(TOP.resolve("docs/decisions"))) {
                continue;
            }
            for (String word : codeWords(document)) {
                String type = word.replaceFirst("[.(].*", "");
                if (TYPE.matcher(type).matches() && !types.contains(type) && !FOREIGN.contains(type)) {
                    unknown.add(TOP.relativize(document) + ": " + type);
                }
            }
        }
        assertThat(unknown).as("types that do not exist").isEmpty();
    }
}
