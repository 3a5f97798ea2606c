// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.loading;

import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.Servable;

/**
 * A version that an embedding application has loaded, and unloads itself. Thread-safe, as the application's servable
 * is.
 */
final class EmbeddedServable extends EngineServable {
    private final Servable servable;

    /** Wraps a servable. It has only the default signature, with the shapes of its configuration. */
    EmbeddedServable(Servable servable, ServableFactory servables) {
        super(
                servable.metadata().id(),
                servables.completed(servable.config()),
                servables.statistics(servable.metadata().id(), servable.config()));
        this.servable = servable;
    }

    @Override
    public long memoryBytes() {
        return servable.memoryBytes();
    }

    @Override
    public void submit(InferenceJob job) {
        servable.submit(job);
    }

    @Override
    public int queued() {
        return 0;
    }

    @Override
    public void unload() {}
}
