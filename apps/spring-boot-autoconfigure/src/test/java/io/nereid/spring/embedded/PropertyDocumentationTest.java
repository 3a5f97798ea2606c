// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The metadata from which editors complete properties, and docs/SPRING-BOOT.md. */
class PropertyDocumentationTest {
    private static final Pattern PROPERTY =
            Pattern.compile("\\{\\s*\"name\": \"(nereid\\.[^\"]+)\",\\s*\"type\": \"[^\"]+\",\\s*(\"description\")?");

    @Test
    void eachPropertyHasADescriptionAndALineOfTheDocument() throws IOException {
        String document = Files.readString(Path.of("../../docs/SPRING-BOOT.md"));
        Set<String> names = new TreeSet<>();
        for (URL url : Collections.list(
                getClass().getClassLoader().getResources("META-INF/spring-configuration-metadata.json"))) {
            try (InputStream in = url.openStream()) {
                String all = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                Matcher matcher = PROPERTY.matcher(all.substring(all.indexOf("\"properties\"")));
                while (matcher.find()) {
                    String name = matcher.group(1);
                    names.add(name);
                    assertThat(matcher.group(2)).as("a description of %s", name).isNotNull();
                }
            }
        }
        assertThat(names)
                .contains("nereid.embedded.reload", "nereid.client.tls.private-key")
                .hasSizeGreaterThan(15);
        for (String name : names) {
            String last = name.replaceFirst("nereid\\.(embedded|client)\\.", "");
            assertThat(document)
                    .as("%s in the tables of docs/SPRING-BOOT.md", name)
                    .containsPattern("`" + Pattern.quote(last) + "(`|\\.NAME)");
        }
    }
}
