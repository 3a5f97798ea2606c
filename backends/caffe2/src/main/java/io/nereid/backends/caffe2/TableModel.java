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
 * A model that takes its only input under any name and in any type of numbers, as KServe's server for PaddlePaddle does.
 * Immutable.
 */
record TableModel(BackendModel model) implements BackendModel {
    @Override
    public ModelConfig config() {
        return model.config();
    }

    @Override
    public IoTraits traits() {
        IoTraits its = model.traits();
        return new IoTraits(its.alignment(), its.cancel(), its.inline(), its.requests(), true, its.waits());
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
