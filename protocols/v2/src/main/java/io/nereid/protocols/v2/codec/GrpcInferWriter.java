// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protocols.v2.memory.SharedMemoryOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.ResponseBody;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Encodes {@code ModelInferResponse}, alone or inside {@code ModelStreamInferResponse}, without generated classes. The
 * bytes of raw contents are not copied: the body refers to the tensors at the positions where they belong. Holds no
 * state.
 */
public final class GrpcInferWriter {
    private static final int[] NOWHERE = {};

    private GrpcInferWriter() {}

    /** Whether to write the outputs raw: unless the request was typed, and also then if one is FP16 or BF16. */
    static boolean raw(InferenceResponse response, OutputEncoding form) {
        if (form.binary()) {
            return true;
        }
        List<Tensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            if (TypedContentsReader.field(outputs.get(i).dataType()) == 0) {
                return true;
            }
        }
        return false;
    }

    /** The number of bytes of outputs that have to be converted to typed contents. */
    public static long typedBytes(InferenceResponse response, OutputEncoding form) {
        if (raw(response, form)) {
            return 0;
        }
        long bytes = 0;
        for (Tensor output : response.outputs()) {
            bytes += form.place(output.name()) == null ? output.byteLength() : 0;
        }
        return bytes;
    }

    /**
     * Encodes the response of a unary call. Takes the outputs over, unless it throws: then the caller still owns them.
     *
     * @param trace a {@link RequestTiming} is written to the response's parameters
     */
    public static ResponseBody unary(
            InferenceResponse response,
            OutputEncoding form,
            CodecBuffers buffers,
            @Nullable RequestTrace trace,
            Clock clock) {
        ProtobufWriter out = buffers.wireWriter();
        boolean raw = raw(response, form);
        if (!form.shared().isEmpty()) {
            SharedMemoryOutput.writeAll(form.shared(), response);
        }
        writeHead(response, raw, form, out);
        int[] positions = raw ? rawHeaders(response.outputs(), form, out) : NOWHERE;
        writeTimes(out, trace, clock);
        ResponseBody content = new ResponseBody(out.array(), out.length());
        check(out.length(), response, raw, form);
        splice(content, response.outputs(), raw, positions, 0);
        return content;
    }

    /** Encodes one response of a stream. Ownership as for {@link #unary}. */
    public static ResponseBody stream(
            InferenceResponse response,
            OutputEncoding form,
            boolean last,
            CodecBuffers buffers,
            @Nullable RequestTrace trace,
            Clock clock) {
        ProtobufWriter out = buffers.wireWriter();
        boolean raw = raw(response, form);
        if (!form.shared().isEmpty()) {
            SharedMemoryOutput.writeAll(form.shared(), response);
        }
        writeHead(response, raw, form, out);
        writeParameter(out, 4, "triton_final_response", last);
        int[] positions = raw ? rawHeaders(response.outputs(), form, out) : NOWHERE;
        writeTimes(out, trace, clock);
        // the length of the inner message precedes it, so its head is written first and then copied behind that length
        long inner = check(out.length(), response, raw, form);
        ProtobufWriter outer = new ProtobufWriter();
        outer.bytesHeader(2, (int) inner);
        int shift = outer.reserve(out.length());
        System.arraycopy(out.array(), 0, outer.array(), shift, out.length());
        ResponseBody content = new ResponseBody(outer.array(), outer.length());
        splice(content, response.outputs(), raw, positions, shift);
        return content;
    }

    /** Encodes the error of one request of a stream. */
    public static ResponseBody streamError(String id, String text) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, text);
        int response = out.begin(2);
        out.textField(3, id);
        writeParameter(out, 4, "triton_final_response", true);
        out.end(response);
        return new ResponseBody(out.array(), out.length());
    }

    private static long check(int textLength, InferenceResponse response, boolean raw, OutputEncoding form) {
        long length = textLength;
        if (raw) {
            for (Tensor output : response.outputs()) {
                length += form.place(output.name()) == null ? output.byteLength() : 0;
            }
        }
        if (length > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "Response has byte size " + length + " which exceeds gRPC's byte size limit 2147483647.");
        }
        return length;
    }

    private static void splice(ResponseBody content, List<Tensor> outputs, boolean raw, int[] positions, int shift) {
        for (int i = 0; i < outputs.size(); i++) {
            Tensor output = outputs.get(i);
            if (raw && output.byteLength() > 0 && positions[i] >= 0) {
                content.splice(output, positions[i] + shift);
            } else {
                output.close();
            }
        }
    }

    /**
     * Writes the headers of {@code raw_output_contents} and returns where the bytes of each output belong. An output in
     * shared memory has an empty entry and the position -1.
     */
    private static int[] rawHeaders(List<Tensor> outputs, OutputEncoding form, ProtobufWriter out) {
        int[] positions = new int[outputs.size()];
        for (int i = 0; i < positions.length; i++) {
            boolean elsewhere = form.place(outputs.get(i).name()) != null;
            out.bytesHeader(6, elsewhere ? 0 : outputs.get(i).byteLength());
            positions[i] = elsewhere ? -1 : out.length();
        }
        return positions;
    }

    private static void writeHead(InferenceResponse response, boolean raw, OutputEncoding form, ProtobufWriter out) {
        out.textField(1, response.servable().model());
        long version = response.servable().version();
        if (!ModelReferences.unversioned(version)) {
            out.textField(2, Long.toString(version));
        }
        out.textField(3, response.id());
        if (!response.parameters().isEmpty()) {
            for (Map.Entry<String, Object> entry : response.parameters().entrySet()) {
                writeParameter(out, 4, entry.getKey(), entry.getValue());
            }
        }
        List<Tensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            writeOutput(outputs.get(i), raw, form.place(outputs.get(i).name()), out);
        }
    }

    /** Adds the times of a request that asks for them, when all else has been encoded. */
    private static void writeTimes(ProtobufWriter out, @Nullable RequestTrace trace, Clock clock) {
        if (trace instanceof RequestTiming timing) {
            timing.parameters(clock.nanos()).forEach((name, value) -> writeParameter(out, 4, name, value));
        }
    }

    public static void writeParameter(ProtobufWriter out, int field, String name, Object value) {
        int entry = out.begin(field);
        out.textField(1, name);
        int choice = out.begin(2);
        if (value instanceof Boolean b) {
            out.varintField(1, b ? 1 : 0);
        } else if (value instanceof Long n) {
            out.varintField(2, n);
        } else if (value instanceof Double d) {
            out.doubleField(4, d);
        } else {
            out.presentTextField(3, String.valueOf(value));
        }
        out.end(choice);
        out.end(entry);
    }

    private static void writeOutput(
            Tensor output, boolean raw, @Nullable SharedMemoryOutput place, ProtobufWriter out) {
        int message = out.begin(5);
        out.textField(1, output.name());
        out.textField(2, output.dataType().name());
        int rank = output.shape().rank();
        if (rank > 0) {
            int shape = out.begin(3);
            for (int i = 0; i < rank; i++) {
                out.varint(output.shape().dim(i));
            }
            out.end(shape);
        }
        if (place != null) {
            writeParameter(out, 4, "shared_memory_region", place.region().name());
            writeParameter(out, 4, "shared_memory_offset", place.offset());
            writeParameter(out, 4, "shared_memory_byte_size", (long) output.byteLength());
        } else if (!raw) {
            int contents = out.begin(5);
            writeContents(output, out);
            out.end(contents);
        }
        out.end(message);
    }

    public static void writeContents(Tensor output, ProtobufWriter out) {
        DataType type = output.dataType();
        int field = TypedContentsReader.field(type);
        int length = output.byteLength();
        ByteBuffer in = output.buffer();
        if (length == 0) {
            return;
        }
        switch (field) {
            case 6, 7 -> {
                out.bytesHeader(field, length);
                int at = out.reserve(length);
                in.get(0, out.array(), at, length);
            }
            case 8 -> {
                int at = 0;
                while (at < length) {
                    int size = in.getInt(at);
                    out.bytesHeader(field, size);
                    int to = out.reserve(size);
                    in.get(at + 4, out.array(), to, size);
                    at += 4 + size;
                }
            }
            default -> {
                int packed = out.begin(field);
                for (int at = 0; at < length; at += type.size()) {
                    out.varint(integer(type, in, at));
                }
                out.end(packed);
            }
        }
    }

    private static long integer(DataType type, ByteBuffer in, int at) {
        return switch (type) {
            case BOOL -> in.get(at) != 0 ? 1 : 0;
            case INT8 -> in.get(at);
            case UINT8 -> in.get(at) & 0xFF;
            case INT16 -> in.getShort(at);
            case UINT16 -> in.getShort(at) & 0xFFFF;
            case INT32 -> in.getInt(at);
            case UINT32 -> in.getInt(at) & 0xFFFF_FFFFL;
            case INT64, UINT64 -> in.getLong(at);
            case FP16, BF16, FP32, FP64, BYTES -> throw new IllegalStateException("no integers in " + type);
        };
    }
}
