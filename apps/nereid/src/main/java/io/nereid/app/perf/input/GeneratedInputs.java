// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import io.nereid.app.perf.input.ModelSignature.Input;
import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Inputs that are made up from the shapes of a model: zeros, or random numbers that most models accept. Floats are from 0 to 1,
 * integers from 0 to 99, as identifiers of words and categories are small. Confined to one thread.
 */
public final class GeneratedInputs {
    private static final int INTEGERS = 100;
    private static final int LARGEST = 1 << 30;
    private static final String LETTERS = "abcdefghijklmnopqrstuvwxyz ";

    private final ModelSignature signature;
    private final Map<String, Shape> shapes;
    private final int stringLength;
    private final Random random;

    /**
     * @param shapes the shapes of the elements, without the batch dimension
     * @param stringLength the length of each text of an input of type BYTES
     */
    public GeneratedInputs(ModelSignature signature, Map<String, Shape> shapes, int stringLength, long seed) {
        this.signature = signature;
        this.shapes = shapes;
        this.stringLength = stringLength;
        this.random = new Random(seed);
    }

    /**
     * Makes a request.
     *
     * @param zero whether all elements are zero, and texts empty
     * @throws ServingException INVALID_ARGUMENT for an input whose shape is not determined, or that is too large
     */
    public RequestSample next(int batchSize, boolean zero) {
        List<TensorData> inputs = new ArrayList<>();
        for (Input input : signature.inputs()) {
            Shape element = shapes.getOrDefault(input.name(), signature.element(input));
            if (element.isDynamic()) {
                if (input.optional()) {
                    continue;
                }
                throw ServingException.invalidArgument(
                        "the shape of input '" + input.name() + "' is " + element
                                + ", and a size of it is missing (expected: a number for each -1)",
                        "give it as --shape " + input.name() + ":" + example(element));
            }
            Shape whole = signature.whole(element, batchSize);
            inputs.add(new TensorData(
                    input.name(), input.dataType(), whole, bytes(input.name(), input.dataType(), whole, zero)));
        }
        return new RequestSample(List.copyOf(inputs));
    }

    private static String example(Shape shape) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < shape.rank(); i++) {
            text.append(i == 0 ? "" : ",").append(shape.dim(i) < 0 ? 8 : shape.dim(i));
        }
        return text.toString();
    }

    private byte[] bytes(String name, DataType type, Shape shape, boolean zero) {
        long count = shape.elementCount();
        int each = type == DataType.BYTES ? Integer.BYTES + (zero ? 0 : stringLength) : type.size();
        if (count > LARGEST / each) {
            throw ServingException.invalidArgument("input '" + name + "' of shape " + shape + " has " + count
                    + " elements (expected: at most 1 GiB of data)");
        }
        ByteBuffer to = ByteBuffer.allocate(Math.toIntExact(count * each)).order(ByteOrder.LITTLE_ENDIAN);
        for (long i = 0; !zero && i < count; i++) {
            element(type, to);
        }
        return to.array();
    }

    private void element(DataType type, ByteBuffer to) {
        switch (type) {
            case FP32 -> to.putFloat(random.nextFloat());
            case FP64 -> to.putDouble(random.nextDouble());
            case FP16 -> to.putShort(SmallFloats.fp16(random.nextFloat()));
            case BF16 -> to.putShort(SmallFloats.bf16(random.nextFloat()));
            case BOOL -> to.put((byte) random.nextInt(2));
            case BYTES -> {
                to.putInt(stringLength);
                for (int i = 0; i < stringLength; i++) {
                    to.put((byte) LETTERS.charAt(random.nextInt(LETTERS.length())));
                }
            }
            default -> {
                int value = random.nextInt(INTEGERS);
                switch (type.size()) {
                    case 1 -> to.put((byte) value);
                    case 2 -> to.putShort((short) value);
                    case 4 -> to.putInt(value);
                    default -> to.putLong(value);
                }
            }
        }
    }
}
