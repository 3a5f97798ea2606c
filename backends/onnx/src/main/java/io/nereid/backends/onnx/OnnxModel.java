// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import io.nereid.backend.BackendModel;
import io.nereid.backend.InstancePlacement;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.backend.WideRuns;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A loaded ONNX model: a session for the processors and one for each of its GPUs, which the instances there share and run in parallel, and
 * perhaps a second one for runs on an idle machine ({@link WideRuns}). Thread-safe. A session is closed when the model is closed and the
 * last result that is a view of its memory is freed.
 */
final class OnnxModel implements BackendModel {
    private static final ModelTraits TRAITS =
            ModelTraits.builder().cancellable(true).build();

    /** The parameter of the complete configuration with the execution providers of each place, and why one of them was replaced. */
    static final String PROVIDERS = "nereid.execution_providers";

    private final OrtRuntime runtime;

    /** The sessions by the ordinals of GPUs; {@link #PROCESSORS} is that of the processors. At least one. */
    private final Map<Integer, OnnxSession> sessions;

    static final int PROCESSORS = -1;

    private final ModelConfig config;
    private final OrtSettings settings;
    private final Map<String, Integer> inputIndex = new HashMap<>();
    private final List<TensorBinding> inputs;
    private final Map<String, OutputShapes> outputs = new HashMap<>();
    private final long memoryBytes;
    private final @Nullable WideRuns<OnnxSession> wide;

    /**
     * Whether ONNX Runtime writes results into memory that the instance allocates. Set to false for good when a run
     * shows that the graph declares wrong shapes.
     */
    private volatile boolean pinning = true;

    OnnxModel(
            OrtRuntime runtime,
            Map<Integer, OnnxSession> sessions,
            ModelConfig config,
            OrtSettings settings,
            List<TensorBinding> inputs,
            List<TensorBinding> outputs,
            long memoryBytes,
            @Nullable WideRuns<OnnxSession> wide) {
        this.runtime = runtime;
        this.sessions = Map.copyOf(sessions);
        this.config = config;
        this.settings = settings;
        this.inputs = inputs;
        this.memoryBytes = memoryBytes;
        this.wide = wide;
        for (int i = 0; i < inputs.size(); i++) {
            inputIndex.put(inputs.get(i).name(), i);
        }
        for (TensorBinding port : outputs) {
            boolean vector = config.modelOutputs().stream()
                    .filter(spec -> spec.name().equals(port.name()))
                    .map(TensorSpec::modelShape)
                    .anyMatch(shape ->
                            !config.batched() && shape.rank() > port.shape().rank());
            this.outputs.put(port.name(), OutputShapes.of(port, inputs, vector));
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

    /** {@inheritDoc} Nothing is made for a number of rows, except a plan of TensorRT. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return !config.backend().equals(TensorRtBackend.NAME);
    }

    /** {@inheritDoc} It runs on processors, or, where the model has no session there, on its first GPU. */
    @Override
    public ModelInstance newInstance() {
        // That of the processors has the lowest number.
        return newInstance(Objects.requireNonNull(sessions.get(Collections.min(sessions.keySet()))));
    }

    @Override
    public ModelInstance newInstance(InstancePlacement placement) {
        if (!placement.onGpu()) {
            return newInstance();
        }
        OnnxSession session = sessions.get(placement.gpu().ordinal());
        if (session == null) {
            throw new IllegalStateException(
                    "model '" + config.name() + "' was loaded for the GPUs " + sessions.keySet() + ", and instance "
                            + placement.name() + " is on GPU " + placement.gpu().ordinal());
        }
        return newInstance(session);
    }

    private ModelInstance newInstance(OnnxSession session) {
        try {
            return new OnnxModelInstance(this, session);
        } catch (OrtException e) {
            throw ServingException.internal(
                    "cannot prepare a run of model '" + config.name() + "': " + OrtErrors.text(e), e);
        }
    }

    /** The size of the model's files, once for each session on processors. Memory of GPUs is not part of it. */
    @Override
    public long memoryBytes() {
        long ordinary =
                sessions.values().stream().anyMatch(each -> each.providers().gpu() < 0) ? memoryBytes : 0;
        return wide != null && wide.isOpen() ? ordinary + memoryBytes : ordinary;
    }

    OrtRuntime runtime() {
        return runtime;
    }

    /** Chooses the session of each run; null when all runs are ordinary. */
    @Nullable WideRuns<OnnxSession> wide() {
        return wide;
    }

    OrtSettings settings() {
        return settings;
    }

    List<TensorBinding> inputs() {
        return inputs;
    }

    /** The index of the input in the graph. */
    int input(String name) {
        Integer index = inputIndex.get(name);
        if (index == null) {
            throw ServingException.invalidArgument("unexpected input '" + name + "' for model '" + config.name()
                    + "' (expected: " + String.join(", ", TensorBinding.names(inputs)) + ")");
        }
        return index;
    }

    OutputShapes output(String name) {
        OutputShapes plan = outputs.get(name);
        if (plan == null) {
            throw ServingException.invalidArgument(
                    "unexpected output '" + name + "' for model '" + config.name() + "'");
        }
        return plan;
    }

    boolean pinning() {
        return pinning;
    }

    void stopPinning() {
        pinning = false;
    }

    @Override
    public void close() {
        if (wide != null) {
            wide.close();
        }
        // An instance of a model that fell back has the processors' session, which may be in the map several times.
        Set.copyOf(sessions.values()).forEach(OnnxSession::drop);
    }
}
