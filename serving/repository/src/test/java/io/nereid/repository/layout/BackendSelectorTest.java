// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.repository.Fakes;
import io.nereid.repository.Fakes.FakeBackend;
import io.nereid.repository.layout.BackendSelector.Choice;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which backend, platform and file are selected for each property of a model. */
class BackendSelectorTest {
    private static final Path FILE = Path.of("config.pbtxt");

    /** Backends that name neither platforms nor files of their own. */
    private final BackendSelector bare = new BackendSelector(List.of(
            bare("tensorflow"),
            bare("tensorrt"),
            bare("onnxruntime"),
            bare("openvino"),
            bare("pytorch"),
            bare("torch_aoti"),
            bare("python"),
            bare("identity")));

    private final BackendSelector own = new BackendSelector(List.of(Fakes.ONNX, Fakes.IDENTITY));

    private static FakeBackend bare(String name) {
        return new FakeBackend(name, List.of(), List.of());
    }

    private static Choice choose(
            BackendSelector chooser, String platform, String backend, ProblemCollector problems, String... files) {
        ModelConfig config =
                ModelConfig.builder("m").platform(platform).backend(backend).build();
        Choice choice = chooser.choose(
                config,
                Stream.of(files).map(Path::of).toList(),
                FILE,
                SourcePosition.NONE,
                SourcePosition.NONE,
                problems);
        return choice == null ? new Choice(null, "", "") : choice;
    }

    @ParameterizedTest
    @CsvSource({
        "model.savedmodel, tensorflow_savedmodel, tensorflow",
        "model.graphdef, tensorflow_graphdef, tensorflow",
        "model.plan, tensorrt_plan, tensorrt",
        "model.onnx, onnxruntime_onnx, onnxruntime",
        "model.xml, '', openvino",
        "model.pt, pytorch_libtorch, pytorch",
        "model.pt2, torch_aoti, torch_aoti",
        "model.py, '', python"
    })
    void filesAreRecognised(String file, String platform, String backend) {
        ProblemCollector problems = new ProblemCollector();
        Choice choice = choose(bare, "", "", problems, "labels.txt", file);
        assertThat(problems.list()).isEmpty();
        assertThat(Objects.requireNonNull(choice.backend()).name()).isEqualTo(backend);
        assertThat(choice.platform()).isEqualTo(platform);
        assertThat(choice.modelFile()).isEqualTo(file);
    }

    @ParameterizedTest
    @CsvSource({
        "tensorflow_savedmodel, tensorflow",
        "tensorflow_graphdef, tensorflow",
        "tensorrt_plan, tensorrt",
        "onnxruntime_onnx, onnxruntime",
        "pytorch_libtorch, pytorch",
        "libtorch, pytorch",
        "torch_aoti, torch_aoti"
    })
    void platformsOfOldAloneStillMeanTheirBackend(String platform, String backend) {
        ProblemCollector problems = new ProblemCollector();
        Choice choice = choose(bare, platform, "", problems);
        assertThat(problems.list()).isEmpty();
        assertThat(Objects.requireNonNull(choice.backend()).name()).isEqualTo(backend);
        assertThat(choice.platform()).isEqualTo(platform.equals("libtorch") ? "pytorch_libtorch" : platform);
        assertThat(choose(bare, platform, backend, problems).backend()).isSameAs(choice.backend());
        assertThat(problems.list()).isEmpty();
    }

    /** Triton has packages of AOTInductor in the backend of TorchScript. */
    @Test
    void aPackageOfAotInductorMayNameThePytorchBackend() {
        ProblemCollector problems = new ProblemCollector();
        Choice choice = choose(bare, "torch_aoti", "pytorch", problems, "model.pt2");
        assertThat(problems.list()).isEmpty();
        assertThat(Objects.requireNonNull(choice.backend()).name()).isEqualTo("torch_aoti");
    }

    @ParameterizedTest
    @CsvSource({
        "tensorrt_plan, onnxruntime, true",
        "anything, onnxruntime, true",
        "onnxruntime_onnx, identity, true",
        "tensorrt_plan, identity, true",
        "ensemble, identity, true",
        "anything, identity, false"
    })
    void aPlatformMayNotBeAnotherBackends(String platform, String backend, boolean refused) {
        ProblemCollector problems = new ProblemCollector();
        Choice choice = choose(own, platform, backend, problems, "model.onnx");
        if (refused) {
            assertThat(problems.list().get(0).message())
                    .isEqualTo("unexpected 'platform' and 'backend' pair, got:" + platform + ", " + backend);
        } else {
            assertThat(problems.list()).isEmpty();
            assertThat(choice.platform()).isEqualTo(platform);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "tensorrt_plan, it needs the backend 'tensorrt'",
        "libtorch, it needs the backend 'pytorch'",
        "custom, 'this server has onnxruntime, identity'"
    })
    void anUnknownPlatformIsToldWhatItNeeds(String platform, String remedy) {
        ProblemCollector problems = new ProblemCollector();
        assertThat(choose(own, platform, "", problems).backend()).isNull();
        assertThat(problems.list().get(0).message()).isEqualTo("unexpected platform type '" + platform + "' for m");
        assertThat(problems.list().get(0).remedy()).contains(remedy);
    }

    /** A backend whose files begin with its name. */
    private record Reading(String name, List<String> defaultFiles) implements Backend {
        @Override
        public List<String> platforms() {
            return List.of(name);
        }

        @Override
        public boolean recognises(Path file) {
            try {
                return Files.readString(file).startsWith(name);
            } catch (IOException e) {
                return false;
            }
        }

        @Override
        public String unavailableReason() {
            return "a fake";
        }

        @Override
        public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            throw new UnsupportedOperationException();
        }
    }

    @Test
    void aNameThatBackendsShareMeansTheOneThatRecognisesTheFile(@TempDir Path directory) throws IOException {
        Reading first = new Reading("first", List.of("model.json", "model.bst"));
        Reading second = new Reading("second", List.of("model.txt", "model.bst"));
        BackendSelector chooser = new BackendSelector(List.of(first, second));
        Path shared = Files.writeString(directory.resolve("model.bst"), "second one");
        Path foreign = Files.writeString(directory.resolve("readme.txt"), "read me");
        Path own = Files.writeString(directory.resolve("mine.txt"), "second, too");
        Path damaged = Files.writeString(directory.resolve("model.txt"), "???");

        assertThat(chooser.byFile(shared)).isSameAs(second);
        assertThat(chooser.byFile(foreign)).isNull();
        assertThat(chooser.byFile(own)).isSameAs(second);
        assertThat(chooser.byFile(damaged)).isSameAs(second);
        assertThat(of(chooser, shared).backend()).isSameAs(second);
        assertThat(of(chooser, foreign, own).backend()).isSameAs(second);
        assertThat(of(chooser, foreign, own).modelFile()).isEqualTo("mine.txt");
        assertThat(of(chooser, foreign, damaged).backend()).isSameAs(second);
    }

    @Test
    void aDefaultFileWithTheContentOfAnotherBackendIsAModelOfThatOne(@TempDir Path directory) throws IOException {
        Reading first = new Reading("first", List.of("inference.json"));
        Reading second = new Reading("second", List.of("model.json"));
        BackendSelector chooser = new BackendSelector(List.of(first, second));
        Path file = Files.writeString(directory.resolve("inference.json"), "second one");
        assertThat(of(chooser, file).backend()).isSameAs(second);
        assertThat(of(chooser, file).modelFile()).isEqualTo("inference.json");
        Files.writeString(file, "???");
        assertThat(of(chooser, file).backend()).isSameAs(first);
    }

    private static Choice of(BackendSelector chooser, Path... files) {
        ProblemCollector problems = new ProblemCollector();
        Choice choice = chooser.choose(
                ModelConfig.unspecified("m"), List.of(files), FILE, SourcePosition.NONE, SourcePosition.NONE, problems);
        assertThat(problems.list()).isEmpty();
        return Objects.requireNonNull(choice);
    }
}
