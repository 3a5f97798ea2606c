// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The built distribution: its contents, their licences, and its size. */
class DistributionTest {
    /** Of these, 17 MB are the Kubernetes client of the operator and the gateway. */
    private static final long MOST_BYTES = 137_000_000;

    private static final Set<String> PERMISSIVE =
            Set.of("Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "Unlicense");

    private static final Pattern ENTRY = Pattern.compile("  (\\S+) +(\\S+) +https?://\\S+");
    private static final Pattern SECTION = Pattern.compile("In (lib/kubernetes|lib|the plugin (\\S+)):");
    /** {@code (Apache-2.0) (LGPL-2.1-or-later) Name (group:artifact:version - address)}. */
    private static final Pattern THIRD_PARTY =
            Pattern.compile("\\s+((?:\\([^()]+\\) )+).* \\([^:() ]+:([^: ]+):[^: ]+ - [^ ]*\\)");

    private Path target;
    private Path distribution;

    @BeforeEach
    void find() throws IOException {
        target = BuiltDistribution.target();
        distribution = BuiltDistribution.directory("licences and size of the distribution");
    }

    /**
     * Returns the licences in the distribution's NOTICE: by section ({@code lib}, {@code lib/kubernetes} or a plugin's name), then by library.
     */
    private Map<String, Map<String, String>> notice() throws IOException {
        Map<String, Map<String, String>> sections = new TreeMap<>();
        Map<String, String> section = new TreeMap<>();
        for (String line : Files.readAllLines(distribution.resolve("NOTICE"))) {
            Matcher heading = SECTION.matcher(line);
            Matcher entry = ENTRY.matcher(line);
            if (heading.matches()) {
                section = new TreeMap<>();
                sections.put(heading.group(2) == null ? heading.group(1) : heading.group(2), section);
            } else if (entry.matches()) {
                assertThat(section.put(entry.group(1), entry.group(2)))
                        .as("NOTICE lists %s twice", entry.group(1))
                        .isNull();
            } else {
                assertThat(line)
                        .as("a line of NOTICE that is neither a library nor text")
                        .doesNotStartWith(" ");
            }
        }
        assertThat(sections).as("sections of NOTICE").containsKey("lib");
        return sections;
    }

    @Test
    void noticeListsEveryLibraryAndNoOther() throws IOException {
        for (String folder : List.of("lib", "lib/kubernetes")) {
            Set<String> there = new TreeSet<>();
            try (Stream<Path> lib = Files.list(distribution.resolve(folder))) {
                for (Path jar : lib.filter(Files::isRegularFile).toList()) {
                    String name = jar.getFileName().toString();
                    if (!name.startsWith("nereid-")) {
                        there.add(name.replaceFirst("-\\d[^/]*\\.jar$", ""));
                    }
                }
            }
            assertThat(there).hasSizeGreaterThan(20);
            assertThat(notice().get(folder).keySet())
                    .as("libraries of %s in NOTICE", folder)
                    .isEqualTo(there);
        }
    }

    @Test
    void noticeListsEveryLibraryOfEveryPlugin() throws IOException {
        Map<String, Map<String, String>> notice = notice();
        try (InputStream in = getClass().getResourceAsStream("/io/nereid/app/plugins.json")) {
            for (JsonNode plugin : new ObjectMapper().readTree(Objects.requireNonNull(in))) {
                String name = plugin.path("name").asText();
                assertThat(notice).as("sections of NOTICE").containsKey(name);
                Set<String> needed = new TreeSet<>();
                plugin.path("artifacts")
                        .forEach(a -> needed.add(a.path("artifact").asText()));
                assertThat(notice.get(name).keySet())
                        .as("libraries of the plugin %s in NOTICE", name)
                        .isEqualTo(needed);
            }
        }
    }

    @Test
    void everyLicenceIsPermissive() throws IOException {
        notice().forEach((section, libraries) -> libraries.forEach((library, licence) -> assertThat(PERMISSIVE)
                .as("the licence of %s in %s", library, section)
                .contains(licence)));
    }

    /**
     * Compares NOTICE with THIRD-PARTY.txt, which is generated from the libraries' poms; a quick build does not have
     * it.
     */
    @Test
    void noticeMatchesTheLibrariesPoms() throws IOException {
        Path file = distribution.resolve("THIRD-PARTY.txt");
        assumeTrue(Files.exists(file), "NOT TESTED: NOTICE against the libraries' poms; this was a quick build");
        Map<String, String> libraries = new TreeMap<>(notice().get("lib"));
        libraries.putAll(notice().get("lib/kubernetes"));
        int compared = 0;
        for (String line : Files.readAllLines(file)) {
            Matcher m = THIRD_PARTY.matcher(line);
            if (m.matches() && libraries.containsKey(m.group(2))) {
                assertThat(m.group(1)).as(line).contains("(" + libraries.get(m.group(2)) + ")");
                compared++;
            }
        }
        // Netty's native libraries for two architectures are two jars of one name; THIRD-PARTY.txt of an older build
        // may lack a new library.
        assertThat(compared).isGreaterThan(libraries.size() * 9 / 10);
    }

    @Test
    void itIsNoLargerThanPromised() throws IOException {
        long unpacked = 0;
        for (String part : List.of("bin", "lib")) {
            try (Stream<Path> files = Files.walk(distribution.resolve(part))) {
                for (Path f : files.filter(Files::isRegularFile).toList()) {
                    unpacked += Files.size(f);
                }
            }
        }
        assertThat(unpacked).as("bytes of the program and its libraries").isBetween(50_000_000L, MOST_BYTES);
        Path packed = target.resolve(distribution.getFileName() + ".tar.gz");
        if (Files.exists(packed)) {
            assertThat(Files.size(packed))
                    .as(String.format(Locale.ROOT, "bytes to download, example models included: %s", packed))
                    .isLessThanOrEqualTo(MOST_BYTES);
        }
    }
}
