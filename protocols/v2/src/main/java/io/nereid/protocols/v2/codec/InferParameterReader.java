// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.StringInterner;
import org.jspecify.annotations.Nullable;

/** Decodes the entries of a protobuf map from names to {@code InferParameter}. Confined to one thread. */
final class InferParameterReader {
    private final ProtobufReader wire;
    private final StringInterner names;
    private String key = "";
    private @Nullable Object value;

    InferParameterReader(ProtobufReader wire, StringInterner names) {
        this.wire = wire;
        this.names = names;
    }

    String key() {
        return key;
    }

    /** The value: a Boolean, Long, Double or String, or null when none is set. */
    @Nullable Object value() {
        return value;
    }

    /** Reads the next entry, which begins with its length. */
    void readEntry() {
        key = "";
        value = null;
        int length = wire.readLength();
        int outer = wire.end();
        int end = wire.position() + length;
        wire.range(wire.position(), end);
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> key = wire.readText(names);
                case 2 << 3 | ProtobufReader.BYTES -> readValue();
                default -> wire.skipField(tag);
            }
        }
        wire.range(end, outer);
    }

    private void readValue() {
        int length = wire.readLength();
        int outer = wire.end();
        int end = wire.position() + length;
        wire.range(wire.position(), end);
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.VARINT -> value = wire.readVarint() != 0;
                case 2 << 3 | ProtobufReader.VARINT -> value = wire.readVarint();
                case 3 << 3 | ProtobufReader.BYTES -> value = wire.readText(names);
                case 4 << 3 | ProtobufReader.FIXED64 -> value = Double.longBitsToDouble(wire.readFixed64());
                case 5 << 3 | ProtobufReader.VARINT -> value = unsigned(wire.readVarint());
                default -> wire.skipField(tag);
            }
        }
        wire.range(end, outer);
    }

    private Long unsigned(long bits) {
        if (bits < 0) {
            throw ServingException.invalidArgument("value " + Long.toUnsignedString(bits)
                    + " of a uint64_param is too large (expected: at most " + Long.MAX_VALUE + ")");
        }
        return bits;
    }
}
