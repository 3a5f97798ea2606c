// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.pytorch.engine.PtSymbolBlock;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.backend.WideRuns;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A loaded TorchScript archive: one module, with its weights, that all instances share. Thread-safe. Results may
 * outlive it, because libtorch counts the references to their memory itself.
 */
final class PtModel implements BackendModel {
    /** Inputs are aligned to 16 bytes, because kernels read whole vectors. */
    private static final ModelTraits TRAITS =
            ModelTraits.builder().inputAlignment(16).ownOutputs(true).build();

    private final ModelConfig config;
    private final ArgumentBinding wiring;
    private final PtRuntime runtime;
    private final PtSymbolBlock block;
    private final boolean optimize;
    private final IntraOpThreads threads;
    private final boolean bound;
    private final @Nullable WideRuns<IntraOpThreads> wide;
    private final long memoryBytes;
    private final Map<String, DataType> promised = new HashMap<>();

    /**
     * Constructor.
     *
     * @param threads the threads of an operation in ordinary runs
     * @param wide chooses those of each run; null when all runs have the same
     */
    PtModel(
            ModelConfig config,
            ArgumentBinding wiring,
            PtRuntime runtime,
            PtSymbolBlock block,
            boolean optimize,
            long memoryBytes,
            IntraOpThreads threads,
            @Nullable WideRuns<IntraOpThreads> wide) {
        this.config = config;
        this.wiring = wiring;
        this.runtime = runtime;
        this.block = block;
        this.optimize = optimize;
        this.memoryBytes = memoryBytes;
        this.threads = threads;
        this.wide = wide;
        bound = config.instanceGroups().stream()
                .anyMatch(group -> !group.hostPolicy().isEmpty());
        for (TensorSpec spec : config.modelOutputs()) {
            // The type of an unchecked output is a guess, because the archive does not declare it.
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

    /** {@inheritDoc} Nothing is made for a number of rows. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelInstance newInstance() {
        return new PtModelInstance(this);
    }

    @Override
    public long memoryBytes() {
        return memoryBytes;
    }

    ArgumentBinding wiring() {
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

    IntraOpThreads threads() {
        return threads;
    }

    /** Whether the threads that ask for runs may be bound to processors, so that others must not make them. */
    boolean bound() {
        return bound;
    }

    @Nullable WideRuns<IntraOpThreads> wide() {
        return wide;
    }

    /** The types that the configuration declares, by output. */
    Map<String, DataType> promised() {
        return promised;
    }

    @Override
    public void close() {
        if (wide != null) {
            wide.close();
        }
        block.close();
    }
}
