// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

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
 * Named tensors, and the parameters beside them. Immutable; those that the server gives are valid during the step that they
 * were given for, and what is read of them is a copy.
 *
 * <p>What is asked for and not there, or of another type, is an {@link IllegalArgumentException} that says so: the client's
 * fault in {@link Transformer#preprocess}.
 */
public final class Payload {
    private static final Payload EMPTY = new Payload(Map.of(), Map.of());

    private final Map<String, Field> fields;
    private final Map<String, Object> parameters;

    private Payload(Map<String, Field> fields, Map<String, Object> parameters) {
        this.fields = fields;
        this.parameters = parameters;
    }

    /** What a client sent, or a predictor answered; the tensors stay the caller's. */
    static Payload of(List<Tensor> tensors, Map<String, Object> parameters, Field.Scope scope) {
        Map<String, Field> fields = new LinkedHashMap<>();
        for (Tensor tensor : tensors) {
            fields.put(tensor.name(), Field.of(tensor, scope));
        }
        return new Payload(Collections.unmodifiableMap(fields), parameters);
    }

    /** Nothing. */
    public static Payload empty() {
        return EMPTY;
    }

    /** One tensor, as {@link #with(String, Object)} makes it. */
    public static Payload of(String name, Object values) {
        return EMPTY.with(name, values);
    }

    /**
     * This and one more tensor, or another one of the same name. Arrays are not copied; leave them as they are.
     *
     * @param values an array, of one dimension or more, of float (FP32), double (FP64), long (INT64), int (INT32), short
     *     (INT16), byte (INT8), boolean (BOOL) or String (BYTES, as UTF-8); or one such value, for a tensor of shape [1]
     * @throws IllegalArgumentException for anything else, and for rows of different lengths
     */
    public Payload with(String name, Object values) {
        return put(name, Field.of(values));
    }

    /**
     * This and one more tensor, of any type.
     *
     * @param values as many as the shape has: an array of the Java type of the same size ({@code byte[]} for UINT8 and
     *     {@code short[]} for the bits of FP16 and BF16, for example), or {@code byte[][]} or {@code String[]} for BYTES
     * @throws IllegalArgumentException when these do not fit
     */
    public Payload with(String name, DataType type, Shape shape, Object values) {
        return put(name, Field.of(type, shape, values));
    }

    private Payload put(String name, Field field) {
        Map<String, Field> next = new LinkedHashMap<>(fields);
        next.put(name, field);
        return new Payload(Collections.unmodifiableMap(next), parameters);
    }

    /** This without a tensor. */
    public Payload without(String name) {
        Map<String, Field> next = new LinkedHashMap<>(fields);
        next.remove(name);
        return new Payload(Collections.unmodifiableMap(next), parameters);
    }

    /** This with a tensor under another name; its values are not copied. */
    public Payload renamed(String from, String to) {
        Field field = field(from);
        Map<String, Field> next = new LinkedHashMap<>();
        fields.forEach((name, each) -> next.put(name.equals(from) ? to : name, name.equals(from) ? field : each));
        return new Payload(Collections.unmodifiableMap(next), parameters);
    }

    /** This with a parameter: a Boolean, Long, Double or String. */
    public Payload withParameter(String name, Object value) {
        Map<String, Object> next = new LinkedHashMap<>(parameters);
        next.put(name, value);
        return new Payload(fields, Collections.unmodifiableMap(next));
    }

    /** The parameters of the request or the answer; values are Boolean, Long, Double or String. */
    public Map<String, Object> parameters() {
        return parameters;
    }

    /** The names of the tensors, in their order. */
    public List<String> names() {
        return List.copyOf(fields.keySet());
    }

    /** Whether there is a tensor of this name. */
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

    /** The values of a tensor of numbers, row by row. */
    public float[] floats(String name) {
        return field(name).floats(name);
    }

    /** The values of a tensor of numbers as rows: its first dimension, and all others together. */
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

    /** The values of a tensor of numbers, row by row. */
    public double[] doubles(String name) {
        return field(name).doubles(name);
    }

    /** The values of a tensor of whole numbers, row by row; UINT64 above the greatest long are negative. */
    public long[] longs(String name) {
        return field(name).longs(name);
    }

    /** The values of a tensor of whole numbers that fit, row by row. */
    public int[] ints(String name) {
        long[] all = longs(name);
        int[] narrow = new int[all.length];
        for (int i = 0; i < all.length; i++) {
            if (all[i] != (int) all[i]) {
                throw new IllegalArgumentException("tensor '" + name + "' holds " + all[i] + ", which is no int");
            }
            narrow[i] = (int) all[i];
        }
        return narrow;
    }

    /** The values of a tensor of truth values, row by row. */
    public boolean[] booleans(String name) {
        return field(name).booleans(name);
    }

    /** The elements of a tensor of BYTES as UTF-8, row by row. */
    public String[] texts(String name) {
        return field(name).texts(name);
    }

    /** The elements of a tensor of BYTES, row by row. */
    public byte[][] bytes(String name) {
        return field(name).bytes(name);
    }

    /** The values as they are in memory, little-endian; valid as long as this is. Do not change them. */
    public ByteBuffer buffer(String name) {
        return field(name).buffer();
    }

    private Field field(String name) {
        Field field = find(name);
        if (field == null) {
            throw new IllegalArgumentException("there is no tensor '" + name + "', there are " + fields.keySet());
        }
        return field;
    }

    private @Nullable Field find(String name) {
        return fields.get(name);
    }

    /** The tensors, new or with one more count; the caller owns them. */
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
