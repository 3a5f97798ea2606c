// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import io.nereid.spi.InferenceRequest;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ExampleTensors;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Adapts requests to models that take tables, from the forms in which clients of Python servers send them: numbers of
 * any type; the only input under any name; one input for each named column instead of a matrix; columns with or
 * without a last dimension of 1. A request in the configured form passes unchanged; what cannot be adapted is left for
 * {@link RequestValidator} to reject. Immutable.
 */
public final class TabularInputs {
    private final List<TensorSpec> specs;
    /** The positions of a matrix's columns by name; empty when they have no names. */
    private final Map<String, Integer> columns = new HashMap<>();
    /** The number of columns of the only input, if that is a matrix of numbers; else 0. */
    private final long width;

    /**
     * Creates the adapter for a model.
     *
     * @param specs the inputs as clients see them
     */
    public TabularInputs(List<TensorSpec> specs, ModelConfig config) {
        this.specs = specs;
        String names = config.parameters().getOrDefault(ExampleTensors.COLUMNS, "");
        boolean matrix = specs.size() == 1
                && specs.get(0).shape().rank() == 2
                && numeric(specs.get(0).dataType());
        width = matrix ? specs.get(0).shape().dim(1) : 0;
        if (matrix && !names.isEmpty()) {
            for (String name : names.split(",", -1)) {
                columns.put(name, columns.size());
            }
            if (width >= 0 && width != columns.size()) {
                columns.clear();
            }
        }
    }

    /**
     * Returns the request with inputs in the configured form. The result replaces {@code request} and owns its inputs.
     */
    public InferenceRequest toModel(InferenceRequest request) {
        List<Tensor> given = request.inputs();
        if (!given.isEmpty()
                && given.size() == columns.size()
                && (given.size() > 1 || !fits(given.get(0), specs.get(0)))) {
            Tensor matrix = matrix(given, columns);
            if (matrix != null) {
                Tensor.closeAll(given);
                return request.with(List.of(matrix), request.outputs());
            }
        }
        if (given.size() > 1 && columns.isEmpty() && width > 1 && isDataFrame(request)) {
            Tensor matrix = joined(given);
            if (matrix != null) {
                Tensor.closeAll(given);
                return request.with(List.of(matrix), request.outputs());
            }
        }
        boolean only = specs.size() == 1 && given.size() == 1;
        boolean asIs = true;
        for (int i = 0; i < given.size() && asIs; i++) {
            TensorSpec spec = spec(given.get(i), i, only);
            asIs = spec == null || (spec.name().equals(given.get(i).name()) && fits(given.get(i), spec));
        }
        if (asIs) {
            return request;
        }
        List<Tensor> fed = new ArrayList<>(given.size());
        boolean whole = false;
        try {
            for (int i = 0; i < given.size(); i++) {
                TensorSpec spec = spec(given.get(i), i, only);
                fed.add(spec == null ? given.get(i).retain() : made(given.get(i), spec));
            }
            whole = true;
        } finally {
            if (!whole) {
                Tensor.closeAll(fed);
            }
        }
        Tensor.closeAll(given);
        return request.with(fed, request.outputs());
    }

    /** Whether the client says that its inputs are the columns of a pandas data frame, by the name that KServe has for it. */
    private static boolean isDataFrame(InferenceRequest request) {
        return "pd".equals(request.parameters().get("content_type"));
    }

    /** Joins as many columns as the only input has, in the order in which they are given; null when they do not fit. */
    private @Nullable Tensor joined(List<Tensor> given) {
        if (given.size() != width) {
            return null;
        }
        Map<String, Integer> places = new HashMap<>();
        for (Tensor t : given) {
            places.put(t.name(), places.size());
        }
        return matrix(given, places);
    }

    private @Nullable TensorSpec spec(Tensor t, int place, boolean only) {
        if (only || (place < specs.size() && specs.get(place).name().equals(t.name()))) {
            return specs.get(only ? 0 : place);
        }
        return RequestValidator.find(specs, t.name());
    }

    private static boolean fits(Tensor t, TensorSpec spec) {
        return t.dataType() == spec.dataType()
                && t.shape().rank() == spec.shape().rank();
    }

    private static Tensor made(Tensor t, TensorSpec spec) {
        Shape shape = shape(t.shape(), spec.shape());
        if (t.dataType() == spec.dataType() || !convertible(t, spec.dataType())) {
            return t.retainAs(spec.name(), shape);
        }
        int count = (int) t.shape().elementCount();
        Tensor made = Tensor.allocate(spec.name(), spec.dataType(), shape);
        write(t, made.buffer(), spec.dataType(), 0, 1, count);
        return made;
    }

    private static boolean convertible(Tensor t, DataType to) {
        return (to == DataType.FP32 || to == DataType.FP64)
                && numeric(t.dataType())
                && t.shape().byteSize(t.dataType()) == t.byteLength();
    }

    private static boolean numeric(DataType type) {
        return type != DataType.BYTES;
    }

    /** Removes or adds a last dimension of 1, when that gives the wanted rank. */
    private static Shape shape(Shape given, Shape wanted) {
        int rank = given.rank();
        if (rank == wanted.rank() + 1 && rank > 1 && given.dim(rank - 1) == 1) {
            long[] dims = new long[rank - 1];
            for (int d = 0; d < dims.length; d++) {
                dims[d] = given.dim(d);
            }
            return Shape.of(dims);
        }
        if (rank == 1 && wanted.rank() == 2 && wanted.dim(1) == 1) {
            return Shape.of(given.dim(0), 1);
        }
        return given;
    }

    /** Joins columns to a matrix; null when they do not have these places, or have different lengths. */
    private @Nullable Tensor matrix(List<Tensor> given, Map<String, Integer> columns) {
        long rows = given.get(0).shape().rank() == 0 ? -1 : given.get(0).shape().dim(0);
        boolean[] seen = new boolean[given.size()];
        TensorSpec spec = specs.get(0);
        for (Tensor t : given) {
            Integer place = columns.get(t.name());
            int rank = t.shape().rank();
            if (place == null
                    || seen[place]
                    || rank < 1
                    || rank > 2
                    || t.shape().dim(0) != rows
                    || t.shape().elementCount() != rows
                    || !convertible(t, spec.dataType())) {
                return null;
            }
            seen[place] = true;
        }
        Tensor made = Tensor.allocate(spec.name(), spec.dataType(), Shape.of(rows, given.size()));
        ByteBuffer to = made.buffer();
        for (Tensor t : given) {
            write(t, to, spec.dataType(), columns.getOrDefault(t.name(), 0), given.size(), (int) rows);
        }
        return made;
    }

    /** Writes {@code count} values to every {@code step}th element, beginning at element {@code at}. */
    private static void write(Tensor from, ByteBuffer to, DataType type, int at, int step, int count) {
        ByteBuffer bytes = from.buffer();
        boolean single = type == DataType.FP32;
        int place = at;
        for (int i = 0; i < count; i++, place += step) {
            if (single) {
                to.putFloat(
                        4 * place,
                        from.dataType() == DataType.INT64
                                ? bytes.getLong(8 * i)
                                : (float) value(from.dataType(), bytes, i));
            } else {
                to.putDouble(8 * place, value(from.dataType(), bytes, i));
            }
        }
    }

    private static double value(DataType type, ByteBuffer bytes, int i) {
        return switch (type) {
            case BOOL -> bytes.get(i) == 0 ? 0 : 1;
            case UINT8 -> bytes.get(i) & 0xff;
            case INT8 -> bytes.get(i);
            case UINT16 -> bytes.getShort(2 * i) & 0xffff;
            case INT16 -> bytes.getShort(2 * i);
            case UINT32 -> bytes.getInt(4 * i) & 0xffff_ffffL;
            case INT32 -> bytes.getInt(4 * i);
            case UINT64 -> unsigned(bytes.getLong(8 * i));
            case INT64 -> bytes.getLong(8 * i);
            case FP16 -> half(bytes.getShort(2 * i));
            case BF16 -> Float.intBitsToFloat(bytes.getShort(2 * i) << 16);
            case FP32 -> bytes.getFloat(4 * i);
            case FP64 -> bytes.getDouble(8 * i);
            case BYTES -> throw new IllegalStateException("text");
        };
    }

    private static double unsigned(long value) {
        // keep the lowest bit as a sticky bit, so that the halved value rounds as the whole value would
        return value >= 0 ? value : ((value >>> 1) | (value & 1)) * 2.0;
    }

    private static double half(short bits) {
        int exponent = (bits >> 10) & 31;
        int fraction = bits & 1023;
        double size = exponent == 31
                ? (fraction == 0 ? Double.POSITIVE_INFINITY : Double.NaN)
                : exponent == 0 ? Math.scalb((double) fraction, -24) : Math.scalb(1024.0 + fraction, exponent - 25);
        return bits < 0 ? -size : size;
    }
}
