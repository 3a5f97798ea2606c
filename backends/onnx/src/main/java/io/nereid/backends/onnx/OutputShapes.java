// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Predicts the shape of an output before the run, so that its memory can be allocated before the run. A shape is
 * predicted only where
 *
 * <ul>
 *   <li>every dimension is fixed or has the symbolic name of an input's dimension, or
 *   <li>the same input shapes gave the same output shape in two earlier runs.
 * </ul>
 *
 * <p>A wrong prediction costs a repeated run (see {@link OnnxModelInstance}), never a wrong result: ONNX Runtime
 * compares the shape before it writes. Thread-safe: updates of {@code observed} may race, and the loser's observation
 * is lost, which delays a prediction by one run.
 */
final class OutputShapes {
    private static final int MAX_OBSERVED = 64;

    private final TensorBinding port;
    private final boolean vector;
    /**
     * For each dimension: the input dimension that has the same name, as {@code input << 8 | dimension}, or -1 when it
     * is fixed. Null when some dimension has neither.
     */
    private final int @Nullable [] sources;

    private final Map<List<Shape>, Seen> observed = new ConcurrentHashMap<>();
    private volatile boolean observing;

    private record Seen(Shape shape, boolean confirmed) {}

    private OutputShapes(TensorBinding port, boolean vector, int @Nullable [] sources) {
        this.port = port;
        this.vector = vector;
        this.sources = sources;
        this.observing = port.dataType() != DataType.BYTES && port.mapKeys() == null;
    }

    static OutputShapes of(TensorBinding port, List<TensorBinding> inputs, boolean vector) {
        if (port.dataType() == DataType.BYTES || port.mapKeys() != null) {
            return new OutputShapes(port, vector, null);
        }
        int[] sources = new int[port.shape().rank()];
        for (int i = 0; i < sources.length; i++) {
            sources[i] = -1;
            if (port.shape().dim(i) >= 0) {
                continue;
            }
            String name = port.dimNames().get(i);
            for (int input = 0; input < inputs.size() && sources[i] < 0 && !name.isEmpty(); input++) {
                int dim = inputs.get(input).dimNames().indexOf(name);
                if (dim >= 0) {
                    sources[i] = input << 8 | dim;
                }
            }
            if (sources[i] < 0) {
                return new OutputShapes(port, vector, null);
            }
        }
        return new OutputShapes(port, vector, sources);
    }

    TensorBinding port() {
        return port;
    }

    /** Whether clients see a scalar as a vector of one element, because the configuration says so. */
    boolean vector() {
        return vector;
    }

    /** Whether {@link #observe} should be called with the shapes of results. */
    boolean observing() {
        return observing && sources == null;
    }

    /** The output's shape for inputs of these shapes, or null when it cannot be predicted. */
    @Nullable Shape foresee(Shape[] inputs) {
        if (sources != null) {
            long[] dims = new long[sources.length];
            for (int i = 0; i < dims.length; i++) {
                int source = sources[i];
                dims[i] = source < 0 ? port.shape().dim(i) : inputs[source >> 8].dim(source & 0xff);
            }
            return Shape.of(dims);
        }
        if (observing) {
            Seen seen = observed.get(Arrays.asList(inputs));
            return seen != null && seen.confirmed ? seen.shape : null;
        }
        return null;
    }

    /**
     * Records the shape of a result. The second equal shape for the same input shapes confirms it. A different one
     * shows that the shape depends on the inputs' values (as that of NonZero does); such an output is never predicted
     * again.
     */
    void observe(Shape[] inputs, Shape output) {
        List<Shape> key = List.of(inputs);
        Seen seen = observed.get(key);
        if (seen == null) {
            if (observed.size() < MAX_OBSERVED) {
                observed.put(key, new Seen(output, false));
            }
        } else if (!seen.shape.equals(output)) {
            observing = false;
            observed.clear();
        } else if (!seen.confirmed) {
            observed.put(key, new Seen(output, true));
        }
    }
}
