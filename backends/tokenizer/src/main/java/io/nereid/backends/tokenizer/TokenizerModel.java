// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.spi.config.ModelConfig;

/** A loaded tokenizer, which all its instances share. Thread-safe. */
final class TokenizerModel implements BackendModel {
    private final ModelConfig config;
    private final NativeTokenizer tokenizer;
    private final PaddingStrategy padding;
    private final long bytes;

    /** @param bytes the file's size, an estimate of the memory that the vocabulary takes */
    TokenizerModel(ModelConfig config, NativeTokenizer tokenizer, PaddingStrategy padding, long bytes) {
        this.config = config;
        this.tokenizer = tokenizer;
        this.padding = padding;
        this.bytes = bytes;
    }

    NativeTokenizer tokenizer() {
        return tokenizer;
    }

    PaddingStrategy padding() {
        return padding;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    /** {@inheritDoc} Nothing is made for a number of rows. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelInstance newInstance() {
        return new TokenizerModelInstance(this);
    }

    @Override
    public long memoryBytes() {
        return bytes;
    }

    @Override
    public void close() {
        tokenizer.close();
    }
}
