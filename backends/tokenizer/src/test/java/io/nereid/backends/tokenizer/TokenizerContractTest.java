// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.List;

class TokenizerContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return Texts.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Texts.source(directory, "words", Texts.json());
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        return Texts.source(directory, "broken", "{\"model\": 7}");
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        return List.of(Texts.texts("TEXT", Shape.of(2, 1), "a man ".repeat(seed % 7), "the cats sleep"));
    }
}
