// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The inputs of a prediction. They are read while the call starts, so arrays and buffers may be changed or reused once it has
 * returned. Immutable.
 *
 * <p>A value is an array or a {@link List} of any depth, a buffer of numbers (its remaining elements), a single number,
 * boolean or text, or a {@link io.nereid.tensor.Tensor}, which stays the caller's. It is converted to the type that the
 * model declares: whole numbers to every type that holds them, fractions to floating point only. A row for a model that
 * takes batches is a batch of one.
 *
 * <pre>{@code
 * Inputs.only(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}});
 * Inputs.named("INPUT0", a).and("INPUT1", b);
 * Inputs.named("image", floatBuffer, 1, 3, 224, 224);
 * Inputs.rows(List.of(new Flower(5.1, 3.5, 1.4, 0.2)));
 * }</pre>
 */
public final class Inputs {
    /** A value for an input; the name is empty for the model's only one. */
    record Value(String name, Object value, long @Nullable [] shape) {}

    private final List<Value> values;
    private final @Nullable List<? extends Record> rows;

    private Inputs(List<Value> values, @Nullable List<? extends Record> rows) {
        this.values = values;
        this.rows = rows;
    }

    /**
     * The value for a model with one input, or with one that is required.
     *
     * @param shape its dimensions, with the batch dimension; left out, those of the value
     */
    public static Inputs only(Object value, long... shape) {
        return new Inputs(List.of(new Value("", value, shape.length == 0 ? null : shape)), null);
    }

    /** The value of an input by its name. */
    public static Inputs named(String name, Object value, long... shape) {
        return new Inputs(List.of(new Value(name, value, shape.length == 0 ? null : shape)), null);
    }

    /** The values of all inputs by their names. */
    public static Inputs map(Map<String, ?> values) {
        List<Value> all = new ArrayList<>(values.size());
        values.forEach((name, value) -> all.add(new Value(name, value, null)));
        return new Inputs(all, null);
    }

    /**
     * Rows of a table, each a record. If the model has an input for each component (of its name, or of its
     * {@link TensorName}), each component is a column; if it has one matrix, the components are its columns, in their
     * order.
     */
    public static Inputs rows(List<? extends Record> rows) {
        return new Inputs(List.of(), List.copyOf(rows));
    }

    /** These inputs and one more; not for {@link #rows}. */
    public Inputs and(String name, Object value, long... shape) {
        if (rows != null) {
            throw new IllegalStateException("rows have all inputs already");
        }
        List<Value> more = new ArrayList<>(values);
        more.add(new Value(name, value, shape.length == 0 ? null : shape));
        return new Inputs(more, null);
    }

    List<Value> values() {
        return values;
    }

    @Nullable List<? extends Record> rows() {
        return rows;
    }
}
