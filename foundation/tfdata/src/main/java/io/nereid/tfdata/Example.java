// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * A {@code tensorflow.Example}: features by name. Immutable.
 *
 * <pre>{@code
 * Example example = new Example(Map.of("age", Feature.ofLongs(42), "name", Feature.ofTexts("Ann")));
 * }</pre>
 *
 * @param features by name, in the order of the message
 */
public record Example(Map<String, Feature> features) {
    /**
     * Parses a serialized example.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a malformed message
     */
    public static Example parse(byte[] message) {
        ProtobufReader wire = new ProtobufReader();
        wire.reset(TensorProtoCodec.view(message));
        return read(wire, new StringInterner());
    }

    /**
     * Parses the message in the reader's range.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a malformed message
     */
    public static Example read(ProtobufReader wire, StringInterner names) {
        Map<String, Feature> features = new LinkedHashMap<>();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag != (1 << 3 | ProtobufReader.BYTES)) {
                wire.skipField(tag);
                continue;
            }
            int outer = wire.enter();
            readFeatures(wire, names, features);
            wire.leave(outer);
        }
        return new Example(features);
    }

    private static void readFeatures(ProtobufReader wire, StringInterner names, Map<String, Feature> features) {
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag != (1 << 3 | ProtobufReader.BYTES)) {
                wire.skipField(tag);
                continue;
            }
            int outer = wire.enter();
            String name = "";
            Feature feature = Feature.NONE;
            while (wire.hasMore()) {
                int inner = wire.readTag();
                switch (inner) {
                    case 1 << 3 | ProtobufReader.BYTES -> name = wire.readText(names);
                    case 2 << 3 | ProtobufReader.BYTES -> {
                        int around = wire.enter();
                        feature = Feature.read(wire);
                        wire.leave(around);
                    }
                    default -> wire.skipField(inner);
                }
            }
            wire.leave(outer);
            features.put(name, feature);
        }
    }

    /** Returns this example with those features of {@code context} that it does not define itself. */
    public Example withContext(Example context) {
        Map<String, Feature> all = new LinkedHashMap<>(context.features);
        all.putAll(features);
        return new Example(all);
    }

    /** Serializes the example. */
    public byte[] toBytes() {
        ProtobufWriter out = new ProtobufWriter();
        int list = out.begin(1);
        features.forEach((name, feature) -> {
            int entry = out.begin(1);
            out.textField(1, name);
            Objects.requireNonNull(feature).write(out, 2);
            out.end(entry);
        });
        out.end(list);
        return out.toByteArray();
    }
}
