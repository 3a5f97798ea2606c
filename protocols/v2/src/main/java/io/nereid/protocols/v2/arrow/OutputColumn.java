// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.SmallFloats;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * An output of a model as a column: its type in Arrow and its buffers. The values of most types are those of the tensor
 * itself; booleans become bits, 16-bit brain floats become FP32, and the bytes of texts are separated from their lengths.
 * Confined to one thread.
 */
final class OutputColumn {
    final Tensor tensor;

    /** The type of the values: of a BF16 tensor FP32, else that of the tensor. */
    final DataType type;

    /** Whether all elements of a BYTES tensor are texts in UTF-8. */
    final boolean utf8;

    /** The shape of a row; without dimensions for plain values. */
    final Shape row;

    final long rows;
    final long elements;

    /** The buffers after the one for nulls; null stands for the bytes of the tensor. */
    final byte[] @Nullable [] buffers;

    /** Reads an output, which the column does not own. */
    OutputColumn(Tensor tensor) {
        this.tensor = tensor;
        DataType given = tensor.dataType();
        this.type = given == DataType.BF16 ? DataType.FP32 : given;
        Shape shape = tensor.shape();
        this.rows = shape.rank() == 0 ? 1 : shape.dim(0);
        boolean plain = shape.rank() < 2 || (shape.rank() == 2 && shape.dim(1) == 1);
        this.row = plain ? Shape.SCALAR : shape.withoutFirst();
        this.elements = shape.elementCount();
        ByteBuffer bytes = tensor.buffer();
        switch (given) {
            case BYTES -> {
                byte[] offsets = new byte[Math.toIntExact(4 * elements + 4)];
                byte[] data = new byte[Math.toIntExact(bytes.remaining() - 4 * elements)];
                this.utf8 = split(bytes, offsets, data);
                this.buffers = new byte[][] {offsets, data};
            }
            case BOOL -> {
                this.utf8 = false;
                this.buffers = new byte[][] {bits(bytes)};
            }
            case BF16 -> {
                this.utf8 = false;
                this.buffers = new byte[][] {widened(bytes)};
            }
            default -> {
                this.utf8 = false;
                this.buffers = new byte[][] {null};
            }
        }
    }

    /** Separates texts from their lengths; returns whether all are UTF-8. */
    private static boolean split(ByteBuffer bytes, byte[] offsets, byte[] data) {
        ByteBuffer ends = ByteBuffer.wrap(offsets).order(ByteOrder.LITTLE_ENDIAN);
        boolean text = true;
        int at = 0;
        int to = 0;
        for (int i = 4; i < offsets.length; i += 4) {
            int length = bytes.getInt(at);
            bytes.get(at + 4, data, to, length);
            text = text && RestInferWriter.isText(data, to, length);
            at += 4 + length;
            to += length;
            ends.putInt(i, to);
        }
        return text;
    }

    private static byte[] bits(ByteBuffer bytes) {
        byte[] bits = new byte[(bytes.remaining() + 7) / 8];
        for (int i = 0; i < bytes.remaining(); i++) {
            bits[i >> 3] |= (byte) ((bytes.get(i) != 0 ? 1 : 0) << (i & 7));
        }
        return bits;
    }

    private static byte[] widened(ByteBuffer bytes) {
        ByteBuffer wide =
                ByteBuffer.allocate(Math.multiplyExact(2, bytes.remaining())).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < bytes.remaining(); i += 2) {
            wide.putFloat(2 * i, SmallFloats.bf16ToFloat(bytes.getShort(i)));
        }
        return wide.array();
    }

    /** The number of bytes of a buffer. */
    int length(int buffer) {
        byte[] own = buffers[buffer];
        return own == null ? tensor.byteLength() : own.length;
    }
}
