// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.crd;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKinds;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CustomResourceDefinitionsTest {
    /** The annotations of an object have 262,144 bytes; some are left for others than kubectl's. */
    private static final int MOST_BYTES = 250_000;

    @Test
    void everyKindOfKServeHasADefinitionThatFitsIntoItsOwnAnnotation() {
        List<String> names = new ArrayList<>();
        for (ObjectNode definition : CustomResourceDefinitions.all()) {
            String name = definition.path("metadata").path("name").asText();
            names.add(name);
            int bytes = definition.toString().getBytes(StandardCharsets.UTF_8).length;
            assertThat(bytes).as(name).isLessThan(MOST_BYTES);
        }
        assertThat(names)
                .containsExactly(
                        "inferenceservices.serving.kserve.io",
                        "servingruntimes.serving.kserve.io",
                        "clusterservingruntimes.serving.kserve.io",
                        "inferencegraphs.serving.kserve.io",
                        "clusterstoragecontainers.serving.kserve.io",
                        "llminferenceservices.serving.kserve.io",
                        "llminferenceserviceconfigs.serving.kserve.io",
                        "trainedmodels.serving.kserve.io",
                        "localmodelcaches.serving.kserve.io",
                        "localmodelnamespacecaches.serving.kserve.io",
                        "localmodelnodegroups.serving.kserve.io",
                        "localmodelnodes.serving.kserve.io");
    }

    @Test
    void nothingIsWrittenIntoASpecByDefault() {
        for (ObjectNode definition : CustomResourceDefinitions.all()) {
            // A property may be named default; a default of the schema is beside a type.
            assertThat(definition.findParents("default").stream()
                            .filter(node ->
                                    node.has("type") && node.path("type").isTextual())
                            .toList())
                    .isEmpty();
        }
    }

    @Test
    void schemasAreStructural() {
        for (ObjectNode definition : CustomResourceDefinitions.all()) {
            structural(
                    definition.path("metadata").path("name").asText(),
                    definition
                            .path("spec")
                            .path("versions")
                            .path(0)
                            .path("schema")
                            .path("openAPIV3Schema"));
        }
    }

    private static void structural(String path, JsonNode schema) {
        boolean free = schema.path("x-kubernetes-int-or-string").asBoolean()
                || schema.path("x-kubernetes-preserve-unknown-fields").asBoolean();
        assertThat(schema.has("type") || free).as(path).isTrue();
        schema.path("properties")
                .properties()
                .forEach(entry -> structural(path + "." + entry.getKey(), entry.getValue()));
        schema.path("required")
                .forEach(name -> assertThat(schema.path("properties").has(name.asText()))
                        .as(path + "." + name)
                        .isTrue());
        if (schema.has("items")) {
            structural(path + "[]", schema.get("items"));
        }
        if (schema.has("additionalProperties")) {
            structural(path + "{}", schema.get("additionalProperties"));
        }
    }

    @Test
    void elementsOfListsAreMergedByTheirKeys() {
        JsonNode model = spec(CustomResourceDefinitions.of(ResourceKinds.INFERENCE_SERVICE), "predictor", "model");
        assertThat(model.path("env").path("x-kubernetes-list-map-keys").path(0).asText())
                .isEqualTo("name");
        assertThat(model.path("volumeMounts")
                        .path("x-kubernetes-list-map-keys")
                        .path(0)
                        .asText())
                .isEqualTo("mountPath");
        // Their second key would need a default, which would be written into every spec.
        assertThat(model.path("ports").has("x-kubernetes-list-type")).isFalse();
    }

    private static JsonNode spec(ObjectNode definition, String... path) {
        JsonNode schema = definition
                .path("spec")
                .path("versions")
                .path(0)
                .path("schema")
                .path("openAPIV3Schema")
                .path("properties")
                .path("spec");
        for (String name : path) {
            schema = schema.path("properties").path(name);
        }
        return schema.path("properties");
    }
}
