// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
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

    private void rejected(String document, String... words) {
        rejected(document, ModelConfig.unspecified("m"), words);
    }

    private void rejected(String document, ModelConfig config, String... words) {
        assertThatThrownBy(() -> Documents.load(directory, document, config).close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).contains(words);
                    assertThat(e.remedy()).isNotBlank();
                });
    }

    @Test
    void aFileThatIsNoXmlIsRefusedWithThePlace() {
        rejected(tree.substring(0, 700), "model.pmml", "not well-formed XML in line");
        rejected("", "not well-formed XML");
        rejected("{\"a\": 1}", "not well-formed XML in line 1");
    }

    @Test
    void anotherXmlDocumentIsRefusedByItsRoot() {
        rejected("<svg/>", "its root element is 'svg' (expected: PMML)");
    }

    @Test
    void elementsThatAreNotSupportedAreNamed() {
        rejected(tree.replace("TreeModel", "TextModel"), "not supported", "TextModel");
    }

    @Test
    void wordsThatPmmlDoesNotHaveAreNamed() {
        rejected(tree.replace("lessOrEqual", "lesserOrEqual"), "is not valid PMML", "lesserOrEqual");
    }

    @Test
    void aModelThatSaysItCannotBeScoredIsRefused() {
        rejected(tree.replace("modelName=\"iris\"", "isScorable=\"false\""), "isScorable=false");
    }

    @Test
    void nothingIsFetchedForADocument() throws Exception {
        Path secret = Files.writeString(directory.resolve("secret"), "setosa");
        String external = "<!DOCTYPE PMML [<!ENTITY e SYSTEM \"" + secret.toUri() + "\">]>";
        rejected(
                tree.replaceFirst("<PMML", external + "<PMML").replace("score=\"setosa\"", "score=\"&e;\""),
                "has a document type declaration");
        String bomb = "<!DOCTYPE PMML [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>";
        rejected(tree.replaceFirst("<PMML", bomb + "<PMML"), "has a document type declaration");
    }

    @Test
    void elementsNestedTooDeeplyAreRefused() {
        String node = "<Node id=\"9\" score=\"setosa\"><True/>";
        rejected(
                tree.replace("</TreeModel>", node.repeat(20_000) + "</Node>".repeat(20_000) + "</TreeModel>"),
                "nested deeper than");
    }

    @Test
    void aConfigurationThatDoesNotFitIsRefused() {
        rejected(
                tree,
                ModelConfig.builder("m")
                        .inputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 3))))
                        .build(),
                "input 'x' of shape [-1,3]",
                "rows of all 4 of them");
        rejected(
                tree,
                ModelConfig.builder("m")
                        .outputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))))
                        .build(),
                "output 'x'",
                "Species");
        rejected(tree, ModelConfig.builder("m").modelFile("../m.pmml").build(), "is outside the version directory");
    }
}
