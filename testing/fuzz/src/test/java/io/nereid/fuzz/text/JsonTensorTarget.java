// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.TensorReader;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * An array of JSON as a tensor of the type that the first byte chooses. Read without a shape and read into the shape that was found,
 * it has the same bytes; the number of elements is the product of the shape. Confined to one thread.
 */
public final class JsonTensorTarget implements FuzzTarget {
    private final ByteSink sink = new ByteSink(1024);
    private final ByteSink elements = new ByteSink(1024);

    @Override
    public void read(byte[] input) {
        if (input.length == 0) {
            return;
        }
        DataType type = DataType.values()[(input[0] & 0x7f) % DataType.values().length];
        boolean base64 = input[0] < 0;
        byte[] text = Arrays.copyOfRange(input, 1, input.length);
        TensorReader reader = new TensorReader(json(text), base64);
        sink.reset();
        reader.readNested(type, sink);
        long product = 1;
        for (long dim : reader.dims()) {
            product *= dim;
        }
        if (product != reader.count()) {
            throw new AssertionError(reader.count() + " elements of shape " + Arrays.toString(reader.dims()));
        }
        if (type.isFixedSize() && sink.length() != product * type.size()) {
            throw new AssertionError(sink.length() + " bytes of shape " + Arrays.toString(reader.dims()));
        }
        if (reader.rank() == 0) {
            return;
        }
        Tensor tensor;
        try {
            tensor = new TensorReader(json(text), base64).readTensor("t", type, Shape.of(reader.dims()), elements);
        } catch (ServingException e) {
            throw new AssertionError(
                    "read without a shape, and refused with shape " + Arrays.toString(reader.dims()), e);
        }
        try (tensor) {
            byte[] bytes = new byte[tensor.byteLength()];
            tensor.buffer().get(0, bytes);
            if (!Arrays.equals(bytes, 0, bytes.length, sink.array(), 0, sink.length())) {
                throw new AssertionError("other bytes with a shape than without");
            }
        }
    }

    private static JsonReader json(byte[] text) {
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
        return reader;
    }

    @Override
    public List<byte[]> seeds() {
        List<byte[]> seeds = new ArrayList<>();
        for (DataType type : DataType.values()) {
            String text = switch (type) {
                case BOOL -> "[[true,false],[1,0]]";
                case BYTES -> "[\"a\",\"\\u00e9\",{\"b64\":\"AAE=\"}]";
                case FP16, BF16, FP32, FP64 -> "[[1.5,-2e3,0.1],[NaN,Infinity,1e-40]]";
                default -> "[[1,2,3],[4,5,127]]";
            };
            byte[] bytes = ("x" + text).getBytes(StandardCharsets.UTF_8);
            bytes[0] = (byte) (type == DataType.BYTES ? type.ordinal() | 0x80 : type.ordinal());
            seeds.add(bytes);
        }
        return seeds;
    }
}
