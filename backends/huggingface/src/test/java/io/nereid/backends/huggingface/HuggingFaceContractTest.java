// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

class HuggingFaceContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return EncoderFolders.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return EncoderFolders.location(directory, "bert-classify");
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        ModelLocation source = EncoderFolders.location(directory.resolve("broken"), "bert-classify");
        Path weights = source.versionDirectory().resolve("model.safetensors");
        try {
            byte[] whole = Files.readAllBytes(weights);
            Files.write(weights, Arrays.copyOf(whole, whole.length / 2));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return source;
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        return List.of(EncoderFolders.texts(
                "TEXT", List.of("a cat ".repeat(1 + seed % 5), "the man sat in the park .")));
    }
}
