// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata.Signature;
import java.util.List;
import java.util.Map;

/**
 * A model around another one, which answers everything but what a subclass says itself. Thread-safe, as the model inside is; closing it
 * closes that.
 */
public class ForwardingModel implements BackendModel {
    private final BackendModel model;
    private final ModelConfig config;

    /** Around a model, under its own configuration. */
    public ForwardingModel(BackendModel model) {
        this(model, model.config());
    }

    /** Around a model, under another configuration. */
    public ForwardingModel(BackendModel model, ModelConfig config) {
        this.model = model;
        this.config = config;
    }

    /** The model inside. */
    protected final BackendModel inside() {
        return model;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public IoTraits traits() {
        return model.traits();
    }

    @Override
    public Map<String, Signature> signatures() {
        return model.signatures();
    }

    @Override
    public String signature(Map<String, Object> parameters) {
        return model.signature(parameters);
    }

    @Override
    public Invocation newInvocation(String signature) {
        return model.newInvocation(signature);
    }

    @Override
    public Invocation newInvocation() {
        return model.newInvocation();
    }

    @Override
    public boolean ready() {
        return model.ready();
    }

    @Override
    public List<ModelMetric> metrics() {
        return model.metrics();
    }

    @Override
    public long memoryBytes() {
        return model.memoryBytes();
    }

    @Override
    public void close() {
        model.close();
    }
}
