// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.spi.ModelRef;
import org.jspecify.annotations.Nullable;

/**
 * The model, version and signature that a message refers to: {@code tensorflow.serving.ModelSpec}. Immutable.
 *
 * @param name the model's name; an empty name is allowed here, the caller rejects it
 * @param version the version number, or {@link ModelRef#ANY}
 * @param label the version label instead of a version number, or null
 * @param signature the signature's name; empty for the default signature
 */
public record ModelSpec(String name, long version, @Nullable String label, String signature) {
    /** Refers to the highest version of a model and its default signature. */
    public static ModelSpec of(String name) {
        return new ModelSpec(name, ModelRef.ANY, null, "");
    }

    /** Refers to one version. */
    public static ModelSpec of(String name, long version, String signature) {
        return new ModelSpec(name, version, null, signature);
    }

    /** Converts this to the reference that the engine takes. */
    public ModelRef ref() {
        return new ModelRef(name, version, label);
    }

    /** Parses the message in the reader's range. Of version and label, the last field wins (they are a oneof). */
    public static ModelSpec read(ProtobufReader wire, StringInterner names) {
        return read(wire, names, null);
    }

    /**
     * As {@link #read(ProtobufReader, StringInterner)}, merged into an earlier occurrence of the field.
     *
     * @param before the earlier value, or null
     * @throws ServingException NOT_FOUND for a version below 0
     */
    public static ModelSpec read(ProtobufReader wire, StringInterner names, @Nullable ModelSpec before) {
        String name = before == null ? "" : before.name;
        long version = before == null ? ModelRef.ANY : before.version;
        String label = before == null ? null : before.label;
        String signature = before == null ? "" : before.signature;
        long given = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = wire.readText(names);
                case 2 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    version = 0;
                    label = null;
                    while (wire.hasMore()) {
                        int inner = wire.readTag();
                        if (inner == (1 << 3 | ProtobufReader.VARINT)) {
                            version = wire.readVarint();
                        } else {
                            wire.skipField(inner);
                        }
                    }
                    wire.leave(outer);
                    given = version;
                }
                case 3 << 3 | ProtobufReader.BYTES -> signature = wire.readText(names);
                case 4 << 3 | ProtobufReader.BYTES -> {
                    label = wire.readText(names);
                    version = ModelRef.ANY;
                    given = 0;
                }
                default -> wire.skipField(tag);
            }
        }
        if (given < 0) {
            // versions are never negative; -1 would otherwise be taken for ModelRef.ANY
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Servable not found for request: Specific(" + name + ", " + given + ")",
                    "versions are whole numbers from 0 on");
        }
        return new ModelSpec(name, version, label, signature);
    }

    /** Writes this spec as a message field. */
    public void write(ProtobufWriter out, int field) {
        int message = out.begin(field);
        out.textField(1, name);
        if (label != null) {
            out.textField(3, signature);
            out.presentTextField(4, label);
        } else {
            if (version != ModelRef.ANY) {
                int wrapper = out.begin(2);
                if (version != 0) {
                    out.varintField(1, version);
                }
                out.end(wrapper);
            }
            out.textField(3, signature);
        }
        out.end(message);
    }
}
