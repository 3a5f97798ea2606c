// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;

/** A servable that records whether it has been unloaded. Thread-safe. */
public final class FakeServable implements Servable {
    final String fingerprint;
    public volatile boolean unloaded;
    private final ServableId id;
    private final long memory;

    public FakeServable(ServableId id, String fingerprint, long memory) {
        this.id = id;
        this.fingerprint = fingerprint;
        this.memory = memory;
    }

    @Override
    public ModelMetadata metadata() {
        return new ModelMetadata(id, "fake", List.of(), List.of(), 0, Map.of());
    }

    @Override
    public ModelConfig config() {
        return ModelConfig.unspecified(id.model());
    }

    @Override
    public long memoryBytes() {
        return memory;
    }

    @Override
    public void submit(InferenceJob job) {
        throw new UnsupportedOperationException("not in these tests");
    }
}
