// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.nereid.protobuf.ProtobufReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.function.IntConsumer;

/** Reads one protobuf message and those nested in it. Confined to one thread. */
final class Message {
    private static final int VARINT = ProtobufReader.VARINT;
    private static final int BYTES = ProtobufReader.BYTES;

    private final ProtobufReader wire = new ProtobufReader();
    private int tag;

    Message(byte[] bytes) {
        wire.reset(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
    }

    /** Calls {@code field} with the number of each field of the current range. What it does not read is skipped. */
    void fields(IntConsumer field) {
        while (wire.hasMore()) {
            tag = wire.readTag();
            int mine = tag;
            int before = wire.position();
            field.accept(tag >>> 3);
            if (wire.position() == before) {
                wire.skipField(mine);
            }
        }
    }

    /** As {@link #fields}, of the message that is the current field. */
    void nested(IntConsumer field) {
        if (isBytes()) {
            int outer = wire.enter();
            fields(field);
            wire.leave(outer);
        }
    }

    private boolean isBytes() {
        return (tag & 7) == BYTES;
    }

    String text() {
        ByteBuffer bytes = bytes();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(0, copy);
        return new String(copy, StandardCharsets.UTF_8);
    }

    /** The bytes of the current field, little-endian; a view of the message. */
    ByteBuffer bytes() {
        if (!isBytes()) {
            wire.skipField(tag);
            return ByteBuffer.allocate(0).order(ByteOrder.LITTLE_ENDIAN);
        }
        int length = wire.readLength();
        ByteBuffer view = wire.buffer().slice(wire.position(), length).order(ByteOrder.LITTLE_ENDIAN);
        wire.skip(length);
        return view;
    }

    /** The integer or bool of the current field. */
    long number() {
        if ((tag & 7) != VARINT) {
            wire.skipField(tag);
            return 0;
        }
        return wire.readVarint();
    }

    /** The double of the current field. */
    double real() {
        if ((tag & 7) != ProtobufReader.FIXED64) {
            wire.skipField(tag);
            return 0;
        }
        return Double.longBitsToDouble(wire.readFixed64());
    }

    /** The values of the current field, a repeated one: one value, or several that are packed. */
    void numbers(Runnable one) {
        if (!isBytes()) {
            one.run();
            return;
        }
        int outer = wire.enter();
        while (wire.hasMore()) {
            one.run();
        }
        wire.leave(outer);
    }

    long varint() {
        return wire.readVarint();
    }

    int fixed32() {
        return wire.readFixed32();
    }

    long fixed64() {
        return wire.readFixed64();
    }
}
