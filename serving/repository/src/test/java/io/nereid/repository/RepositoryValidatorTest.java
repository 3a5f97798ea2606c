// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.repository.problem.Problem;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RepositoryValidatorTest {
    @TempDir
    Path root;

    private final RepositoryValidator validator = new RepositoryValidator(List.of(Fakes.ONNX, Fakes.IDENTITY));

    @Test
    void everyProblemOfEveryModelIsFoundAtOnce() {
        Fakes.write(root.resolve("good/1/model.onnx"), "x");
        Fakes.write(root.resolve("bad/1/model.onnx"), "x");
        Fakes.write(root.resolve("bad/01/model.onnx"), "x");
        Fakes.write(root.resolve("bad/config.pbtxt"), "max_batch_size: -1\nsequence_batching: 1\n");
        Fakes.write(root.resolve("docs/notes.txt"), "x");
        assertThat(validator.validate(root))
                .extracting(p -> p.severity() + " " + root.relativize(p.file()) + ":" + p.line())
                .containsExactlyInAnyOrder(
                        "WARNING docs:0", "ERROR bad/config.pbtxt:1", "ERROR bad/config.pbtxt:2", "WARNING bad/01:0");
        assertThat(validator.validate(root)).allMatch(p -> p.remedy() != null);
    }

    @Test
    void aGoodRepositoryHasNoProblems() {
        Fakes.write(root.resolve("good/1/model.onnx"), "x");
        assertThat(validator.validate(root)).isEmpty();
    }

    @Test
    void anEmptyOrMissingRepositoryIsAProblem() {
        assertThat(validator.validate(root))
                .singleElement()
                .matches(p -> p.message().equals("no model in this directory"));
        assertThat(validator.validate(root.resolve("gone"))).singleElement().matches(Problem::isError);
    }

    @Test
    void aFileAndADirectoryOfOneNameAreADuplicate() {
        Fakes.write(root.resolve("a/1/model.onnx"), "x");
        Fakes.write(root.resolve("a.onnx"), "x");
        assertThat(validator.validate(root))
                .hasSize(2)
                .allMatch(p -> p.message().contains("model 'a' "));
    }

    @Test
    void aFileThatHasNotTheSumGivenIsFound() {
        Fakes.write(root.resolve("a/1/model.onnx"), "x");
        Fakes.write(
                root.resolve("a/config.pbtxt"),
                "model_repository_agents { agents { name: 'checksum' parameters { key: 'MD5:1/model.onnx' value: '00'"
                        + " } } }");
        assertThat(validator.validate(root))
                .singleElement()
                .matches(p -> p.message().startsWith("Mismatched MD5 hash for file '1/model.onnx'"));
    }

    private void ensemble(String name, String... parts) {
        StringBuilder text =
                new StringBuilder("platform: 'ensemble' input { name: 'a' data_type: TYPE_FP32 dims: 1 } ");
        for (String part : parts) {
            String output = name + "_" + part;
            text.append("output { name: '" + output + "' data_type: TYPE_FP32 dims: 1 } ");
        }
        text.append("ensemble_scheduling { ");
        for (String part : parts) {
            text.append(
                    "step { model_name: '" + part + "' input_map { key: 'x' value: 'a' } output_map { key: 'y' value: '"
                            + name + "_" + part + "' } } ");
        }
        Fakes.write(root.resolve(name + "/config.pbtxt"), text + "}");
        Fakes.write(root.resolve(name + "/1/.keep"), "");
    }

    @Test
    void anEnsembleThatNeedsAnAbsentModelIsAWarning() {
        Fakes.write(root.resolve("good/1/model.onnx"), "x");
        ensemble("both", "good", "gone");
        assertThat(validator.validate(root)).singleElement().satisfies(p -> {
            assertThat(p.message())
                    .isEqualTo("ensemble 'both' contains models that are not available or ambiguous: gone");
            assertThat(p.isError()).isFalse();
        });
    }

    @Test
    void ensemblesThatAreMadeOfEachOtherAreToldOnce() {
        Fakes.write(root.resolve("good/1/model.onnx"), "x");
        ensemble("a", "good", "b");
        ensemble("b", "c");
        ensemble("c", "a");
        ensemble("d", "c");
        assertThat(validator.validate(root))
                .extracting(Problem::message)
                .containsExactly("circular dependency between ensembles: a -> b -> c -> a");
    }

    @Test
    void anEnsembleOfEnsemblesIsNoCircle() {
        Fakes.write(root.resolve("good/1/model.onnx"), "x");
        ensemble("a", "b", "c");
        ensemble("b", "good");
        ensemble("c", "b", "good");
        assertThat(validator.validate(root)).isEmpty();
    }
}
