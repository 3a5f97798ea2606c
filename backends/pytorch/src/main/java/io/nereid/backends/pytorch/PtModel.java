// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.pytorch.engine.PtSymbolBlock;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.HashMap;
import java.util.Map;

/** A loaded archive: one module, with its weights, that all invocations share. Thread-safe. Results do not need it. */
final class PtModel implements BackendModel {
    /** Kernels read whole vectors. */
    private static final ModelTraits TRAITS = new ModelTraits(16, false, false);

    private final ModelConfig config;
    private final Wiring wiring;
    private final PtRuntime runtime;
    private final PtSymbolBlock block;
    private final boolean optimize;
    private final long memoryBytes;
    private final Map<String, DataType> promised = new HashMap<>();

    PtModel(
            ModelConfig config,
            Wiring wiring,
            PtRuntime runtime,
            PtSymbolBlock block,
            boolean optimize,
            long memoryBytes) {
        this.config = config;
        this.wiring = wiring;
        this.runtime = runtime;
        this.block = block;
        this.optimize = optimize;
        this.memoryBytes = memoryBytes;
        for (TensorSpec spec : config.fetches()) {
            // Of what nobody has written down, the type is a guess.
            if (!spec.unchecked()) {
                promised.put(spec.name(), spec.dataType());
            }
        }
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return TRAITS;
    }

    @Override
    public ModelInstance newInvocation() {
        return new PtInvocation(this);
    }

    @Override
    public long memoryBytes() {
        return memoryBytes;
    }

    Wiring wiring() {
        return wiring;
    }

    PtRuntime runtime() {
        return runtime;
    }

    PtSymbolBlock block() {
        return block;
    }

    boolean optimize() {
        return optimize;
    }

    /** The types that the configuration promises, by output. */
    Map<String, DataType> promised() {
        return promised;
    }

    @Override
    public void close() {
        block.close();
    }
}
