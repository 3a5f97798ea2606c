// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads {@code PredictRequest} and {@code PredictResponse} messages. Tensors become views of the message where
 * possible. First {@code scanRequest} or {@code scanResponse} locates the parts, then {@link #tensors} converts them,
 * so that the caller can decide by {@link #bytesToConvert} on which thread to convert. Confined to one thread, which
 * reuses the reader for many messages.
 */
public final class PredictMessageReader {
    private static final int MAX_TENSORS = 4096;

    private final ProtobufReader wire;
    private final StringInterner names;
    private final TensorProtoCodec protos;
    private final ArrayList<String> tensorNames = new ArrayList<>();
    private int[] bounds = new int[16];
    private ArrayList<RequestedOutput> filter = new ArrayList<>();
    private @Nullable ModelSpec spec;
    private long bytesToConvert;
    private MemoryRegion message = MemoryRegion.empty();

    /** Creates a reader that shares the given wire reader and string cache. */
    public PredictMessageReader(ProtobufReader wire, StringInterner names) {
        this.wire = wire;
        this.names = names;
        this.protos = new TensorProtoCodec(wire);
    }

    /** Scans a {@code PredictRequest}. The caller keeps the region alive until {@link #tensors} has returned. */
    public void scanRequest(MemoryRegion region) {
        wire.reset(region.buffer(0, region.size()));
        scan(region, 1, 2, 3);
    }

    /** Scans a {@code PredictResponse}, as {@link #scanRequest}. */
    public void scanResponse(MemoryRegion region) {
        wire.reset(region.buffer(0, region.size()));
        scan(region, 2, 1, -1);
    }

    private void scan(MemoryRegion region, int specField, int tensorField, int filterField) {
        message = region;
        spec = null;
        tensorNames.clear();
        if (!filter.isEmpty()) {
            filter = new ArrayList<>();
        }
        bytesToConvert = 0;
        protos.begin();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            int field = tag >>> 3;
            if ((tag & 7) != ProtobufReader.BYTES) {
                wire.skipField(tag);
            } else if (field == tensorField) {
                int outer = wire.enter();
                scanEntry();
                wire.leave(outer);
            } else if (field == specField) {
                int outer = wire.enter();
                spec = ModelSpec.read(wire, names, spec);
                wire.leave(outer);
            } else if (field == filterField) {
                filter.add(new RequestedOutput(wire.readText(names), 0));
            } else {
                wire.skipField(tag);
            }
        }
    }

    private void scanEntry() {
        String name = "";
        int from = wire.end();
        int to = from;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = wire.readText(names);
                case 2 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    from = wire.position();
                    to = wire.end();
                    bytesToConvert += protos.bytesToConvert();
                    wire.leave(outer);
                }
                default -> wire.skipField(tag);
            }
        }
        int at = tensorNames.indexOf(name);
        if (at < 0) {
            at = tensorNames.size();
            if (at == MAX_TENSORS) {
                throw ServingException.invalidArgument("the message has more than " + MAX_TENSORS + " tensors");
            }
            tensorNames.add(name);
            if (bounds.length < 2 * at + 2) {
                bounds = Arrays.copyOf(bounds, bounds.length * 2);
            }
        }
        // as for every protobuf map, the last entry of a key wins
        bounds[2 * at] = from;
        bounds[2 * at + 1] = to;
    }

    /** The requested model; null when the message has no model spec. */
    public @Nullable ModelSpec spec() {
        return spec;
    }

    /** The tensors' names; valid until the next message. */
    public List<String> names() {
        return tensorNames;
    }

    /** The requested outputs, in a list that the caller owns; empty for all outputs. */
    public List<RequestedOutput> filter() {
        return filter;
    }

    /** Bytes that {@link #tensors} has to convert one by one, an estimate of its cost. */
    public long bytesToConvert() {
        return bytesToConvert;
    }

    /**
     * Returns the tensors of the message that was scanned last, in its order; the caller owns them.
     *
     * @throws ServingException INVALID_ARGUMENT for a malformed tensor; the message contains its name
     */
    public List<Tensor> tensors() {
        ArrayList<Tensor> tensors = new ArrayList<>(tensorNames.size());
        boolean done = false;
        try {
            for (int i = 0; i < tensorNames.size(); i++) {
                wire.range(bounds[2 * i], bounds[2 * i + 1]);
                tensors.add(protos.read(tensorNames.get(i), message));
            }
            done = true;
            return tensors;
        } finally {
            if (!done) {
                Tensor.closeAll(tensors);
            }
            clear();
        }
    }

    /** Drops the reference to the message. */
    public void clear() {
        message = MemoryRegion.empty();
        wire.clear();
    }

    /** Writes a {@code PredictRequest} as a message field. */
    public static void writeRequest(
            ProtobufWriter out, int field, ModelSpec spec, List<Tensor> inputs, List<String> filter, boolean content) {
        int message = out.begin(field);
        spec.write(out, 1);
        writeTensors(out, 2, inputs, content);
        for (String output : filter) {
            out.presentTextField(3, output);
        }
        out.end(message);
    }

    /** Writes a {@code PredictResponse} as a message field. */
    public static void writeResponse(
            ProtobufWriter out, int field, ModelSpec spec, List<Tensor> outputs, boolean content) {
        int message = out.begin(field);
        writeTensors(out, 1, outputs, content);
        spec.write(out, 2);
        out.end(message);
    }

    private static void writeTensors(ProtobufWriter out, int field, List<Tensor> tensors, boolean content) {
        for (Tensor tensor : tensors) {
            int entry = out.begin(field);
            out.presentTextField(1, tensor.name());
            TensorProtoCodec.write(out, 2, tensor, content);
            out.end(entry);
        }
    }
}
