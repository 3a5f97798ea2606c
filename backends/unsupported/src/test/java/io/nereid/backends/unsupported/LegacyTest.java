// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Unsupported formats are rejected with the name of the format and a remedy. */
class LegacyTest {
    @TempDir
    Path directory;

    private Path version = Path.of("");

    @BeforeEach
    void layOut() throws IOException {
        version = Files.createDirectories(directory.resolve("m").resolve("1"));
    }

    private Path put(String name, String content) throws IOException {
        return Files.write(version.resolve(name), content.getBytes(StandardCharsets.ISO_8859_1));
    }

    private ServingException rejected(Backend backend, String modelFile) {
        ModelConfig config = ModelConfig.builder("m").modelFile(modelFile).build();
        ModelLocation source = new ModelLocation(new ServableId("m", 1), directory.resolve("m"), version);
        BackendContext context = new BackendContext(1, directory, Map.of());
        return Objects.requireNonNull(catchThrowableOfType(
                ServingException.class,
                () -> backend.load(source, config, context).close()));
    }

    @Test
    void theServiceLoaderFindsIt() {
        List<String> names = ServiceLoader.load(Backend.class).stream()
                .map(p -> p.get().name())
                .sorted()
                .toList();
        assertThat(names).contains("keras");
    }

    @Test
    void anOnnxModelBesideIsPointedOut() throws IOException {
        put("model.keras", "PK");
        put("model.onnx", "onnx");
        assertThat(rejected(new KerasBackend(), "").remedy()).contains("backend: \"onnxruntime\"'");
    }

    @Test
    void filesThatAreNoModelsAreCalledSo() throws IOException {
        put("model.keras", "");
        assertThat(rejected(new KerasBackend(), "").getMessage()).contains("empty (0 bytes)");
        put("model.keras", "version https://git-lfs.github.com/spec/v1\n");
        ServingException e = rejected(new KerasBackend(), "");
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("Git LFS pointer");
    }

    @Test
    void aBackendChosenForNothingSaysWhatItLooksFor() {
        ServingException e = rejected(new KerasBackend(), "");
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("does not contain any of model.keras");
        assertThat(rejected(new KerasBackend(), "../../x").getMessage()).contains("does not contain any of");
    }

    private void archive(String name, String... entries) throws IOException {
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(version.resolve(name)))) {
            for (String entry : entries) {
                zip.putNextEntry(new ZipEntry(entry));
                zip.write('x');
            }
        }
    }

    @Test
    void exportedProgramsNameTheCommandThatConvertsThem() throws IOException {
        Path file = version.toAbsolutePath().normalize().resolve("model.pt2");
        String command = "python3 -c \"import torch; torch.onnx.export(torch.export.load('" + file + "'), f='"
                + file.resolveSibling("model.onnx") + "', dynamo=True)\"";
        for (String[] entries : List.of(
                new String[] {"model/archive_format", "model/models/model.json", "model/data/weights/weight_0"},
                new String[] {"archive_format", "models/other.json"},
                new String[] {"version", "serialized_exported_program.json", "serialized_state_dict.pt"})) {
            archive("model.pt2", entries);
            ServingException e = rejected(new TorchExportBackend(), "");
            assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
            assertThat(e.getMessage()).contains("'model.pt2' is a program of torch.export (ExportedProgram)");
            assertThat(e.remedy()).startsWith(command).contains("onnxscript").contains("remove 'model.pt2'");
        }
        archive("model.pt2", "m/models/m.json", "m/data/aotinductor/m/c0de.wrapper.so");
        ServingException both = rejected(new TorchExportBackend(), "");
        assertThat(both.getMessage())
                .contains("native code ('c0de.wrapper.so')")
                .contains("ExportedProgram");
        assertThat(both.remedy()).startsWith(command);
    }

    @Test
    void packagesOfNativeCodeAreRefusedWithTheReason() throws IOException {
        for (String name : List.of("data/aotinductor/model/c0de.so", "m/data/aotinductor/model/c0de.so")) {
            archive("model.pt2", "archive_format", "version", name);
            ServingException e = rejected(new TorchExportBackend(), "");
            assertThat(e.getMessage())
                    .contains(
                            "'model.pt2' is a package of AOTInductor: native code ('c0de.so') that was compiled for one"
                                    + " kind of machine, which this server does not run");
            assertThat(e.remedy())
                    .contains("torch.onnx.export(model, example_inputs")
                    .contains("torch.jit.trace");
        }
    }

    @Test
    void otherArchivesUnderTheNameOfAnExportedProgramAreCalledSo() throws IOException {
        archive("model.pt2", "m/data.pkl", "m/constants.pkl", "m/code/__torch__.py");
        ServingException e = rejected(new TorchExportBackend(), "");
        assertThat(e.getMessage()).contains("TorchScript archive under the name of another format");
        assertThat(e.remedy()).startsWith("mv ").endsWith("model.pt'");
        archive("model.pt2", "a/b/models/m.json", "readme");
        assertThat(rejected(new TorchExportBackend(), "").getMessage())
                .contains("does not hold a program or a package");
        put("model.pt2", "text");
        assertThat(rejected(new TorchExportBackend(), "").getMessage())
                .contains("does not hold a program or a package");
    }

    @Test
    void modelsOfKerasAreExportedByKeras() throws IOException {
        Path file = put("digits.keras", "PK\3\4");
        ServingException e = rejected(new KerasBackend(), "");
        assertThat(e.getMessage()).contains("'digits.keras' is a Keras model in the format .keras");
        assertThat(e.remedy())
                .contains("load_model('" + file.toAbsolutePath() + "').export('")
                .contains("model.savedmodel");
        Files.delete(file);
        put("old.h5", "\u0089HDF\r\n");
        assertThat(rejected(new KerasBackend(), "").getMessage()).contains("is an HDF5 file");
    }
}
