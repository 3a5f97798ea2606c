// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.WideRuns;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When ONNX models have wide runs, and what they answer; WideRunsTest has the rule. */
class OnnxWideRunsTest {
    @TempDir
    Path directory;

    private OnnxSession session() throws OrtException {
        ModelLocation source = new Fixtures(directory).source("identity_fp32");
        OrtRuntime runtime = OrtRuntime.start(OrtLibrary.ofUser());
        assertThat(runtime.environment()).isSameAs(OrtEnvironment.getEnvironment());
        return OnnxSession.open(
                "m",
                runtime,
                source.versionDirectory().resolve("model.onnx"),
                OrtSettings.read(Map.of(), 2),
                ExecutionProviders.CPU);
    }

    @Test
    void aViewOutlivesTheSessionsClose() throws Exception {
        OnnxSession session = session();
        session.hold();
        session.drop();
        assertThat(session.session().getNumInputs()).isEqualTo(1);
        session.drop();
    }

    @Test
    void configuredThreadsAndScarceMemoryWin() throws Exception {
        assertThat(choice(Map.of(), 2, true)).isNotNull();
        assertThat(choice(Map.of("intra_op_thread_count", "1"), 2, true)).isNull();
        assertThat(choice(Map.of("intra_op_thread_count", "2"), 2, true)).isNull();
        assertThat(choice(Map.of("execution_mode", "1"), 2, true)).isNull();
        assertThat(choice(Map.of(), 1, true)).isNull();
        assertThat(choice(Map.of(), 2, false)).isNull();
    }

    private @Nullable WideRuns<OnnxSession> choice(Map<String, String> parameters, int cores, boolean spareMemory)
            throws Exception {
        ModelLocation source = new Fixtures(directory).source("identity_fp32");
        OnnxFile file = OnnxFile.find(source, "");
        return OnnxBackend.wideRuns(
                "m",
                OrtRuntime.start(OrtLibrary.ofUser()),
                file,
                OrtSettings.read(parameters, cores),
                ExecutionProviders.CPU,
                new BackendContext(cores, directory, Map.of()).withSpareMemory(spareMemory));
    }

    @Test
    void aReplacedFileHasAnotherState() throws Exception {
        ModelLocation source = new Fixtures(directory).source("identity_fp32");
        OnnxFile file = OnnxFile.find(source, "");
        String before = file.state();
        assertThat(file.state()).isEqualTo(before);
        Path copy = directory.resolve("copy");
        Files.write(copy, Fixtures.bytes("identity_fp32"));
        Files.setLastModifiedTime(copy, Files.getLastModifiedTime(file.path()));
        Files.move(copy, file.path(), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        assertThat(file.state()).isNotEqualTo(before);
    }

    @Test
    void answersAreRightWhateverTheMachineDoes() {
        Fixtures fixtures = new Fixtures(directory);
        try (BackendModel model = Fixtures.BACKEND.load(
                fixtures.source("identity_fp32"),
                ModelConfig.unspecified("identity_fp32"),
                fixtures.context(Map.of()).withSpareMemory(true))) {
            String input = model.config().inputs().get(0).name();
            String output = model.config().outputs().get(0).name();
            try (ModelInstance instance = model.newInstance();
                    Tensor tensor = Tensor.allocate(input, DataType.FP32, Shape.of(1, 4))) {
                tensor.buffer().putFloat(8, 2.5f);
                for (int idle = 0; idle < 100; idle++) {
                    List<Tensor> outputs = instance.run(List.of(tensor), List.of(output), idle % 3);
                    assertThat(outputs.get(0).buffer().getFloat(8)).isEqualTo(2.5f);
                    Tensor.closeAll(outputs);
                }
            }
        }
    }
}
