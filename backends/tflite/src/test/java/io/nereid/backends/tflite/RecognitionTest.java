// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Recognition and validation of files without TensorFlow Lite's library. */
class RecognitionTest {
    @TempDir
    Path directory;

    @Test
    void modelsAreRecognisedByTheirLetters() throws Exception {
        TfliteBackend backend = new TfliteBackend();
        assertThat(backend.recognises(Models.root().resolve("several/1/model.tflite")))
                .isTrue();
        assertThat(backend.recognises(Files.writeString(directory.resolve("notes.tflite"), "some notes")))
                .isFalse();
        assertThat(backend.recognises(directory)).isFalse();
        assertThat(backend.recognises(directory.resolve("absent.tflite"))).isFalse();
    }

    @Test
    void operatorsOfTensorFlowItselfAreRefusedByName() {
        Path file = Models.root().resolve("flex/1/model.tflite");
        assertThatThrownBy(() -> FlatBufferModelReader.check("m", file, Models.bytes("models/flex/1/model.tflite")))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe()).contains("FlexAsString").contains("SELECT_TF_OPS"));
        FlatBufferModelReader.check("m", file, Models.bytes("models/several/1/model.tflite"));
    }

    @Test
    void otherFilesAreRefused() {
        assertThatThrownBy(() -> FlatBufferModelReader.check("m", directory, new byte[100]))
                .hasMessageContaining("not a TensorFlow Lite model");
        byte[] beyond = new byte[100];
        System.arraycopy(new byte[] {'T', 'F', 'L', '3'}, 0, beyond, 4, 4);
        beyond[0] = 127;
        assertThatThrownBy(() -> FlatBufferModelReader.check("m", directory, beyond))
                .hasMessageContaining("damaged");
    }

    @Test
    void settingsAreHeardOrRefusedByName() {
        assertThat(LiteSettings.read(Map.of("num_threads", "3"), Map.of("num_threads", "2"))
                        .threads())
                .isEqualTo(3);
        assertThat(LiteSettings.read(Map.of(), Map.of("default-max-batch-size", "0"))
                        .defaultMaxBatchSize())
                .isZero();
        assertThat(LiteSettings.read(Map.of(), Map.of()).xnnpack()).isTrue();
        assertThat(LiteSettings.read(Map.of(), Map.of("xnnpack", "off")).xnnpack())
                .isFalse();
        assertThat(LiteSettings.read(Map.of("xnnpack", "on"), Map.of("xnnpack", "off"))
                        .xnnpack())
                .isTrue();
        assertThatThrownBy(() -> LiteSettings.read(Map.of("xnnpack", "false"), Map.of()))
                .hasMessageContaining("'xnnpack' is 'false' (expected: on or off)");
        assertThatThrownBy(() -> LiteSettings.read(Map.of(), Map.of("threads", "2")))
                .hasMessageContaining("unknown setting 'threads'");
        assertThatThrownBy(() -> LiteSettings.read(Map.of("num_threads", "0"), Map.of()))
                .hasMessageContaining("'num_threads' is '0'");
    }
}
