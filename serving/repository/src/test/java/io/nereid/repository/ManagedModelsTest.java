// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.repository.Fakes.FakeBackend;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ManagedModelsTest {
    private static final FakeBackend SKLEARN =
            new FakeBackend("sklearn", List.of(), List.of("model.pkl", "model.joblib"));
    private static final Backend ON_GPUS = new Backend() {
        @Override
        public String name() {
            return "on-gpus";
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.net");
        }

        @Override
        public @Nullable String gpuUnavailableReason() {
            return null;
        }

        @Override
        public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            throw new AssertionError("not called in these tests");
        }
    };

    private static final List<String> SKLEARN_FILES = List.of("*.joblib", "*.pkl", "*.pickle");
    private static final String NAME = "default/iris-predictor-00001";

    @TempDir
    Path disk;

    private final Recorder target = new Recorder();
    private final ManagedModels placed = new ManagedModels(List.of(Fakes.ONNX, SKLEARN));

    @BeforeEach
    void start() {
        placed.loaders(Fakes.FACTORY);
        placed.start(target);
    }

    private ManagedModel sklearn() {
        return new ManagedModel(NAME, disk, false, "sklearn", "", Map.of(), 1, null, 0, "", SKLEARN_FILES);
    }

    @Test
    void theOnlyCandidateIsTheModelWhateverItIsCalled() {
        Fakes.write(disk.resolve("iris.joblib"), "x");
        Fakes.write(disk.resolve("README.md"), "x");

        Map<String, List<String>> names = placed.place(List.of(sklearn()));

        assertThat(names).isEqualTo(Map.of(NAME, List.of(NAME)));
        assertThat(target.last(NAME).loadable()).containsExactly(1L);
        assertThat(target.last(NAME).loader().config().modelFile()).isEqualTo("iris.joblib");
        assertThat(target.last(NAME).loader().config().backend()).isEqualTo("sklearn");
    }

    @Test
    void severalCandidatesAreRefusedWithTheirNames() {
        Fakes.write(disk.resolve("a.joblib"), "x");
        Fakes.write(disk.resolve("model.pkl"), "x");

        placed.place(List.of(sklearn()));

        assertThat(target.last(NAME).error())
                .contains("More than one model file is detected, Only one is allowed within model_dir")
                .contains("a.joblib")
                .contains("model.pkl");
    }

    @Test
    void noCandidateTellsWhatWasExpectedAndWhatIsThere() {
        Fakes.write(disk.resolve("notes.txt"), "x");

        placed.place(List.of(sklearn()));

        assertThat(target.last(NAME).error()).contains("*.joblib").contains("notes.txt");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "3/"})
    void anArchiveOfTorchExportGoesToTheBackendThatRejectsItWithTheReason(String version) {
        ManagedModels pytorch = new ManagedModels(List.of(
                new FakeBackend("pytorch", List.of("pytorch_libtorch"), List.of("model.pt")),
                new FakeBackend("torch_aoti", List.of("torch_aoti"), List.of("model.pt2"))));
        pytorch.loaders(Fakes.FACTORY);
        pytorch.start(target);
        Fakes.write(disk.resolve(version + "net.pt2"), "x");

        pytorch.place(
                List.of(new ManagedModel(NAME, disk, false, "pytorch", "", Map.of(), 1, null, 0, "", List.of("*.pt"))));

        assertThat(target.last(NAME).loader().config().backend()).isEqualTo("torch_aoti");
        assertThat(target.last(NAME).loader().config().modelFile()).isEqualTo("net.pt2");
    }

    @Test
    void numbersAreVersionsAndTheHighestIsServed() {
        Fakes.write(disk.resolve("1/model.joblib"), "x");
        Fakes.write(disk.resolve("00000012/model.joblib"), "x");

        placed.place(List.of(sklearn()));

        assertThat(target.last(NAME).loadable()).containsExactly(12L);
    }

    @Test
    void directoriesWithoutAModelFileBesideThemAreARepository() {
        Fakes.write(disk.resolve("a/model.joblib"), "x");
        Fakes.write(disk.resolve("b/model.joblib"), "x");

        Map<String, List<String>> names = placed.place(List.of(sklearn()));

        assertThat(names.get(NAME)).containsExactly(NAME + "/a", NAME + "/b");
        assertThat(target.last(NAME + "/b").loadable()).containsExactly(1L);
    }

    @Test
    void aTritonRepositoryIsAModelForEachDirectoryAndItsEnsemblesFindThem() {
        Fakes.write(disk.resolve("cifar/1/model.onnx"), "x");
        Fakes.write(disk.resolve("cifar/config.pbtxt"), "name: \"cifar\"\nplatform: \"onnxruntime_onnx\"");
        Fakes.write(disk.resolve("all/config.pbtxt"), """
            platform: "ensemble"
            input { name: "a" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "b" data_type: TYPE_FP32 dims: [ 1 ] }
            ensemble_scheduling { step { model_name: "cifar" model_version: -1
              input_map { key: "x" value: "a" } output_map { key: "y" value: "b" } } }
            """);
        Fakes.write(disk.resolve("all/1/.keep"), "");

        Map<String, List<String>> names =
                placed.place(List.of(new ManagedModel(NAME, disk, true, "", "", Map.of(), 1, null, 0, "", List.of())));

        assertThat(names.get(NAME)).containsExactlyInAnyOrder(NAME + "/cifar", NAME + "/all");
        assertThat(target.last(NAME + "/cifar").loadable()).containsExactly(1L);
        assertThat(target.last(NAME + "/all").loader().dependencies()).containsExactly(NAME + "/cifar");
    }

    @Test
    void anEmptyRepositoryFailsUnderItsOwnName() {
        placed.place(List.of(new ManagedModel(NAME, disk, true, "", "", Map.of(), 1, null, 0, "", List.of())));

        assertThat(target.last(NAME).error()).contains("no model in the repository");
    }

    @Test
    void anUnknownBackendIsToldWithThoseThereAre() {
        Fakes.write(disk.resolve("model.bin"), "x");

        placed.place(List.of(new ManagedModel(NAME, disk, false, "sklaern", "", Map.of(), 1, null, 0, "", List.of())));

        assertThat(target.last(NAME).error())
                .contains("unknown backend 'sklaern'")
                .contains("'sklearn'");
    }

    @Test
    void parametersInstancesAndBatchingGoIntoTheConfiguration() {
        Fakes.write(disk.resolve("model.joblib"), "x");
        DynamicBatching batching = new DynamicBatching(List.of(), Duration.ofMillis(5), false);

        placed.place(List.of(new ManagedModel(
                NAME,
                disk,
                false,
                "sklearn",
                "",
                Map.of("predict_fn", "predict_proba"),
                3,
                batching,
                32,
                "",
                SKLEARN_FILES)));

        var config = target.last(NAME).loader().config();
        assertThat(config.parameters()).containsEntry("predict_fn", "predict_proba");
        assertThat(config.instanceGroups()).hasSize(1);
        assertThat(config.instanceGroups().get(0).count()).isEqualTo(3);
        assertThat(config.batching()).isEqualTo(batching);
        assertThat(config.maxBatchSize()).isEqualTo(32);
    }

    @Test
    void anotherNumberOfInstancesIsEmittedUnderAnotherFingerprintAndTheRestIsLeftAlone() {
        Fakes.write(disk.resolve("model.joblib"), "x");
        ManagedModel other =
                new ManagedModel("default/other", disk, false, "sklearn", "", Map.of(), 1, null, 0, "", SKLEARN_FILES);
        placed.place(List.of(sklearn(), other));
        String before = target.last(NAME).loader().fingerprint();

        placed.place(List.of(sklearn().withInstances(2), other));

        assertThat(target.last(NAME).loader().fingerprint()).isNotEqualTo(before);
        assertThat(target.last(NAME).loader().config().instanceGroups().get(0).count())
                .isEqualTo(2);
        assertThat(target.count("default/other")).isEqualTo(1);
    }

    @Test
    void whatIsLeftOutIsNoLongerWanted() {
        Fakes.write(disk.resolve("model.joblib"), "x");
        placed.place(List.of(sklearn()));

        placed.place(List.of());

        assertThat(target.last(NAME).versions()).isEmpty();
    }

    @Test
    void aNameThatComesTwiceChangesNothing() {
        Fakes.write(disk.resolve("model.joblib"), "x");

        assertThatThrownBy(() -> placed.place(List.of(sklearn(), sklearn())))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("placed twice");
        assertThat(target.all).isEmpty();
    }

    @Test
    void aConfigurationUnderAnotherNameIsHonoured() {
        Fakes.write(disk.resolve("model.onnx"), "x");
        Fakes.write(disk.resolve("config.pbtxt"), "name: \"resnet\"\ninstance_group { count: 2 }");

        placed.place(List.of(ManagedModel.of(NAME, disk).withInstances(2)));

        assertThat(target.last(NAME).loader().config().instanceGroups().get(0).count())
                .isEqualTo(4);
        assertThat(target.last(NAME).loader().config().name()).isEqualTo(NAME);
    }

    @Test
    void groupsRunOnTheGpusThatAreTheModels() {
        ManagedModels source = new ManagedModels(List.of(ON_GPUS, SKLEARN));
        source.loaders(Fakes.FACTORY);
        source.start(target);
        Fakes.write(disk.resolve("a.net"), "x");
        ManagedModel model = new ManagedModel(
                        NAME, disk, false, "on-gpus", "", Map.of(), 1, null, 0, "", List.of("*.net"))
                .withGpus(List.of(1, 3));
        source.place(List.of(model));
        InstanceGroup group =
                target.last(NAME).loader().config().instanceGroups().get(0);
        assertThat(group.kind()).isEqualTo(InstanceGroup.Kind.GPU);
        assertThat(group.gpus()).containsExactly(1, 3);
        String before = target.last(NAME).loader().fingerprint();
        source.place(List.of(model.withGpus(List.of(0, 3))));
        assertThat(target.last(NAME).loader().fingerprint()).isNotEqualTo(before);

        Fakes.write(
                disk.resolve("config.pbtxt"),
                "instance_group [{ kind: KIND_GPU gpus: [1] }, { kind: KIND_CPU count: 2 }, { kind: KIND_AUTO }]");
        source.place(List.of());
        source.place(List.of(model));
        assertThat(target.last(NAME).loader().config().instanceGroups())
                .extracting(InstanceGroup::kind, InstanceGroup::gpus)
                .containsExactly(
                        tuple(InstanceGroup.Kind.GPU, List.of(3)),
                        tuple(InstanceGroup.Kind.CPU, List.of()),
                        tuple(InstanceGroup.Kind.GPU, List.of(1, 3)));
        source.place(List.of());
        source.place(List.of(model.withGpus(List.of(1))));
        assertThat(target.last(NAME).error())
                .contains("names GPU 1, and the limit gives the model 1 (expected: a number from 0 to 0)");

        // A backend that computes on processors does so with GPUs, too.
        Fakes.write(disk.resolve("other/iris.joblib"), "x");
        source.place(List.of(new ManagedModel(
                        NAME, disk.resolve("other"), false, "sklearn", "", Map.of(), 1, null, 0, "", SKLEARN_FILES)
                .withGpus(List.of(1))));
        assertThat(target.last(NAME).loader().config().instanceGroups().get(0).kind())
                .isEqualTo(InstanceGroup.Kind.AUTO);
    }

    @Test
    void aSingleFileIsAModel() {
        Path file = Fakes.write(disk.resolve("deep/net.onnx"), "x");

        placed.place(
                List.of(new ManagedModel(NAME, file, false, "onnxruntime", "", Map.of(), 1, null, 0, "", List.of())));

        assertThat(target.last(NAME).loader().config().modelFile()).isEqualTo("net.onnx");
    }
}
