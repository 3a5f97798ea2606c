// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.Conversion;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.python.PythonBackend;
import io.nereid.json.JsonValues;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The {@code model.py} of a folder that this server does not compute runs it. Needs {@code torch} and {@code transformers} in the
 * interpreter that {@code NEREID_TEST_PYTHON} names, else in {@code python3}.
 */
class ConvertedDecoderTest {
    private static final String TEXT = "the cat sat";

    @TempDir
    Path root;

    private static String python() {
        String named = System.getenv("NEREID_TEST_PYTHON");
        return named == null || named.isEmpty() ? "python3" : named;
    }

    private String output(String... command) throws IOException, InterruptedException {
        Path file = Files.createTempFile(root, "output", ".txt");
        Process process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .redirectOutput(file.toFile())
                .start();
        boolean ended = process.waitFor(120, TimeUnit.SECONDS);
        if (!ended) {
            process.destroyForcibly();
        }
        return ended && process.exitValue() == 0 ? Files.readString(file) : "";
    }

    private boolean hasTransformers() throws InterruptedException {
        try {
            return output(
                            python(),
                            "-c",
                            "from importlib.util import find_spec as f; print('yes' if f('torch') and f('transformers') else '')")
                    .strip()
                    .equals("yes");
        } catch (IOException e) {
            return false;
        }
    }

    @Test
    void aDecoderRunsByItsModelPy() throws IOException, InterruptedException {
        boolean there = hasTransformers();
        String missing = python() + " has no torch and transformers; name another interpreter with NEREID_TEST_PYTHON";
        if (!there) {
            System.getLogger(ConvertedDecoderTest.class.getName())
                    .log(System.Logger.Level.WARNING, "SKIPPED: " + missing);
        }
        assumeTrue(there, missing);
        Path version = Files.createDirectories(root.resolve("decoder/1"));
        String printed = output(python(), "src/test/models/decoder.py", version.toString(), TEXT);
        assertThat(printed).as("what transformers generates").contains("generated_text");

        Conversion conversion = new TransformersConverter().convert(version);
        for (Map.Entry<String, byte[]> file : conversion.files().entrySet()) {
            Files.write(version.resolve(file.getKey()), file.getValue());
        }
        ModelLocation location = new ModelLocation(new ServableId("decoder", 1), version.getParent(), version);
        BackendContext context =
                new BackendContext(1, Files.createDirectories(root.resolve("scratch")), Map.of("python", python()));
        byte[][] texts = {TEXT.getBytes(StandardCharsets.UTF_8)};
        try (BackendModel model = new PythonBackend()
                        .load(location, ModelConfig.builder("decoder").build(), context);
                ModelInstance instance = model.newInstance();
                RecordingModelRequest request = new RecordingModelRequest(
                        List.of(Tensor.ofBytes("TEXT", Shape.of(1), texts)), List.of("RESULT"))) {
            instance.execute(List.of(request));
            assertThat(request.failure()).isNull();
            ByteBuffer result = request.answers().get(0).outputs().get(0).buffer();
            byte[] document = new byte[result.getInt()];
            result.get(document);
            assertThat(JsonValues.read(document))
                    .isEqualTo(JsonValues.read(printed.strip().getBytes(StandardCharsets.UTF_8)));
        }
    }
}
