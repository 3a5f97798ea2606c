// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorByteSize;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorData;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorRealloc;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteOk;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.tensorflowlite.TfLiteTensor;

/**
 * Converts string tensors between length-prefixed bytes and TensorFlow Lite's string buffer: the number of strings, the
 * offset of each string and of the end, all 32 bits, then the strings' bytes. Immutable.
 */
final class StringTensors {
    private StringTensors() {}

    static void encode(Tensor input, TfLiteTensor tensor) {
        int count = (int) input.shape().elementCount();
        ByteBuffer in = input.buffer();
        int head = 4 * (count + 2);
        long size = head + (long) input.byteLength() - 4L * count;
        if (size > Integer.MAX_VALUE - 64) {
            throw LiteInterpreter.tooLarge("input '" + input.name() + "'", size);
        }
        ByteBuffer out = ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(0, count);
        int at = head;
        for (int i = 0; i < count; i++) {
            int length = in.getInt();
            out.putInt(4 + 4 * i, at);
            out.put(at, in, in.position(), length);
            in.position(in.position() + length);
            at += length;
        }
        out.putInt(4 + 4 * count, at);
        if (TfLiteTensorRealloc(size, tensor) != kTfLiteOk) {
            throw ServingException.of(ErrorCode.INTERNAL, "no memory for input '" + input.name() + "'");
        }
        new NativePointer(TfLiteTensorData(tensor).address()).bytes().put(out.array());
    }

    static Tensor decode(String name, Shape shape, TfLiteTensor tensor) {
        long elements = shape.elementCount();
        if (elements == 0) {
            return Tensor.over(name, DataType.BYTES, shape, MemoryRegion.empty(), 0, 0);
        }
        long size = TfLiteTensorByteSize(tensor);
        if (size > Integer.MAX_VALUE - 64) {
            throw LiteInterpreter.tooLarge("output '" + name + "'", size);
        }
        byte[] all = new byte[(int) size];
        BytePointer data = new NativePointer(TfLiteTensorData(tensor).address()).bytes();
        data.get(all);
        ByteBuffer in = ByteBuffer.wrap(all).order(ByteOrder.LITTLE_ENDIAN);
        int count = in.getInt(0);
        if (count != elements) {
            throw ServingException.of(
                    ErrorCode.INTERNAL, "output '" + name + "' of shape " + shape + " has " + count + " texts");
        }
        ByteBuffer out = ByteBuffer.allocate(all.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            int from = in.getInt(4 + 4 * i);
            int length = in.getInt(8 + 4 * i) - from;
            out.putInt(length).put(all, from, length);
        }
        return Tensor.over(
                name, DataType.BYTES, shape, MemoryRegion.copyOf(out.array(), 0, out.position()), 0, out.position());
    }
}
