// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.caffe2;

import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.backend.IoTraits;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata.Signature;
import java.util.Map;

/**
 * A converted model under its own names of backend and platform. Immutable.
 *
 * @param model the model as it runs
 * @param config its configuration
 */
record ConvertedModel(BackendModel model, ModelConfig config) implements BackendModel {
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
    public long memoryBytes() {
        return model.memoryBytes();
    }

    @Override
    public void close() {
        model.close();
    }
}
