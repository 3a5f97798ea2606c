// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** ONNX Runtime's GPU build as a plugin, by a jar of its layout, and where NVIDIA's libraries are looked for. */
class GpuBuildTest {
    private static final List<String> LIBRARIES = List.of(
            "libonnxruntime.so",
            "libonnxruntime4j_jni.so",
            "libonnxruntime_providers_cuda.so",
            "libonnxruntime_providers_shared.so",
            "libonnxruntime_providers_tensorrt.so");

    @TempDir
    Path root;

    private Path plugin() throws IOException {
        Path plugin = Files.createDirectories(root.resolve("plugins/onnxruntime-cuda"));
        try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(plugin.resolve(OrtLibrary.PLUGIN_JAR)))) {
            for (String library : LIBRARIES) {
                jar.putNextEntry(new JarEntry("ai/onnxruntime/native/" + OrtLibrary.platform() + "/" + library));
                jar.write(library.getBytes(StandardCharsets.UTF_8));
                jar.closeEntry();
            }
        }
        return plugin;
    }

    @Test
    void theLibrariesOfThePluginReplaceThoseOfTheClassPath() throws Exception {
        Assumptions.assumeTrue(
                OrtLibrary.platform().startsWith("linux"), "NOT TESTED: libraries have other names on this system");
        OrtLibrary library = new OrtLibrary(root, plugin());
        assertThat(library.forGpus()).isTrue();
        assertThat(new OnnxBackend(library).gpuUnavailableReason()).isNull();
        Path directory = library.directory();
        assertThat(directory).isNotNull().hasParent(root.resolve("nereid"));
        assertThat(directory.getFileName().toString()).startsWith("onnxruntime_gpu-" + OrtLibrary.VERSION + "-");
        for (String name : LIBRARIES) {
            assertThat(directory.resolve(name)).hasContent(name);
        }
        Files.writeString(directory.resolve(LIBRARIES.get(2)), "damaged");
        assertThat(library.directory()).isEqualTo(directory);
        assertThat(directory.resolve(LIBRARIES.get(2))).hasContent(LIBRARIES.get(2));

        OrtLibrary ours = new OrtLibrary(root);
        assertThat(ours.forGpus()).isFalse();
        assertThat(new OnnxBackend(ours).gpuUnavailableReason()).contains("the plugin onnxruntime-cuda");
    }

    @Test
    void aPluginThatCannotBeUsedIsNotReplacedByTheClassPath() throws Exception {
        Path plugin = plugin();
        Path open = Files.createDirectories(root.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThatThrownBy(() -> new OrtLibrary(open, plugin).directory())
                .hasMessageContaining("cannot be unpacked in " + open);
        Files.delete(plugin.resolve(OrtLibrary.PLUGIN_JAR));
        assertThatThrownBy(() -> new OrtLibrary(root, plugin).directory())
                .hasMessageContaining("expected: " + OrtLibrary.PLUGIN_JAR)
                .hasMessageContaining("nereid plugins install onnxruntime-cuda --force");
        // As in an image, where they are files already.
        Path unpacked = Files.createDirectories(plugin.resolve("native"));
        Files.writeString(unpacked.resolve(System.mapLibraryName("onnxruntime")), "");
        assertThat(new OrtLibrary(open, plugin).directory()).isEqualTo(unpacked);
    }

    @Test
    void librariesAreLookedForInTheEnvironmentThenOfCudaThenOfPyPi() throws Exception {
        Path virtual = root.resolve("venv");
        List<Path> expected = List.of(
                root.resolve("given"),
                root.resolve("usr/local/cuda-12/lib64"),
                root.resolve("usr/local/cuda/lib64"),
                virtual.resolve("lib/python3.12/site-packages/nvidia/cublas/lib"),
                virtual.resolve("lib/python3.12/site-packages/tensorrt_libs"),
                root.resolve("home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib"),
                root.resolve("usr/local/lib/python3.11/dist-packages/nvidia/curand/lib"),
                root.resolve("usr/lib64"));
        for (Path folder : expected) {
            Files.createDirectories(folder);
        }
        Map<String, String> environment = Map.of(
                "LD_LIBRARY_PATH",
                root.resolve("given") + ":relative::" + root.resolve("absent"),
                "VIRTUAL_ENV",
                virtual.toString());
        assertThat(GpuLibraries.folders(root, root.resolve("home").toString(), environment::get))
                .isEqualTo(expected);
        assertThat(GpuLibraries.folders(root, "?", name -> null))
                .containsExactlyElementsOf(
                        Stream.of(1, 2, 6, 7).map(expected::get).toList());
    }

    @Test
    void theMessageNamesWhatIsMissing() {
        ServingException failure =
                GpuLibraries.failure("m", "CUDA", "libcublas.so.12 (nvidia-cublas-cu12) not found", true);
        assertThat(failure.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(failure.describe())
                .contains("model 'm' needs ONNX Runtime's execution provider CUDA")
                .contains("libcublas.so.12 (nvidia-cublas-cu12) not found")
                .contains("LD_LIBRARY_PATH")
                .contains("nereid.gpu_fallback");
        assertThat(GpuLibraries.failure("m", "TensorRT", "absent", false).describe())
                .endsWith("add its folder to LD_LIBRARY_PATH)");
    }

    @Test
    void anInstanceShrinksTheArenasThatItHas() {
        OrtSettings settings = OrtSettings.read(
                Map.of("memory.enable_memory_arena_shrinkage", "cpu:0;gpu:0;gpu:1"), 0, 2, Map.of(), true);
        assertThat(settings.shrinkage(1)).isEqualTo("cpu:0;gpu:1");
        assertThat(settings.shrinkage(-1)).isEqualTo("cpu:0");
        assertThat(OrtSettings.read(Map.of(), 2).shrinkage(0)).isEmpty();
    }
}
