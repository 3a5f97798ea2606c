// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.protocols.v2.memory.CudaInputs;
import io.nereid.protocols.v2.memory.SharedMemoryManager;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.tensor.DataType;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The readers, writers and buffers that one thread reuses for every message. Confined to that thread. */
public final class CodecBuffers {
    static final List<DataType> TYPES = List.of(DataType.values());
    static final String TYPE_NAMES = TYPES.stream().map(DataType::name).collect(Collectors.joining(", "));

    /** Far above what models have; up to it, the pairwise search for duplicate names is cheap. */
    static final int MAX_TENSORS = 4096;

    private static final int MAX_RANK = 256;

    /** The largest buffer that is kept after a message; larger ones are released. */
    private static final int KEPT = 32 << 20;

    public final JsonReader reader = new JsonReader();
    public final TensorReader tensors = new TensorReader(reader, true);
    public final ByteSink elements = new ByteSink(256);
    final ProtobufReader wire = new ProtobufReader();
    final StringInterner names = new StringInterner();
    public final GrpcInferReader grpcReader;
    boolean onCodecPool;

    /** Where the reader of a request puts the inputs that are to be copied from GPUs; empty between requests. */
    CudaInputs cuda = new CudaInputs();

    private final V2Options options;
    private final ProtobufWriter wireWriter = new ProtobufWriter();
    private JsonWriter writer;
    private byte[] text = new byte[4096];
    private long[] dims = new long[8];
    private final String[] recent = new String[8];
    private int oldest;

    CodecBuffers(V2Options options, SharedMemoryManager sharedMemory) {
        this.options = options;
        this.grpcReader = new GrpcInferReader(this, sharedMemory);
        this.writer = newWriter();
        Arrays.fill(recent, "");
    }

    private JsonWriter newWriter() {
        return new JsonWriter(4096).floatStyle(options.floatStyle());
    }

    /** An empty writer; what it wrote is valid until the next call on this thread. */
    public JsonWriter writer() {
        if (writer.array().length > KEPT) {
            writer = newWriter();
        }
        writer.reset();
        return writer;
    }

    /** An empty protobuf writer; what it wrote is valid until the next call on this thread. */
    ProtobufWriter wireWriter() {
        wireWriter.reset(KEPT);
        return wireWriter;
    }

    /** A buffer for the text of a request and the bytes that the reader needs after it. */
    public byte[] text(int length) {
        int needed = Math.addExact(length, JsonReader.SLACK);
        if (text.length < needed) {
            byte[] larger = new byte[Math.max(needed, needed > KEPT / 2 ? needed : needed * 2)];
            if (larger.length > KEPT) {
                return larger;
            }
            text = larger;
        }
        return text;
    }

    /**
     * Reads a string value; returns the same instance as before for one of the last eight names, without allocation.
     */
    String name() {
        reader.readText();
        for (String known : recent) {
            if (reader.textEquals(known)) {
                return known;
            }
        }
        String name = reader.name();
        if (name.length() <= 64) {
            recent[oldest] = name;
            oldest = (oldest + 1) % recent.length;
        }
        return name;
    }

    /** Rejects a request with more than {@link #MAX_TENSORS} inputs or outputs. */
    public static void checkCount(int tensors, String what) {
        if (tensors > MAX_TENSORS) {
            throw ServingException.invalidArgument("the request has more than " + MAX_TENSORS + " " + what);
        }
    }

    /** An array for at least {@code rank} dimensions that keeps the values written before. */
    long[] dims(int rank) {
        if (rank > MAX_RANK) {
            throw ServingException.invalidArgument("a shape has more than " + MAX_RANK + " dimensions");
        }
        if (dims.length < rank) {
            dims = Arrays.copyOf(dims, rank * 2);
        }
        return dims;
    }

    /** Hands over the inputs that are to be copied from GPUs; null when there are none. */
    @Nullable CudaInputs takeCuda() {
        if (cuda.isEmpty()) {
            return null;
        }
        CudaInputs taken = cuda;
        cuda = new CudaInputs();
        return taken;
    }

    /** Releases unusually large buffers after a message. */
    public void tidy() {
        elements.shrinkTo(KEPT);
    }
}
