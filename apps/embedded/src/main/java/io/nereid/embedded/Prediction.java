// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorElements;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * What a model has computed: outputs by name, in the order of the request or of the model. The values are on the Java heap,
 * so there is nothing to close. Immutable, thread-safe; every method that returns an array returns a new one.
 *
 * <p>Values are in row-major order. A method throws a {@link ServingException} with NOT_FOUND for an output that is not
 * there, and with INVALID_ARGUMENT for one whose type cannot be read like this; both say what there is.
 *
 * <pre>{@code
 * Prediction p = model.predict(rows);
 * float[][] probabilities = p.floatRows("probabilities");
 * }</pre>
 */
public final class Prediction {
    private record Output(String name, DataType type, Shape shape, byte[] data) {
        int count() {
            return Math.toIntExact(shape.elementCount());
        }

        ByteBuffer buffer() {
            return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
        }
    }

    private final ServableId servable;
    private final List<Output> outputs;
    private final Map<String, Object> parameters;

    private Prediction(ServableId servable, List<Output> outputs, Map<String, Object> parameters) {
        this.servable = servable;
        this.outputs = outputs;
        this.parameters = parameters;
    }

    /** Copies a response and closes it. */
    static Prediction of(InferenceResponse response) {
        try (response) {
            List<Output> all = new ArrayList<>(response.outputs().size());
            for (Tensor tensor : response.outputs()) {
                byte[] data = new byte[tensor.byteLength()];
                tensor.region().getBytes(tensor.offset(), data, 0, data.length);
                all.add(new Output(tensor.name(), tensor.dataType(), tensor.shape(), data));
            }
            return new Prediction(response.servable(), all, response.parameters());
        }
    }

    /** The name of the model that answered. */
    public String model() {
        return servable.model();
    }

    /** The version that answered. */
    public long version() {
        return servable.version();
    }

    /** The parameters of the response; values are Boolean, Long, Double or String. */
    public Map<String, Object> parameters() {
        return parameters;
    }

    /** The names of the outputs. */
    public List<String> names() {
        return outputs.stream().map(Output::name).toList();
    }

    /** The type of an output. */
    public DataType dataType(String name) {
        return output(name).type;
    }

    /** The shape of an output, with the batch dimension where the model is batched. */
    public long[] shape(String name) {
        return output(name).shape.dims();
    }

    /** The numbers of the first output. */
    public float[] floats() {
        return floats(first());
    }

    /** The numbers of an output, rounded to the nearest float. */
    public float[] floats(String name) {
        return floats(output(name));
    }

    private static float[] floats(Output from) {
        return read(from, TensorElements::floats);
    }

    /** The numbers of the first output as rows. */
    public float[][] floatRows() {
        return rows(first());
    }

    /** The numbers of an output as rows: by its first dimension, with all others flattened. */
    public float[][] floatRows(String name) {
        return rows(output(name));
    }

    private static float[][] rows(Output from) {
        float[] all = floats(from);
        int count = from.shape.rank() == 0 ? 1 : Math.toIntExact(from.shape.dim(0));
        float[][] rows = new float[count][];
        int width = count == 0 ? 0 : all.length / count;
        for (int i = 0; i < count; i++) {
            rows[i] = Arrays.copyOfRange(all, i * width, (i + 1) * width);
        }
        return rows;
    }

    /** The numbers of the first output. */
    public double[] doubles() {
        return read(first(), TensorElements::doubles);
    }

    /** The numbers of an output. */
    public double[] doubles(String name) {
        return read(output(name), TensorElements::doubles);
    }

    /** The whole numbers of the first output. */
    public long[] longs() {
        return read(first(), TensorElements::longs);
    }

    /** The whole numbers of an output of an integer type. A UINT64 above {@link Long#MAX_VALUE} becomes negative. */
    public long[] longs(String name) {
        return read(output(name), TensorElements::longs);
    }

    /** The truth values of an output of type BOOL. */
    public boolean[] booleans(String name) {
        return read(output(name), TensorElements::booleans);
    }

    /** The texts of the first output. */
    public String[] strings() {
        return read(first(), TensorElements::strings);
    }

    /** The elements of an output of type BYTES, as UTF-8. */
    public String[] strings(String name) {
        return read(output(name), TensorElements::strings);
    }

    /** The elements of an output of type BYTES. */
    public byte[][] bytes(String name) {
        return read(output(name), TensorElements::bytes);
    }

    /** The bytes of an output as they are in a tensor: little-endian, read-only. */
    public ByteBuffer buffer(String name) {
        return output(name).buffer().asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * The outputs as one record for each row. A component gets the value of the output of its name (or of its
     * {@link TensorName}) in that row: a number, boolean or String if that has one element, else an array.
     *
     * @throws ServingException NOT_FOUND for a component without an output; INVALID_ARGUMENT for one of another type, and
     *     for outputs with different numbers of rows
     */
    public <R extends Record> List<R> as(Class<R> type) {
        return RecordMapping.of(type).rows(type, this);
    }

    private interface Reader<T> {
        T read(ByteBuffer from, DataType type, int count);
    }

    private static <T> T read(Output from, Reader<T> reader) {
        try {
            return reader.read(from.buffer(), from.type, from.count());
        } catch (ServingException e) {
            throw ServingException.wrap(e.code(), "output '" + from.name + "': " + e.getMessage(), e);
        }
    }

    private Output first() {
        if (outputs.isEmpty()) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "the response of model '" + model() + "' has no output");
        }
        return outputs.get(0);
    }

    private Output output(String name) {
        for (Output one : outputs) {
            if (one.name.equals(name)) {
                return one;
            }
        }
        throw ServingException.of(
                ErrorCode.NOT_FOUND,
                "the response of model '" + model() + "' has no output '" + name + "' (expected one of: "
                        + String.join(", ", names()) + ")");
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(servable.toString());
        outputs.forEach(one ->
                text.append(' ').append(one.name).append(' ').append(one.type).append(one.shape));
        return text.toString();
    }
}
