// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.tensor.DataType;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** The tools that one thread uses again for every message. Confined to that thread. */
final class Workbench {
    static final List<DataType> TYPES = List.of(DataType.values());
    static final String TYPE_NAMES = TYPES.stream().map(DataType::name).collect(Collectors.joining(", "));

    /** Far above what models have; below it, looking for duplicates pair by pair costs nothing to speak of. */
    static final int MAX_TENSORS = 4096;

    private static final int MAX_RANK = 256;

    /** What is kept after an unusually large message; the rest goes back to the heap. */
    private static final int KEPT = 32 << 20;

    final JsonReader reader = new JsonReader();
    final TensorReader tensors = new TensorReader(reader, true);
    final ByteSink elements = new ByteSink(256);
    final ProtobufReader wire = new ProtobufReader();
    final StringInterner names = new StringInterner();
    final GrpcInferReader grpcReader;
    boolean onCodecPool;

    private final V2Options options;
    private final ProtobufWriter wireWriter = new ProtobufWriter();
    private JsonWriter writer;
    private byte[] text = new byte[4096];
    private long[] dims = new long[8];
    private final String[] recent = new String[8];
    private int oldest;

    Workbench(V2Options options, SharedMemory sharedMemory) {
        this.options = options;
        this.grpcReader = new GrpcInferReader(this, sharedMemory);
        this.writer = newWriter();
        Arrays.fill(recent, "");
    }

    private JsonWriter newWriter() {
        return new JsonWriter(4096).floatStyle(options.floatStyle());
    }

    /** An empty writer; what it wrote is valid until the next call on this thread. */
    JsonWriter writer() {
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

    /** Room for the text of a request and the reader's slack. */
    byte[] text(int length) {
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

    /** Reads a string value, as the same string again when it was read lately. */
    String name() {
        reader.readText();
        for (String known : recent) {
            if (reader.textEquals(known)) {
                return known;
            }
        }
        String name = reader.text();
        if (name.length() <= 64) {
            recent[oldest] = name;
            oldest = (oldest + 1) % recent.length;
        }
        return name;
    }

    /** Refuses a request with absurdly many inputs or outputs. */
    static void checkCount(int tensors, String what) {
        if (tensors > MAX_TENSORS) {
            throw ServingException.invalidArgument("the request has more than " + MAX_TENSORS + " " + what);
        }
    }

    /** Room for at least {@code rank} dimensions; what was in it stays. */
    long[] dims(int rank) {
        if (rank > MAX_RANK) {
            throw ServingException.invalidArgument("a shape has more than " + MAX_RANK + " dimensions");
        }
        if (dims.length < rank) {
            dims = Arrays.copyOf(dims, rank * 2);
        }
        return dims;
    }

    /** Forgets the large parts of what the last message needed. */
    void tidy() {
        elements.shrinkTo(KEPT);
    }
}
