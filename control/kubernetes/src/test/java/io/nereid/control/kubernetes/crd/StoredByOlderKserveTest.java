// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.crd;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** What KServe 0.13 has stored stays whole under the definitions: every version is served, and no field is dropped. */
class StoredByOlderKserveTest {
    private static final String PRESERVE = "x-kubernetes-preserve-unknown-fields";

    private static List<String> fields() throws IOException {
        try (var in = StoredByOlderKserveTest.class.getResourceAsStream("/kserve-0.13-fields.txt")) {
            return new String(Objects.requireNonNull(in).readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .toList();
        }
    }

    /** The schema at a path, or the first one on the way that takes any field. */
    private static JsonNode below(JsonNode schema, String path) {
        JsonNode at = schema;
        for (String step : path.equals("-") ? new String[0] : path.split("\\.")) {
            if (at.path(PRESERVE).asBoolean()) {
                return at;
            }
            String name = step.replace("[]", "");
            at = name.equals("*")
                    ? at.path("additionalProperties")
                    : at.path("properties").path(name);
            if (step.endsWith("[]")) {
                at = at.path("items");
            }
        }
        return at;
    }

    private static List<String> dropped(List<String> lines) {
        List<String> dropped = new ArrayList<>();
        for (String line : lines) {
            String[] words = line.split(" ");
            JsonNode schema = null;
            for (ObjectNode definition : CustomResourceDefinitions.all()) {
                if (definition.at("/spec/names/plural").asText().equals(words[0])) {
                    for (JsonNode version : definition.at("/spec/versions")) {
                        if (version.path("name").asText().equals(words[1])) {
                            schema = version.at("/schema/openAPIV3Schema");
                        }
                    }
                }
            }
            if (schema == null) {
                dropped.add(words[0] + " " + words[1]);
                continue;
            }
            JsonNode parent = below(schema, words[2]);
            for (int i = 3; i < words.length; i++) {
                if (!parent.path(PRESERVE).asBoolean()
                        && !parent.path("properties").has(words[i])) {
                    dropped.add(words[0] + " " + words[2] + "." + words[i]);
                }
            }
        }
        return dropped;
    }

    @Test
    void noFieldOfKserve013IsDropped() throws IOException {
        assertThat(fields()).hasSizeGreaterThan(50);
        assertThat(dropped(fields())).isEmpty();
    }

    @Test
    void aFieldAndAVersionThatAreMissingAreFound() {
        assertThat(dropped(List.of(
                        "inferenceservices v1beta1 spec.predictor.model storageUri storageUrl",
                        "inferenceservices v1alpha2 spec default")))
                .containsExactly("inferenceservices spec.predictor.model.storageUrl", "inferenceservices v1alpha2");
    }
}
