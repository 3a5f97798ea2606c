// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A loaded ONNX model: one session that all instances share and run in parallel. Thread-safe.
 *
 * <p>A result may be a view of the session's memory (a constant output even of its weights), so each viewed result
 * holds a reference on the session. The session is closed when the model is closed and the last viewed result is freed.
 * The count starts at 1 for the model itself.
 */
final class OnnxModel implements BackendModel {
    private static final Logger LOG = System.getLogger(OnnxModel.class.getName());
    private static final ModelTraits TRAITS =
            ModelTraits.builder().cancellable(true).build();

    private final OrtRuntime runtime;
    private final OnnxSession graph;
    private final ModelConfig config;
    private final OrtSettings settings;
    private final Map<String, Integer> inputIndex = new HashMap<>();
    private final List<TensorBinding> inputs;
    private final Map<String, OutputShapes> outputs = new HashMap<>();
    private final long memoryBytes;
    private final AtomicInteger holds = new AtomicInteger(1);

    /**
     * Whether ONNX Runtime writes results into memory that the instance allocates. Set to false for good when a run
     * shows that the graph declares wrong shapes.
     */
    private volatile boolean pinning = true;

    OnnxModel(
            OrtRuntime runtime,
            OnnxSession graph,
            ModelConfig config,
            OrtSettings settings,
            List<TensorBinding> inputs,
            List<TensorBinding> outputs,
            long memoryBytes) {
        this.runtime = runtime;
        this.graph = graph;
        this.config = config;
        this.settings = settings;
        this.inputs = inputs;
        this.memoryBytes = memoryBytes;
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

    @Override
    public ModelInstance newInstance() {
        try {
            return new OnnxModelInstance(this);
        } catch (OrtException e) {
            throw ServingException.internal(
                    "cannot prepare a run of model '" + config.name() + "': " + OrtErrors.text(e), e);
        }
    }

    @Override
    public long memoryBytes() {
        return memoryBytes;
    }

    OrtRuntime runtime() {
        return runtime;
    }

    OrtSession session() {
        return graph.session();
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

    /** Keeps the session open until {@link #drop()}. */
    void hold() {
        holds.incrementAndGet();
    }

    void drop() {
        if (holds.decrementAndGet() == 0) {
            try {
                graph.close();
            } catch (OrtException e) {
                LOG.log(Level.WARNING, "closing model '" + config.name() + "' failed", e);
            }
        }
    }

    @Override
    public void close() {
        drop();
    }
}
