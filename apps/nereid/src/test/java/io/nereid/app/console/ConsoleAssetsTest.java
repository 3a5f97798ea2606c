// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The files of the page: that all of them are there, and that they stay small. */
class ConsoleAssetsTest {
    private static final Pattern IMPORT = Pattern.compile("(?:from|import) '(\\.[^']+)'");
    private static final Pattern LINK = Pattern.compile("(?:src|href)=\"((?!\\.\\./)[a-zA-Z][^\"#:]*)\"");

    private static Path folder() throws URISyntaxException {
        return Path.of(Objects.requireNonNull(ConsoleAssets.class.getResource("index.html"))
                        .toURI())
                .getParent();
    }

    /** The page, and everything that it or its scripts name, by their paths. */
    private static List<String> files() throws IOException, URISyntaxException {
        Path root = folder();
        List<String> files = new ArrayList<>(List.of("index.html"));
        Matcher links = LINK.matcher(Files.readString(root.resolve("index.html")));
        while (links.find()) {
            files.add(links.group(1));
        }
        for (int i = 0; i < files.size(); i++) {
            Path file = root.resolve(files.get(i));
            if (file.toString().endsWith(".js") && Files.exists(file)) {
                Matcher imports = IMPORT.matcher(Files.readString(file));
                while (imports.find()) {
                    String path = Path.of(files.get(i))
                            .resolveSibling(imports.group(1))
                            .normalize()
                            .toString();
                    if (!files.contains(path)) {
                        files.add(path);
                    }
                }
            }
        }
        return files;
    }

    @Test
    void everythingThatThePageNamesIsThere() throws Exception {
        List<String> files = files();
        assertThat(files).contains("js/main.js", "js/pages/model.js", "lib/lit-html/lit-html.js", "app.css");
        for (String file : files) {
            assertThat(ConsoleAssets.transferBytes(List.of(file))).as(file).isPositive();
        }
    }

    @Test
    void nothingIsLeftThatThePageDoesNotName() throws Exception {
        List<String> named = files();
        try (Stream<Path> all = Files.walk(folder())) {
            assertThat(all.filter(Files::isRegularFile)
                            .filter(f -> !f.toString().endsWith(".class") && !f.endsWith("openapi.json"))
                            .map(f -> {
                                try {
                                    return folder().relativize(f).toString();
                                } catch (URISyntaxException e) {
                                    throw new IllegalStateException(e);
                                }
                            }))
                    .allMatch(named::contains);
        }
    }

    @Test
    void itIsSmall() throws Exception {
        assertThat(ConsoleAssets.transferBytes(files())).isLessThan(300_000);
    }

    @Test
    void nothingComesFromElsewhere() throws Exception {
        try (Stream<Path> all = Files.walk(folder())) {
            for (Path file : all.filter(Files::isRegularFile)
                    .filter(f -> f.toString().matches(".*\\.(js|css|html)"))
                    .toList()) {
                assertThat(Files.readString(file))
                        .as(file.toString())
                        .doesNotContainPattern("(src|href|url\\(|from|import)[ =('\"]+https?:");
            }
        }
    }
}
