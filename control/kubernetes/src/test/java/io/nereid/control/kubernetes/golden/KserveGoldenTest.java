// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.golden.GoldenComparison.Difference;
import io.nereid.control.kubernetes.golden.GoldenComparison.Excuse;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Compares the objects, pods, statuses and events of services with what KServe's own controller made of the same
 * inputs, stage by stage. {@code NEREID_KSERVE_GOLDENS} names the directory of the recordings; without it and without
 * one at the usual place the test is skipped. Every difference stands in {@code golden/differences.txt} with its reason:
 * one that is not listed fails the test, and so does a listed one that no longer occurs. {@code
 * -Dnereid.golden.write=DIRECTORY} writes what was found in the format of the recordings.
 */
class KserveGoldenTest {
    private static final Set<String> SECTIONS = Set.of("objects", "pods", "status", "events");

    private record Listed(Pattern cases, Pattern path, String reason, String line) {}

    @TestFactory
    Stream<DynamicTest> everyCaseIsAsByKserveButForListedDifferences() throws IOException {
        Path directory = directory();
        Assumptions.assumeTrue(
                directory != null, "SKIPPED: no recordings of KServe; set NEREID_KSERVE_GOLDENS to their directory");
        List<Listed> listed = listed("differences.txt");
        List<Listed> left = listed("not-compared.txt");
        Set<Listed> used = java.util.Collections.synchronizedSet(new LinkedHashSet<>());
        List<String> names;
        try (Stream<Path> files = Files.list(directory.resolve("shared/inputs"))) {
            names = files.map(file -> file.getFileName().toString().replace(".yaml", ""))
                    .sorted()
                    .toList();
        }
        TreeMap<String, Path> compared = new TreeMap<>();
        for (String name : names) {
            if (left.stream().noneMatch(one -> one.cases.matcher(name).matches())) {
                compared.put(name, directory);
            }
        }
        Stream<DynamicTest> cases = compared.keySet().stream()
                .map(name -> DynamicTest.dynamicTest(name, () -> compare(name, directory, listed, used)));
        DynamicTest last = DynamicTest.dynamicTest("every listed difference occurs", () -> {
            List<String> gone = new ArrayList<>();
            for (Listed one : listed) {
                if (!used.contains(one)) {
                    gone.add(one.line);
                }
            }
            assertThat(gone)
                    .as("differences that are listed and no longer occur")
                    .isEmpty();
        });
        return Stream.concat(cases, Stream.of(last));
    }

    private static void compare(String name, Path directory, List<Listed> listed, Set<Listed> used) throws IOException {
        ObjectNode input = read(directory.resolve("shared/inputs/" + name + ".yaml"));
        ObjectNode expected = read(directory.resolve("shared/expected/" + name + ".yaml"));
        ObjectNode profile = read(
                directory.resolve("common/profiles/" + input.path("profile").asText() + ".yaml"));
        GoldenCase played = new GoldenCase(name, profile);
        ObjectNode found = played.play(input);
        String write = System.getProperty("nereid.golden.write");
        if (write != null) {
            Path file = Path.of(write, "shared/expected", name + ".yaml");
            Files.createDirectories(file.getParent());
            Files.writeString(file, found.toString());
        }
        List<String> unlisted = new ArrayList<>();
        int count = 0;
        for (Difference one : GoldenComparison.compare(expected, found, SECTIONS, excuses(name, directory))) {
            count++;
            List<Listed> by = listed.stream()
                    .filter(other -> other.cases.matcher(name).matches()
                            && other.path.matcher(one.path()).find())
                    .toList();
            used.addAll(by);
            if (by.isEmpty()) {
                unlisted.add(
                        one.path() + "\n      KServe " + clip(one.theirs()) + "\n      found  " + clip(one.ours()));
            }
        }
        System.out.println("golden " + name + ": " + count + " differences, " + unlisted.size() + " unlisted"
                + (found.has("refused") ? ", refused " + found.path("refused") : ""));
        assertThat(unlisted)
                .as(name + ": differences from KServe that are not listed")
                .isEmpty();
    }

    private static String clip(JsonNode value) {
        String text = value.toString();
        return text.length() < 200 ? text : text.substring(0, 197) + "...";
    }

    private static List<Excuse> excuses(String name, Path directory) throws IOException {
        List<Excuse> excuses = new ArrayList<>();
        String text = Files.readString(directory.resolve("common/unstable.yaml"));
        for (JsonNode one : ManifestReader.parse("kind: List\napiVersion: v1\nitems:\n" + text, "unstable.yaml")) {
            if (name.matches(one.path("case").asText())) {
                List<JsonNode> of = new ArrayList<>();
                one.path("of").forEach(of::add);
                excuses.add(new Excuse(Pattern.compile(one.path("path").asText()), of));
            }
        }
        return excuses;
    }

    private static ObjectNode read(Path file) throws IOException {
        return ManifestReader.parse(Files.readString(file), file.toString()).get(0);
    }

    private static List<Listed> listed(String file) throws IOException {
        List<Listed> all = new ArrayList<>();
        try (InputStream stream = KserveGoldenTest.class.getResourceAsStream("/golden/" + file)) {
            for (String line : new String(stream.readAllBytes(), StandardCharsets.UTF_8).split("\n", -1)) {
                if (!line.isBlank() && !line.startsWith("#")) {
                    String[] parts = line.split(" +\\| +", 3);
                    assertThat(parts).as(file + ": " + line).hasSize(3);
                    all.add(new Listed(Pattern.compile(parts[0].strip()), Pattern.compile(parts[1]), parts[2], line));
                }
            }
        }
        return all;
    }

    private static Path directory() {
        String given = System.getenv("NEREID_KSERVE_GOLDENS");
        if (given != null && !given.isEmpty()) {
            return Path.of(given);
        }
        for (Path up = Path.of("").toAbsolutePath(); up != null; up = up.getParent()) {
            Path usual = up.resolve("shared/reference/kserve-goldens");
            if (Files.isDirectory(usual)) {
                return usual;
            }
        }
        return null;
    }
}
