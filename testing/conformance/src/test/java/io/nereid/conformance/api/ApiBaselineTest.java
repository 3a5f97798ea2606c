// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.nereid.base.ApiVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Compares the published API with its baseline, the files {@code build/api/<module>.txt}. With {@code -Dapi.write=true}
 * it writes the baseline; a break is written only when {@code build/api/accepted-breaks.txt} contains it with a reason.
 */
class ApiBaselineTest {
    private static final boolean WRITE = Boolean.getBoolean("api.write");

    private static final String WRITING =
            "write the baseline: ./mvnw -Pquick -pl testing/conformance -am -Dtest=ApiBaselineTest"
                    + " -Dsurefire.failIfNoSpecifiedTests=false -Dapi.write=true test";

    private static final Pattern CLASS =
            Pattern.compile("\\b[a-z]\\w*(?:\\.[a-z]\\w*)+\\.([A-Z][\\w$]*(?:\\.[A-Z]\\w*)*)");

    @Test
    void theApiIsCompatibleWithItsBaseline() throws Exception {
        List<String> breaks = new ArrayList<>();
        List<String> additions = new ArrayList<>();
        Set<String> accepted = accepted();
        for (Map.Entry<String, List<Class<?>>> module : ApiModules.load().entrySet()) {
            Map<String, Set<String>> now = ApiSignatures.of(module.getValue());
            Path baseline = ApiModules.directory().resolve(module.getKey() + ".txt");
            ApiComparison difference = ApiComparison.of(read(baseline), now);
            difference.breaks().stream().filter(b -> !accepted.contains(b)).forEach(breaks::add);
            difference.additions().forEach(a -> additions.add(module.getKey() + ": " + a));
            if (WRITE && difference.breaks().stream().allMatch(accepted::contains)) {
                Files.writeString(baseline, text(now));
            } else if (!WRITE) {
                difference.breaks().stream()
                        .filter(accepted::contains)
                        .forEach(b -> additions.add(module.getKey() + ": " + b));
            }
        }
        assertThat(breaks)
                .as("breaks of the API; undo them, or add each line to build/api/accepted-breaks.txt with ' # ' and its"
                        + " reason, and raise the major version in ApiVersion and pom.xml")
                .isEmpty();
        if (!WRITE) {
            assertThat(additions)
                    .as("changes that the baseline lacks; " + WRITING)
                    .isEmpty();
        }
    }

    @Test
    void everyBaselineBelongsToAModule() throws Exception {
        assumeFalse(WRITE, "the baseline is being written");
        Set<String> expected = new TreeSet<>(Set.of("packages.txt", "accepted-breaks.txt"));
        ApiModules.load().keySet().forEach(module -> expected.add(module + ".txt"));
        try (Stream<Path> files = Files.list(ApiModules.directory())) {
            assertThat(files.map(p -> p.getFileName().toString())).containsExactlyInAnyOrderElementsOf(expected);
        }
    }

    /** Who uses a type of the API needs the types in its signatures, so they must be API as well. */
    @Test
    void signaturesUseTypesOfTheJdkAndTheApiAlone() throws Exception {
        List<Class<?>> all =
                ApiModules.load().values().stream().flatMap(List::stream).toList();
        Set<String> api = new TreeSet<>();
        all.forEach(c -> api.add(c.getName()));
        Set<String> foreign = new TreeSet<>();
        ApiSignatures.of(all).forEach((key, properties) -> {
            Matcher type = CLASS.matcher(key + ' ' + properties);
            while (type.find()) {
                String name = type.group();
                boolean ours = api.stream()
                        .anyMatch(a -> name.equals(a) || name.startsWith(a + ".") || name.startsWith(a + "$"));
                boolean jdk = name.startsWith("java.") || name.startsWith("javax.net.");
                if (!jdk && !name.startsWith("org.jspecify.") && !ours) {
                    foreign.add(name);
                }
            }
        });
        assertThat(foreign).isSubsetOf(exposed());
    }

    /** The types that {@code packages.txt} lists after {@code exposed:}. */
    private static Set<String> exposed() throws IOException {
        Set<String> exposed = new TreeSet<>();
        for (String line : Files.readAllLines(ApiModules.directory().resolve("packages.txt"))) {
            if (line.startsWith("# exposed: ")) {
                exposed.addAll(List.of(line.substring("# exposed: ".length()).split("\\s+")));
            }
        }
        return exposed;
    }

    @Test
    void theBuildWritesTheVersionOfTheApiToManifests() throws IOException {
        assertThat(Files.readString(ApiModules.root().resolve("pom.xml")))
                .contains("<nereid.api.version>" + ApiVersion.CURRENT + "</nereid.api.version>");
    }

    private static Set<String> accepted() throws IOException {
        Set<String> accepted = new TreeSet<>();
        for (String line : Files.readAllLines(ApiModules.directory().resolve("accepted-breaks.txt"))) {
            if (!line.isBlank() && !line.startsWith("#")) {
                String[] parts = line.split(" # ");
                assertThat(parts)
                        .as("a break and its reason, separated by ' # ': " + line)
                        .hasSize(2);
                accepted.add(parts[0]);
            }
        }
        return accepted;
    }

    private static String text(Map<String, Set<String>> lines) {
        StringBuilder text = new StringBuilder();
        lines.forEach((key, properties) -> text.append(key)
                .append(" | ")
                .append(String.join(" ", properties))
                .append('\n'));
        return text.toString();
    }

    private static Map<String, Set<String>> read(Path baseline) throws IOException {
        Map<String, Set<String>> lines = new TreeMap<>();
        if (Files.exists(baseline)) {
            for (String line : Files.readAllLines(baseline)) {
                int bar = line.lastIndexOf(" | ");
                lines.put(
                        line.substring(0, bar),
                        new TreeSet<>(List.of(line.substring(bar + 3).split(" "))));
            }
        }
        return lines;
    }
}
