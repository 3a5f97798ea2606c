// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.backend.IoTraits;
import io.nereid.spi.ModelConfig;

/** A loaded model that all its invocations share. Immutable. */
final class CatboostModel implements BackendModel {
    /** Steps through trees that take a few tens of microseconds at most. */
    private static final long TINY = 10_000;

    private final Parsed parsed;
    private final ModelConfig config;
    private final IoTraits traits;

    CatboostModel(Parsed parsed, ModelConfig config) {
        this.parsed = parsed;
        this.config = config;
        long steps =
                parsed.ensemble().splitSlots().length + 8L * parsed.ensemble().slots();
        this.traits = new IoTraits(
                1, true, config.batched() && steps * Math.max(1, config.maxBatchSize()) <= TINY, false, true);
    }

    Parsed parsed() {
        return parsed;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public IoTraits traits() {
        return traits;
    }

    @Override
    public Invocation newInvocation() {
        return new CatboostInvocation(this);
    }

    /** Everything lies in the heap. */
    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public void close() {}
}
