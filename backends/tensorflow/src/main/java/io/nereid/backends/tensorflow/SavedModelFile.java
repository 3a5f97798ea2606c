// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.StringInterner;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Reads tags and signatures from {@code saved_model.pb} without TensorFlow, so that a model is checked before 650 MB of
 * native library are loaded for it. Confined to one load.
 *
 * <p>Field numbers are those of TensorFlow's saved_model.proto and meta_graph.proto.
 */
final class SavedModelFile {
    static final String NAME = "saved_model.pb";
    static final String SERVE = "serve";

    private final ProtobufReader in = new ProtobufReader();
    private final StringInterner names = new StringInterner();

    private SavedModelFile() {}

    /**
     * A {@code MetaGraphDef} of the file.
     *
     * @param tags the tags that select it
     * @param signatures the signatures by name
     * @param variables whether it has variables, whose values are in other files
     */
    record MetaGraph(Set<String> tags, Map<String, SignatureFacts> signatures, boolean variables) {}

    /**
     * A {@code SignatureDef}.
     *
     * @param method the method name, such as {@code tensorflow/serving/predict}; may be empty
     * @param inputs the inputs, sorted by name
     * @param outputs the outputs, sorted by name
     */
    record SignatureFacts(String method, List<TensorFacts> inputs, List<TensorFacts> outputs) {}

    /**
     * A {@code TensorInfo}.
     *
     * @param name the name that clients use
     * @param tensor the name in the graph, {@code operation:output}; empty when it is not a single dense tensor
     * @param type TensorFlow's data type number
     * @param shape the shape; null when the rank is unknown
     * @param defaultValue a serialised TensorProto that is used when the input is left out, or null
     */
    record TensorFacts(
            String name, String tensor, int type, @Nullable Shape shape, byte @Nullable [] defaultValue) {}

    /**
     * Reads the graphs of a file.
     *
     * @throws ServingException INVALID_ARGUMENT when the file is not a SavedModel, or is damaged
     */
    static List<MetaGraph> read(Path file) throws IOException {
        ByteBuffer bytes;
        try (FileChannel channel = FileChannel.open(file)) {
            if (channel.size() > Integer.MAX_VALUE) {
                throw ServingException.invalidArgument(
                        "'" + file + "' has " + channel.size() + " bytes (expected: < 2 GiB)",
                        "export the model again");
            }
            bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size())
                    .order(ByteOrder.LITTLE_ENDIAN);
        }
        List<MetaGraph> graphs;
        try {
            graphs = new SavedModelFile().savedModel(bytes);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(
                    "'" + file + "' is not a SavedModel: " + e.getMessage(),
                    "it may be damaged or truncated: copy it again, or export the model again");
        }
        if (graphs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "'" + file + "' does not contain a graph", "export the model with tf.saved_model.save");
        }
        return graphs;
    }

    private List<MetaGraph> savedModel(ByteBuffer bytes) {
        List<MetaGraph> graphs = new ArrayList<>();
        in.reset(bytes);
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (2 << 3 | ProtobufReader.BYTES)) {
                inside(() -> graphs.add(metaGraph()));
            } else {
                in.skipField(tag);
            }
        }
        return graphs;
    }

    /** Reads a length-prefixed message with the reader's range limited to it, and continues after it. */
    private void inside(Runnable message) {
        int end = in.end();
        int length = in.readLength();
        int to = in.position() + length;
        in.range(in.position(), to);
        message.run();
        in.range(to, end);
    }

    private MetaGraph metaGraph() {
        Set<String> tags = new TreeSet<>();
        Map<String, SignatureFacts> signatures = new TreeMap<>();
        boolean variables = false;
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                inside(() -> tags(tags));
            } else if (tag == (5 << 3 | ProtobufReader.BYTES)) {
                inside(() -> entry(name -> signatures.put(name, signature())));
            } else {
                // saver_def = 3 describes how variables are restored; a graph without variables does not have it.
                variables |= tag == (3 << 3 | ProtobufReader.BYTES);
                in.skipField(tag);
            }
        }
        return new MetaGraph(tags, signatures, variables);
    }

    private void tags(Set<String> tags) {
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (4 << 3 | ProtobufReader.BYTES)) {
                tags.add(in.readText(names));
            } else {
                in.skipField(tag);
            }
        }
    }

    /** Reads the value of a map entry. */
    private interface Value {
        void read(String key);
    }

    /**
     * Reads a map entry. TensorFlow writes the key first, but protobuf allows either order, so the value's position is
     * remembered and the value is read last.
     */
    private void entry(Value value) {
        String key = "";
        int from = -1;
        int to = -1;
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                key = in.readText(names);
            } else if (tag == (2 << 3 | ProtobufReader.BYTES)) {
                int length = in.readLength();
                from = in.position();
                to = from + length;
                in.skip(length);
            } else {
                in.skipField(tag);
            }
        }
        in.range(Math.max(0, from), Math.max(0, to));
        value.read(key);
    }

    private SignatureFacts signature() {
        List<TensorFacts> inputs = new ArrayList<>();
        List<TensorFacts> outputs = new ArrayList<>();
        Map<String, byte[]> defaults = new TreeMap<>();
        String[] method = {""};
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> inside(() -> entry(name -> inputs.add(tensor(name))));
                case 2 << 3 | ProtobufReader.BYTES -> inside(() -> entry(name -> outputs.add(tensor(name))));
                case 3 << 3 | ProtobufReader.BYTES -> method[0] = in.readText(names);
                case 4 << 3 | ProtobufReader.BYTES -> inside(() -> entry(name -> defaults.put(name, rest())));
                default -> in.skipField(tag);
            }
        }
        inputs.replaceAll(t -> new TensorFacts(t.name, t.tensor, t.type, t.shape, defaults.get(t.name)));
        inputs.sort(Comparator.comparing(TensorFacts::name));
        outputs.sort(Comparator.comparing(TensorFacts::name));
        return new SignatureFacts(method[0], List.copyOf(inputs), List.copyOf(outputs));
    }

    private byte[] rest() {
        byte[] bytes = new byte[in.end() - in.position()];
        in.buffer().get(in.position(), bytes);
        in.skip(bytes.length);
        return bytes;
    }

    private TensorFacts tensor(String name) {
        String tensor = "";
        int type = 0;
        @Nullable Shape[] shape = {Shape.SCALAR};
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> tensor = in.readText(names);
                case 2 << 3 | ProtobufReader.VARINT -> type = (int) in.readVarint();
                case 3 << 3 | ProtobufReader.BYTES -> inside(() -> shape[0] = shape());
                default -> in.skipField(tag);
            }
        }
        return new TensorFacts(name, tensor, type, shape[0], null);
    }

    private @Nullable Shape shape() {
        List<Long> dims = new ArrayList<>();
        boolean[] unknown = {false};
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 2 << 3 | ProtobufReader.BYTES -> inside(() -> dims.add(size()));
                case 3 << 3 | ProtobufReader.VARINT -> unknown[0] = in.readVarint() != 0;
                default -> in.skipField(tag);
            }
        }
        return unknown[0]
                ? null
                : Shape.of(dims.stream().mapToLong(d -> Math.max(-1, d)).toArray());
    }

    private long size() {
        long size = 0;
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (1 << 3 | ProtobufReader.VARINT)) {
                size = in.readVarint();
            } else {
                in.skipField(tag);
            }
        }
        return size;
    }
}
