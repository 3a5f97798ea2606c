// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.util.concurrent.atomic.AtomicInteger;

/** Adapts a {@link JavaModel} to the backend API. Thread-safe. Closes the model and then its class loader. */
public final class LoadedJavaModel implements BackendModel {
    private final ModelConfig config;
    private final ModelTraits traits;
    private final JavaModel model;
    private final SimulatedDelays delays;
    private final Runnable afterClose;
    private final AtomicInteger instances = new AtomicInteger();

    public LoadedJavaModel(
            ModelConfig given,
            String platform,
            String backend,
            JavaModel model,
            SimulatedDelays delays,
            Runnable afterClose) {
        this.model = model;
        this.delays = delays;
        this.afterClose = afterClose;
        this.config = given.completed(
                given.platform().isEmpty() ? platform : given.platform(),
                backend,
                Math.max(0, given.maxBatchSize()),
                given.inputs(),
                given.outputs(),
                given.batching(),
                Math.max(1, given.instances()));
        this.traits = ModelTraits.builder()
                .cancellable(!delays.none())
                .inline(model instanceof BuiltInModel own && own.inline() && delays.none())
                .takesRequests(model instanceof JavaRequestModel)
                .build();
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    /** {@inheritDoc} The class does not get the maximum. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelInstance newInstance() {
        JavaModel own = model instanceof BuiltInModel b ? b.forInstance() : model;
        return new JavaModelInstance(config.name(), own, delays.of(instances.getAndIncrement()));
    }

    @Override
    public long memoryBytes() {
        return model instanceof BuiltInModel ? 0 : -1;
    }

    @Override
    public void close() {
        try {
            model.close();
        } catch (Exception e) {
            throw ServingException.internal("model '" + config.name() + "' failed to close: " + e, e);
        } finally {
            afterClose.run();
        }
    }
}
