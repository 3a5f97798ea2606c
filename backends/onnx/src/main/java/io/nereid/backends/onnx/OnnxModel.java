// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A loaded graph: one session that all invocations share, whose runs go on side by side. Thread-safe.
 *
 * <p>Results may lie in the session's own memory, constants even in its weights, so each result that does holds on to
 * the session: it is closed when the model is and the last such result is freed.
 */
final class OnnxModel implements BackendModel {
    private static final Logger LOG = System.getLogger(OnnxModel.class.getName());
    private static final ModelTraits TRAITS = new ModelTraits(1, true, false);

    private final OrtRuntime runtime;
    private final Graph graph;
    private final ModelConfig config;
    private final OrtSettings settings;
    private final Map<String, Integer> inputIndex = new HashMap<>();
    private final List<Port> inputs;
    private final Map<String, OutputPlan> outputs = new HashMap<>();
    private final long memoryBytes;
    private final AtomicInteger holds = new AtomicInteger(1);

    /** Whether results are put into memory of ours; given up for good when the graph's shapes turn out to be wrong. */
    private volatile boolean pinning = true;

    OnnxModel(
            OrtRuntime runtime,
            Graph graph,
            ModelConfig config,
            OrtSettings settings,
            List<Port> inputs,
            List<Port> outputs,
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
        for (Port port : outputs) {
            boolean vector = config.fetches().stream()
                    .filter(spec -> spec.name().equals(port.name()))
                    .map(TensorSpec::modelShape)
                    .anyMatch(shape ->
                            !config.batched() && shape.rank() > port.shape().rank());
            this.outputs.put(port.name(), OutputPlan.of(port, inputs, vector));
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
        try {
            return new OnnxInvocation(this);
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

    List<Port> inputs() {
        return inputs;
    }

    /** The input's place in the graph. */
    int input(String name) {
        Integer index = inputIndex.get(name);
        if (index == null) {
            throw ServingException.invalidArgument("unexpected input '" + name + "' for model '" + config.name()
                    + "' (expected: " + String.join(", ", Port.names(inputs)) + ")");
        }
        return index;
    }

    OutputPlan output(String name) {
        OutputPlan plan = outputs.get(name);
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
