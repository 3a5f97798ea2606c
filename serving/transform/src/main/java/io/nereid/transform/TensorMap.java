// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.Experimental;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Named tensors with the parameters of a request or response. Immutable. The maps that the server passes are valid
 * only during the step that they are passed to; the arrays that the getters return are copies.
 *
 * <p>A getter throws an {@link IllegalArgumentException} for a tensor that is missing or has another type. In
 * {@link Transformer#preprocess} that makes it the client's error.
 *
 * <pre>{@code
 * TensorMap tensors = TensorMap.of("input", new float[][] {{1, 2}, {3, 4}}).withParameter("seed", 7L);
 * float[][] rows = tensors.floatRows("input");
 * }</pre>
 */
@Experimental
public final class TensorMap {
    private static final TensorMap EMPTY = new TensorMap(Map.of(), Map.of());

    private final Map<String, TensorValues> fields;
    private final Map<String, Object> parameters;

    private TensorMap(Map<String, TensorValues> fields, Map<String, Object> parameters) {
        this.fields = fields;
        this.parameters = parameters;
    }

    /** Wraps the tensors of a request or of a predictor's response; the caller keeps their ownership. */
    static TensorMap of(List<Tensor> tensors, Map<String, Object> parameters, TensorValues.Scope scope) {
        Map<String, TensorValues> fields = new LinkedHashMap<>();
        for (Tensor tensor : tensors) {
            fields.put(tensor.name(), TensorValues.of(tensor, scope));
        }
        return new TensorMap(Collections.unmodifiableMap(fields), parameters);
    }

    /** The map without tensors and parameters. */
    public static TensorMap empty() {
        return EMPTY;
    }

    /** A map of one tensor, created as by {@link #with(String, Object)}. */
    public static TensorMap of(String name, Object values) {
        return EMPTY.with(name, values);
    }

    /**
     * Returns this map with one more tensor; replaces a tensor of the same name. Arrays are not copied: do not
     * change them afterwards.
     *
     * @param values an array, of one dimension or more, of float (FP32), double (FP64), long (INT64), int (INT32),
     *     short (INT16), byte (INT8), boolean (BOOL) or String (BYTES, as UTF-8); or one such value, for a tensor of
     *     shape [1]
     * @throws IllegalArgumentException for any other type, and for rows of different lengths
     */
    public TensorMap with(String name, Object values) {
        return put(name, TensorValues.of(values));
    }

    /**
     * Returns this map with one more tensor, of any type.
     *
     * @param values as many as the shape has: an array of the Java type of the same size ({@code byte[]} for UINT8 and
     *     {@code short[]} for the bits of FP16 and BF16, for example), or {@code byte[][]} or {@code String[]} for
     *     BYTES
     * @throws IllegalArgumentException when type, shape and values do not match
     */
    public TensorMap with(String name, DataType type, Shape shape, Object values) {
        return put(name, TensorValues.of(type, shape, values));
    }

    private TensorMap put(String name, TensorValues field) {
        Map<String, TensorValues> next = new LinkedHashMap<>(fields);
        next.put(name, field);
        return new TensorMap(Collections.unmodifiableMap(next), parameters);
    }

    /** Returns this map without a tensor. */
    public TensorMap without(String name) {
        Map<String, TensorValues> next = new LinkedHashMap<>(fields);
        next.remove(name);
        return new TensorMap(Collections.unmodifiableMap(next), parameters);
    }

    /** Returns this map with a tensor under another name; its values are not copied. */
    public TensorMap renamed(String from, String to) {
        TensorValues field = field(from);
        Map<String, TensorValues> next = new LinkedHashMap<>();
        fields.forEach((name, each) -> next.put(name.equals(from) ? to : name, name.equals(from) ? field : each));
        return new TensorMap(Collections.unmodifiableMap(next), parameters);
    }

    /** Returns this map with one more parameter: a Boolean, Long, Double or String. */
    public TensorMap withParameter(String name, Object value) {
        Map<String, Object> next = new LinkedHashMap<>(parameters);
        next.put(name, value);
        return new TensorMap(fields, Collections.unmodifiableMap(next));
    }

    /** The parameters of the request or response; values are Boolean, Long, Double or String. */
    public Map<String, Object> parameters() {
        return parameters;
    }

    /** The names of the tensors, in order. */
    public List<String> names() {
        return List.copyOf(fields.keySet());
    }

    /** Whether a tensor of this name exists. */
    public boolean has(String name) {
        return fields.containsKey(name);
    }

    /** The type of a tensor. */
    public DataType type(String name) {
        return field(name).type();
    }

    /** The shape of a tensor. */
    public Shape shape(String name) {
        return field(name).shape();
    }

    /** The values of a numeric tensor, in row-major order. */
    public float[] floats(String name) {
        return field(name).floats(name);
    }

    /** The values of a numeric tensor as rows: by its first dimension, with all others flattened. */
    public float[][] floatRows(String name) {
        float[] all = floats(name);
        Shape shape = shape(name);
        int rows = shape.rank() == 0 ? 1 : (int) shape.dim(0);
        int width = rows == 0 ? 0 : all.length / rows;
        return rows(rows, float[][]::new, i -> java.util.Arrays.copyOfRange(all, i * width, (i + 1) * width));
    }

    private static <T> T[] rows(int count, IntFunction<T[]> array, IntFunction<T> row) {
        T[] rows = array.apply(count);
        for (int i = 0; i < count; i++) {
            rows[i] = row.apply(i);
        }
        return rows;
    }

    /** The values of a numeric tensor, in row-major order. */
    public double[] doubles(String name) {
        return field(name).doubles(name);
    }

    /**
     * The values of an integer tensor, in row-major order. UINT64 values above {@link Long#MAX_VALUE} become negative.
     */
    public long[] longs(String name) {
        return field(name).longs(name);
    }

    /**
     * The values of an integer tensor, in row-major order.
     *
     * @throws IllegalArgumentException also for a value outside the range of int
     */
    public int[] ints(String name) {
        long[] all = longs(name);
        int[] narrow = new int[all.length];
        for (int i = 0; i < all.length; i++) {
            if (all[i] != (int) all[i]) {
                throw new IllegalArgumentException("tensor '" + name + "' holds " + all[i] + ", which is not an int");
            }
            narrow[i] = (int) all[i];
        }
        return narrow;
    }

    /** The values of a BOOL tensor, in row-major order. */
    public boolean[] booleans(String name) {
        return field(name).booleans(name);
    }

    /** The elements of a BYTES tensor as UTF-8, in row-major order. */
    public String[] texts(String name) {
        return field(name).texts(name);
    }

    /** The elements of a BYTES tensor, in row-major order. */
    public byte[][] bytes(String name) {
        return field(name).bytes(name);
    }

    /**
     * The values as they are in memory, little-endian, without a copy; valid as long as this map. Do not change
     * them.
     */
    public ByteBuffer buffer(String name) {
        return field(name).buffer();
    }

    private TensorValues field(String name) {
        TensorValues field = find(name);
        if (field == null) {
            throw new IllegalArgumentException("the payload has no tensor '" + name + "', it has " + fields.keySet());
        }
        return field;
    }

    private @Nullable TensorValues find(String name) {
        return fields.get(name);
    }

    /** The tensors, newly created or retained; the caller owns them. */
    List<Tensor> tensors() {
        List<Tensor> all = new ArrayList<>(fields.size());
        try {
            fields.forEach((name, field) -> all.add(field.tensor(name)));
        } catch (RuntimeException e) {
            Tensor.closeAll(all);
            throw e;
        }
        return all;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("{");
        fields.forEach((name, field) -> text.append(text.length() > 1 ? ", " : "")
                .append(name)
                .append(": ")
                .append(field.type())
                .append(field.shape()));
        return text.append('}').toString();
    }
}
