// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.backend.Backend;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BackendPreparationTest {
    private static final List<Backend> BACKENDS = InstalledPlugins.load().backends();

    @TempDir
    private Path root;

    @Test
    void onlyBackendsWhoseFilesAreThereAreNeeded() throws IOException {
        Files.createDirectories(root.resolve("a/1"));
        Files.createFile(root.resolve("a/1/model.onnx"));
        Files.createFile(root.resolve("readme.txt"));
        assertThat(needed(root)).containsExactly("onnxruntime");
    }

    @Test
    void filesOfTheRootAndOfAModelsDirectoryCount() throws IOException {
        Files.createFile(root.resolve("model.onnx"));
        Files.createDirectories(root.resolve("words"));
        Files.createFile(root.resolve("words/tokenizer.json"));
        assertThat(needed(root)).containsExactlyInAnyOrder("onnxruntime", "tokenizer");
    }

    @Test
    void aRootThatIsAFileOrMissingNeedsNone() throws IOException {
        Path file = Files.createFile(root.resolve("other.bin"));
        assertThat(needed(file)).isEmpty();
        assertThat(needed(root.resolve("missing"))).isEmpty();
    }

    private static List<String> needed(Path directory) {
        return BackendPreparation.needed(List.of(directory), BACKENDS).stream()
                .map(Backend::name)
                .toList();
    }
}
