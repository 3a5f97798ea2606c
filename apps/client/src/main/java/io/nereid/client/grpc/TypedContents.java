// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.nereid.client.infer.TensorDataType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Collects InferTensorContents, the form of outputs that servers without raw contents use, as 64-bit values or BYTES. Confined
 * to one thread.
 */
final class TypedContents {
    private final Message message;
    private ByteBuffer values = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);

    TypedContents(Message message) {
        this.message = message;
    }

    private ByteBuffer ensure(int more) {
        if (values.remaining() < more) {
            values = ByteBuffer.allocate(Math.max(values.capacity() * 2, values.position() + more))
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .put(values.flip());
        }
        return values;
    }

    void field(int number) {
        switch (number) {
            case 1, 2, 3, 4, 5 -> message.numbers(() -> ensure(8).putLong(message.varint()));
            case 6 -> message.numbers(() -> ensure(8).putLong(Integer.toUnsignedLong(message.fixed32())));
            case 7 -> message.numbers(() -> ensure(8).putLong(message.fixed64()));
            case 8 -> {
                ByteBuffer element = message.bytes();
                ensure(4 + element.remaining()).putInt(element.remaining()).put(element);
            }
            default -> {
                // contents of a newer version
            }
        }
    }

    /** The elements as they are on the wire in raw form. */
    ByteBuffer bytes(TensorDataType type) {
        ByteBuffer all = values.duplicate().order(ByteOrder.LITTLE_ENDIAN).flip();
        if (type.size() == 0 || type.size() == 8) {
            return all;
        }
        int count = all.remaining() / 8;
        ByteBuffer narrow = ByteBuffer.allocate(count * type.size()).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            long value = all.getLong();
            switch (type.size()) {
                case 1 -> narrow.put((byte) value);
                case 2 -> narrow.putShort((short) value);
                default -> narrow.putInt((int) value);
            }
        }
        return narrow.flip();
    }
}
