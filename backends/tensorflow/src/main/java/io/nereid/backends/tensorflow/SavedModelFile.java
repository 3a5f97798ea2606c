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
 * What {@code saved_model.pb} says of tags and signatures, read without the engine. Confined to one load.
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
     * One graph of the file.
     *
     * @param tags by which it is chosen
     * @param signatures in the order of their names
     * @param variables whether values of variables belong to it
     */
    record MetaGraph(Set<String> tags, Map<String, SignatureFacts> signatures, boolean variables) {}

    /**
     * A signature as the file has it.
     *
     * @param method such as {@code tensorflow/serving/predict}; may be empty
     * @param inputs in the order of their names
     * @param outputs likewise
     */
    record SignatureFacts(String method, List<TensorFacts> inputs, List<TensorFacts> outputs) {}

    /**
     * A tensor of a signature.
     *
     * @param name the name that clients use
     * @param tensor the name in the graph, {@code operation:output}; empty when it is not a single dense tensor
     * @param type TensorFlow's number
     * @param shape null when nothing is known of it
     * @param defaultValue a serialised TensorProto for when the input is left out, or null
     */
    record TensorFacts(
            String name, String tensor, int type, @Nullable Shape shape, byte @Nullable [] defaultValue) {}

    /**
     * The graphs of a file.
     *
     * @throws ServingException INVALID_ARGUMENT when it is not what it should be
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
                    "it may be damaged or cut off: copy it again, or export the model again");
        }
        if (graphs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "'" + file + "' has no graph in it", "export the model with tf.saved_model.save");
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

    /** Reads a message that begins with its length, and stands behind it. */
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
                // How variables are saved and restored; absent where there are none.
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

    /** What reads the value of a map's entry. */
    private interface Value {
        void read(String key);
    }

    /** An entry of a map: the key comes first in every file that TensorFlow writes, but need not. */
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
        Shape[] shape = {Shape.SCALAR};
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
