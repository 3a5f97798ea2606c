// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RefusalTest {
    private final String tree = Documents.text("iris-tree");

    @TempDir
    Path directory;

    private void refused(String document, String... words) {
        refused(document, ModelConfig.unspecified("m"), words);
    }

    private void refused(String document, ModelConfig config, String... words) {
        assertThatThrownBy(() -> Documents.load(directory, document, config).close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).contains(words);
                    assertThat(e.remedy()).isNotBlank();
                });
    }

    @Test
    void aFileThatIsNoXmlIsRefusedWithThePlace() {
        refused(tree.substring(0, 700), "model.pmml", "not well-formed XML in line");
        refused("", "not well-formed XML");
        refused("{\"a\": 1}", "not well-formed XML in line 1");
    }

    @Test
    void anotherXmlDocumentIsRefusedByItsRoot() {
        refused("<svg/>", "its root element is 'svg' (expected: PMML)");
    }

    @Test
    void elementsThatAreNotSupportedAreNamed() {
        refused(tree.replace("TreeModel", "TextModel"), "not supported", "TextModel");
    }

    @Test
    void wordsThatPmmlDoesNotHaveAreNamed() {
        refused(tree.replace("lessOrEqual", "lesserOrEqual"), "does not follow PMML", "lesserOrEqual");
    }

    @Test
    void aModelThatSaysItCannotBeScoredIsRefused() {
        refused(tree.replace("modelName=\"iris\"", "isScorable=\"false\""), "not scorable");
    }

    @Test
    void nothingIsFetchedForADocument() throws Exception {
        Path secret = Files.writeString(directory.resolve("secret"), "setosa");
        String external = "<!DOCTYPE PMML [<!ENTITY e SYSTEM \"" + secret.toUri() + "\">]>";
        refused(
                tree.replaceFirst("<PMML", external + "<PMML").replace("score=\"setosa\"", "score=\"&e;\""),
                "has a document type declaration");
        String bomb = "<!DOCTYPE PMML [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>";
        refused(tree.replaceFirst("<PMML", bomb + "<PMML"), "has a document type declaration");
    }

    @Test
    void elementsNestedTooDeeplyAreRefused() {
        String node = "<Node id=\"9\" score=\"setosa\"><True/>";
        refused(
                tree.replace("</TreeModel>", node.repeat(20_000) + "</Node>".repeat(20_000) + "</TreeModel>"),
                "nested deeper than");
    }

    @Test
    void aConfigurationThatDoesNotFitIsRefused() {
        refused(
                tree,
                ModelConfig.builder("m")
                        .inputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 3))))
                        .build(),
                "input 'x' of shape [-1,3]",
                "rows of all 4 of them");
        refused(
                tree,
                ModelConfig.builder("m")
                        .outputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))))
                        .build(),
                "output 'x'",
                "Species");
        refused(tree, ModelConfig.builder("m").modelFile("../m.pmml").build(), "lies outside the version's directory");
    }
}
