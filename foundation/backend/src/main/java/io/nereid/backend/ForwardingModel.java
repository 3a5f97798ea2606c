// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;

/**
 * A decorator base class: forwards every call to another model, except what a subclass overrides. Thread-safe, as the
 * wrapped model is. Owns the wrapped model and closes it in {@link #close}.
 */
public class ForwardingModel implements BackendModel {
    private final BackendModel model;
    private final ModelConfig config;

    /** Wraps a model and keeps its configuration. */
    public ForwardingModel(BackendModel model) {
        this(model, model.config());
    }

    /** Wraps a model under another configuration. */
    public ForwardingModel(BackendModel model, ModelConfig config) {
        this.model = model;
        this.config = config;
    }

    /** The wrapped model. */
    protected final BackendModel delegate() {
        return model;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
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
    public String signatureWith(List<String> outputs) {
        return model.signatureWith(outputs);
    }

    @Override
    public ModelInstance newInstance(String signature) {
        return model.newInstance(signature);
    }

    @Override
    public ModelInstance newInstance() {
        return model.newInstance();
    }

    /** Instances on processors come from {@link #newInstance()}, which a subclass may have overridden. */
    @Override
    public ModelInstance newInstance(InstancePlacement placement) {
        return placement.onGpu() ? model.newInstance(placement) : newInstance();
    }

    /** Instances on processors come from {@link #newInstance(String)}, which a subclass may have overridden. */
    @Override
    public ModelInstance newInstance(String signature, InstancePlacement placement) {
        return placement.onGpu() ? model.newInstance(signature, placement) : newInstance(signature);
    }

    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return model.acceptsMaxBatchSize(rows);
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
