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
 * Knows an output's shape before the run, where that is certain: every dimension is fixed or has the name of an input's
 * dimension, or the same input shapes gave the same output shape twice before. Thread-safe.
 */
final class OutputPlan {
    private static final int MAX_OBSERVED = 64;

    private final Port port;
    private final boolean vector;
    /** For each dimension: where its size is found, as {@code input << 8 | dimension}, or -1 when it is fixed. */
    private final int @Nullable [] sources;

    private final Map<List<Shape>, Seen> observed = new ConcurrentHashMap<>();
    private volatile boolean observing;

    private record Seen(Shape shape, boolean confirmed) {}

    private OutputPlan(Port port, boolean vector, int @Nullable [] sources) {
        this.port = port;
        this.vector = vector;
        this.sources = sources;
        this.observing = port.dataType() != DataType.BYTES && port.mapKeys() == null;
    }

    static OutputPlan of(Port port, List<Port> inputs, boolean vector) {
        if (port.dataType() == DataType.BYTES || port.mapKeys() != null) {
            return new OutputPlan(port, vector, null);
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
                return new OutputPlan(port, vector, null);
            }
        }
        return new OutputPlan(port, vector, sources);
    }

    Port port() {
        return port;
    }

    /** Whether clients see a single value as a vector of one, because the configuration says so. */
    boolean vector() {
        return vector;
    }

    /** Whether shapes of results are worth remembering. */
    boolean observing() {
        return observing && sources == null;
    }

    /** The shape that a run on inputs of these shapes will give, or null when that is not certain. */
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

    /** Remembers what a run gave. Outputs whose shape depends on the inputs' values are not foreseen any more. */
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
