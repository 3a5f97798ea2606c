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
 * Which model, version and signature a message is about: {@code tensorflow.serving.ModelSpec}. Immutable.
 *
 * @param name the model's name; may be empty, which is for the caller to refuse
 * @param version the version, or {@link ModelRef#ANY}
 * @param label the label instead of a version, or null
 * @param signature the signature's name, empty for the default one
 */
public record ModelSpec(String name, long version, @Nullable String label, String signature) {
    /** A model's highest version and its default signature. */
    public static ModelSpec of(String name) {
        return new ModelSpec(name, ModelRef.ANY, null, "");
    }

    /** One version. */
    public static ModelSpec of(String name, long version, String signature) {
        return new ModelSpec(name, version, null, signature);
    }

    /** What the engine is asked for. */
    public ModelRef ref() {
        return new ModelRef(name, version, label);
    }

    /** Reads the message that the reader's range holds. Of version and label, the one that came last counts. */
    public static ModelSpec read(ProtobufReader wire, StringInterner names) {
        return read(wire, names, null);
    }

    /**
     * As {@link #read(ProtobufReader, StringInterner)}, for a field that came before: what is not said now stays.
     *
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
            // -1 is nobody's version, though here it stands for none being named
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Servable not found for request: Specific(" + name + ", " + given + ")",
                    "versions are whole numbers from 0 on");
        }
        return new ModelSpec(name, version, label, signature);
    }

    /** Writes this as a message field. */
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
