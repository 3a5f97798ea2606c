// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The examples of one request and the context that they share: {@code tensorflow.serving.Input}. Holds the serialized
 * messages and parses them on demand. Immutable, provided that the arrays are not changed.
 */
public final class ExampleList {
    private final List<byte[]> messages;
    private final byte @Nullable [] context;

    private ExampleList(List<byte[]> messages, byte @Nullable [] context) {
        this.messages = messages;
        this.context = context;
    }

    /**
     * Serializes examples.
     *
     * @param context features that all examples share; null for none
     */
    public static ExampleList of(List<Example> examples, @Nullable Example context) {
        return new ExampleList(
                examples.stream().map(Example::toBytes).toList(), context == null ? null : context.toBytes());
    }

    /** Parses the {@code Input} message in the reader's range. */
    public static ExampleList read(ProtobufReader wire) {
        List<byte[]> messages = new ArrayList<>();
        byte[] context = null;
        int kind = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag != (1 << 3 | ProtobufReader.BYTES) && tag != (2 << 3 | ProtobufReader.BYTES)) {
                wire.skipField(tag);
                continue;
            }
            if (kind != tag) {
                // a oneof: the last field replaces the earlier one
                messages.clear();
                context = null;
                kind = tag;
            }
            int outer = wire.enter();
            while (wire.hasMore()) {
                int inner = wire.readTag();
                if (inner == (1 << 3 | ProtobufReader.BYTES)) {
                    messages.add(bytes(wire));
                } else if (inner == (2 << 3 | ProtobufReader.BYTES) && tag >>> 3 == 2) {
                    context = context == null ? bytes(wire) : join(context, bytes(wire));
                } else {
                    wire.skipField(inner);
                }
            }
            wire.leave(outer);
        }
        return new ExampleList(messages, context);
    }

    private static byte[] bytes(ProtobufReader wire) {
        byte[] bytes = new byte[wire.readLength()];
        wire.buffer().get(wire.position(), bytes);
        wire.skip(bytes.length);
        return bytes;
    }

    private static byte[] join(byte[] a, byte[] b) {
        byte[] both = java.util.Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, both, a.length, b.length);
        return both;
    }

    /** Number of examples. */
    public int size() {
        return messages.size();
    }

    /**
     * The {@code i}-th example as a serialized {@code tensorflow.Example}: the context's bytes followed by the
     * example's, because concatenated protobuf messages merge.
     */
    public byte[] message(int i) {
        return context == null ? messages.get(i) : join(context, messages.get(i));
    }

    /** Parses all examples. Each one contains the context's features that it does not define itself. */
    public List<Example> all() {
        ProtobufReader wire = new ProtobufReader();
        StringInterner names = new StringInterner();
        Example shared = null;
        if (context != null) {
            wire.reset(TensorProtoCodec.view(context));
            shared = Example.read(wire, names);
        }
        List<Example> all = new ArrayList<>(messages.size());
        for (byte[] message : messages) {
            wire.reset(TensorProtoCodec.view(message));
            Example example = Example.read(wire, names);
            all.add(shared == null ? example : example.withContext(shared));
        }
        return all;
    }

    /** Writes this list as an {@code Input} field. */
    public void write(ProtobufWriter out, int field) {
        int input = out.begin(field);
        int list = out.begin(context == null ? 1 : 2);
        for (byte[] message : messages) {
            out.bytesField(1, message);
        }
        if (context != null) {
            out.bytesField(2, context);
        }
        out.end(list);
        out.end(input);
    }
}
