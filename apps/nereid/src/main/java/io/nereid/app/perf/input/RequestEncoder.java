// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.SmallFloats;
import io.nereid.protobuf.ProtobufWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Encodes requests for Open Inference over REST, with tensors as JSON or as bytes behind the JSON, and over gRPC. Stateless. */
public final class RequestEncoder {
    private static final ObjectMapper JSON = new ObjectMapper();

    private RequestEncoder() {}

    /**
     * The body of a REST request. Immutable, provided that callers do not write to the array.
     *
     * @param jsonLength the length of the JSON, behind which the tensors follow; -1 when everything is JSON
     */
    @SuppressWarnings("ArrayRecordComponent")
    public record RestBody(byte[] bytes, int jsonLength) {}

    /** Encodes a request with binary tensors, and asks for binary tensors in the response. */
    public static RestBody binary(RequestSample sample) {
        ObjectNode request = head(sample);
        request.withObject("/parameters").put("binary_data_output", true);
        ArrayNode inputs = request.putArray("inputs");
        int bytes = 0;
        for (TensorData input : sample.inputs()) {
            ObjectNode each = describe(inputs.addObject(), input);
            each.putObject("parameters").put("binary_data_size", input.bytes().length);
            bytes = Math.addExact(bytes, input.bytes().length);
        }
        byte[] json = request.toString().getBytes(StandardCharsets.UTF_8);
        ByteBuffer body = ByteBuffer.allocate(Math.addExact(json.length, bytes)).put(json);
        sample.inputs().forEach(input -> body.put(input.bytes()));
        return new RestBody(body.array(), json.length);
    }

    /** Encodes a request whose tensors are JSON. */
    public static RestBody json(RequestSample sample) {
        ObjectNode request = head(sample);
        ArrayNode inputs = request.putArray("inputs");
        for (TensorData input : sample.inputs()) {
            elements(input, describe(inputs.addObject(), input).putArray("data"));
        }
        return new RestBody(request.toString().getBytes(StandardCharsets.UTF_8), -1);
    }

    private static ObjectNode head(RequestSample sample) {
        ObjectNode request = JSON.createObjectNode();
        if (!sample.signature().isEmpty()) {
            request.putObject("parameters").put("signature_name", sample.signature());
        }
        if (!sample.outputs().isEmpty()) {
            ArrayNode outputs = request.putArray("outputs");
            sample.outputs().forEach(name -> outputs.addObject().put("name", name));
        }
        return request;
    }

    private static ObjectNode describe(ObjectNode each, TensorData input) {
        each.put("name", input.name());
        ArrayNode shape = each.putArray("shape");
        for (long dim : input.shape().dims()) {
            shape.add(dim);
        }
        return each.put("datatype", input.dataType().name());
    }

    private static void elements(TensorData input, ArrayNode to) {
        ByteBuffer from = ByteBuffer.wrap(input.bytes()).order(ByteOrder.LITTLE_ENDIAN);
        while (from.hasRemaining()) {
            switch (input.dataType()) {
                case BOOL -> to.add(from.get() != 0);
                case UINT8 -> to.add(from.get() & 0xff);
                case UINT16 -> to.add(from.getShort() & 0xffff);
                case UINT32 -> to.add(from.getInt() & 0xffffffffL);
                case UINT64 -> to.add(new java.math.BigInteger(Long.toUnsignedString(from.getLong())));
                case INT8 -> to.add(from.get());
                case INT16 -> to.add(from.getShort());
                case INT32 -> to.add(from.getInt());
                case INT64 -> to.add(from.getLong());
                case FP32 -> to.add(from.getFloat());
                case FP64 -> to.add(from.getDouble());
                case FP16 -> to.add(SmallFloats.fp16ToFloat(from.getShort()));
                case BF16 -> to.add(SmallFloats.bf16ToFloat(from.getShort()));
                case BYTES -> {
                    byte[] text = new byte[from.getInt()];
                    from.get(text);
                    to.add(new String(text, StandardCharsets.UTF_8));
                }
            }
        }
    }

    /**
     * Encodes a ModelInferRequest.
     *
     * @param version the version; empty for the server's choice
     */
    public static byte[] grpc(String model, String version, RequestSample sample) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, model);
        out.textField(2, version);
        if (!sample.signature().isEmpty()) {
            int entry = out.begin(4);
            out.presentTextField(1, "signature_name");
            int value = out.begin(2);
            out.presentTextField(3, sample.signature());
            out.end(value);
            out.end(entry);
        }
        for (TensorData input : sample.inputs()) {
            int mark = out.begin(5);
            out.textField(1, input.name());
            out.textField(2, input.dataType().name());
            int dims = out.begin(3);
            for (long dim : input.shape().dims()) {
                out.varint(dim);
            }
            out.end(dims);
            out.end(mark);
        }
        for (String output : sample.outputs()) {
            int mark = out.begin(6);
            out.textField(1, output);
            out.end(mark);
        }
        for (TensorData input : sample.inputs()) {
            out.bytesField(7, input.bytes());
        }
        return out.toByteArray();
    }
}
