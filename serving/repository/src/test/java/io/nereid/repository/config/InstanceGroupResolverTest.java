// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.repository.Fakes;
import io.nereid.repository.RepositoryValidator;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class InstanceGroupResolverTest {
    private static final GpuInventory TWO = GpuInventory.assumed(2);

    @TempDir
    Path model;

    private record CapableBackend() implements Backend {
        @Override
        public String name() {
            return "gpu";
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.gpu");
        }

        @Override
        public @Nullable String gpuUnavailableReason() {
            return null;
        }

        @Override
        public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
            throw new UnsupportedOperationException();
        }
    }

    private record OnlyGpuBackend(@Nullable String gpuUnavailableReason) implements Backend {
        @Override
        public String name() {
            return "gpu";
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.gpu");
        }

        @Override
        public boolean needsGpu() {
            return true;
        }

        @Override
        public void check(ModelConfig config) {
            if (config.inputs().isEmpty()) {
                throw ServingException.invalidArgument("no inputs");
            }
        }

        @Override
        public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
            throw new UnsupportedOperationException();
        }
    }

    private ModelConfig config(String text) {
        ProblemCollector problems = new ProblemCollector();
        ModelConfig config = ModelConfigReader.read(
                        model.resolve("config.pbtxt"), text, model, "m", true, GpuInventory.UNCHECKED, problems)
                .config();
        assertThat(problems.list()).isEmpty();
        return config;
    }

    private static List<String> names(ModelConfig config) {
        return config.instanceGroups().stream()
                .flatMap(g -> IntStream.range(0, g.instances()).mapToObj(g::instanceName))
                .toList();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                " | m_0_gpu0 m_0_gpu1",
                "{ } | m_0_0_gpu0 m_0_0_gpu1",
                "{ kind: KIND_AUTO count: 2 gpus: 1 } | m_0_0_gpu1 m_0_1_gpu1",
                "{ kind: KIND_GPU count: 2 } | m_0_0_gpu0 m_0_0_gpu1 m_0_1_gpu0 m_0_1_gpu1",
                "{ kind: KIND_GPU gpus: [ 1, 0 ] }, { kind: KIND_CPU count: 2 } | m_0_0_gpu1 m_0_0_gpu0 m_1_0 m_1_1",
                "{ kind: KIND_MODEL name: 'own' } | own_0",
            })
    void groupsAreOnTheGpusThatTheyName(@Nullable String groups, String names) {
        ModelConfig given = config(groups == null ? "" : "instance_group [ " + groups + " ]");
        ModelConfig placed = InstanceGroupResolver.resolve(given, new CapableBackend(), TWO);
        assertThat(names(placed)).containsExactly(names.split(" "));
        assertThat(placed.instances()).isEqualTo(names.split(" ").length);
        // What a client gets as the configuration is read as the same configuration.
        ProblemCollector problems = new ProblemCollector();
        ModelConfigReader.check(placed, model, TWO, problems);
        assertThat(problems.list()).isEmpty();
        Map<String, Object> document = ModelConfigDocument.of(placed);
        assertThat(document.toString())
                .contains("KIND_" + placed.instanceGroups().get(0).kind());
    }

    @Test
    void withoutAGpuOrABackendForItAutomaticGroupsAreOnProcessors() {
        ModelConfig given = config("instance_group { count: 3 }");
        for (ModelConfig placed : List.of(
                InstanceGroupResolver.resolve(given, new CapableBackend(), GpuInventory.NONE),
                InstanceGroupResolver.resolve(given, new CapableBackend(), GpuInventory.assumed(2, 5, 2)),
                InstanceGroupResolver.resolve(given, Fakes.ONNX, TWO))) {
            assertThat(placed.instanceGroups()).hasSize(1);
            assertThat(placed.instanceGroups().get(0).kind()).isEqualTo(InstanceGroup.Kind.CPU);
            assertThat(placed.instances()).isEqualTo(3);
        }
        ModelConfig none = config("");
        assertThat(InstanceGroupResolver.resolve(none, Fakes.ONNX, TWO).instanceGroups())
                .isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "gpu | 0 | kind: KIND_GPU | has kind KIND_GPU but no GPUs are available",
                "gpu | 2 | kind: KIND_GPU gpus: 2 | specifies invalid or unsupported gpu id 2. GPUs with at least the"
                        + " minimum required CUDA compute compatibility of 6.0 are: 0 1",
                "cpu | 2 | kind: KIND_GPU | has kind KIND_GPU but backend 'onnxruntime' cannot run on a GPU: its"
                        + " library computes on processors only",
                "cpu | 2 | gpus: 0 | has kind KIND_CPU but specifies one or more GPUs; backend 'onnxruntime': its"
                        + " library computes on processors only",
                "gpu | -1 | kind: KIND_GPU | has kind KIND_GPU but server does not support GPUs",
            })
    void whatCannotBeThereIsRefusedByName(String backend, int gpus, String group, String message) {
        ModelConfig given = config("instance_group { " + group + " }");
        assertThatThrownBy(() -> InstanceGroupResolver.resolve(
                        given,
                        backend.equals("gpu") ? new CapableBackend() : Fakes.ONNX,
                        gpus < 0 ? GpuInventory.NONE : GpuInventory.assumed(gpus)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).isNotBlank())
                .hasMessage("instance group m_0 of model m " + message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                " | -1 | model m: backend 'gpu' runs on GPUs only, and server does not support GPUs",
                "{ } | 0 | model m: backend 'gpu' runs on GPUs only, and no GPUs are available",
                "{ }, { kind: KIND_CPU } | 2 | instance group m_1 of model m has kind KIND_CPU but backend 'gpu' runs on"
                        + " GPUs only",
                "{ kind: KIND_MODEL } | -1 | instance group m_0 of model m has kind KIND_MODEL but backend 'gpu' runs on"
                        + " GPUs only",
            })
    void aModelForGpusAloneHasNoInstanceOnProcessors(@Nullable String groups, int gpus, String message) {
        ModelConfig given = config(groups == null ? "" : "instance_group [ " + groups + " ]");
        assertThatThrownBy(() -> InstanceGroupResolver.resolve(
                        given, new OnlyGpuBackend(null), gpus < 0 ? GpuInventory.NONE : GpuInventory.assumed(gpus)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).isNotBlank())
                .hasMessage(message);
    }

    @Test
    void aBackendForGpusAloneThatCannotUseThemSaysWhy() {
        assertThatThrownBy(() -> InstanceGroupResolver.resolve(config(""), new OnlyGpuBackend("it lacks a part"), TWO))
                .hasMessage("model m: backend 'gpu' runs on GPUs only, and it lacks a part");
        assertThat(names(InstanceGroupResolver.resolve(config(""), new OnlyGpuBackend(null), TWO)))
                .containsExactly("m_0_gpu0", "m_0_gpu1");
    }

    @Test
    void theFileIsThatOfTheComputeCapability() {
        ModelConfig given = config(
                "default_model_filename: 'any' cc_model_filenames { key: '8.0' value: 'a100' } instance_group { }");
        Backend backend = new CapableBackend();
        assertThat(InstanceGroupResolver.resolve(given, backend, TWO).modelFile())
                .isEqualTo("a100");
        assertThat(InstanceGroupResolver.resolve(given, backend, GpuInventory.assumed(1, 9, 0))
                        .modelFile())
                .isEqualTo("any");
        assertThat(InstanceGroupResolver.resolve(given, backend, GpuInventory.NONE)
                        .modelFile())
                .isEqualTo("any");
        ModelConfig both = given.toBuilder()
                .instanceGroups(List.of(
                        InstanceGroup.cpu("c", 1),
                        InstanceGroup.cpu("g", 1).placed(InstanceGroup.Kind.GPU, 1, List.of(0))))
                .build();
        assertThatThrownBy(() -> InstanceGroupResolver.resolve(both, backend, TWO))
                .hasMessageContaining("capability 8.0")
                .hasMessageContaining("[any, a100]");
    }

    @Test
    void aRepositoryIsValidatedForGpusThatAreNotThere() throws IOException {
        Path directory = Files.createDirectories(model.resolve("m/1")).getParent();
        Files.writeString(directory.resolve("1/model.gpu"), "weights");
        Files.writeString(directory.resolve("config.pbtxt"), "\ninstance_group { kind: KIND_GPU gpus: [ 0, 3 ] }");
        Backend backend = new CapableBackend();
        assertThat(new RepositoryValidator(List.of(backend), GpuInventory.assumed(4)).validate(model))
                .isEmpty();
        assertThat(new RepositoryValidator(List.of(backend), TWO).validate(model))
                .singleElement()
                .satisfies(p -> {
                    assertThat(p.line()).isEqualTo(2);
                    assertThat(p.message()).contains("unsupported gpu id 3");
                });
        assertThat(new RepositoryValidator(List.of(backend)).validate(model))
                .singleElement()
                .satisfies(p -> assertThat(p.message()).contains("server does not support GPUs"));
        // What the backend itself has to say, which it can without loading the model.
        Files.writeString(directory.resolve("config.pbtxt"), "");
        assertThat(new RepositoryValidator(List.of(new OnlyGpuBackend(null)), TWO).validate(model))
                .singleElement()
                .satisfies(p -> assertThat(p.message()).isEqualTo("no inputs"));
    }
}
