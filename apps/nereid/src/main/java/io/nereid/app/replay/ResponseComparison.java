// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.replay;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.client.ServerClient;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.PredictionLog;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Compares responses with recorded ones: floating-point numbers within a tolerance, everything else exactly. Immutable
 * and thread-safe.
 */
final class ResponseComparison {
    private final double tolerance;

    /** @param tolerance a and b count as equal when {@code |a - b| <= tolerance × max(1, |a|)} */
    ResponseComparison(double tolerance) {
        this.tolerance = tolerance;
    }

    /** One output of a response: a range of bytes in the body. */
    private record Output(String type, String shape, int offset, int length) {}

    /**
     * Compares a response with the recorded one. Returns a description for each output that differs.
     *
     * @param body an Open Inference response with binary tensors
     * @param jsonLength length of its JSON part in bytes
     */
    List<String> differences(PredictionLog log, byte[] body, int jsonLength) {
        Map<String, Output> now = outputs(body, jsonLength);
        List<String> all = new ArrayList<>();
        List<Tensor> before = log.outputs();
        try {
            for (Tensor tensor : before) {
                Output output = now.remove(tensor.name());
                String difference = output == null ? "is missing in the response" : difference(tensor, output, body);
                if (difference != null) {
                    all.add("output '" + tensor.name() + "' " + difference);
                }
            }
        } finally {
            Tensor.closeAll(before);
        }
        now.keySet().forEach(name -> all.add("output '" + name + "' was not recorded"));
        return all;
    }

    private static Map<String, Output> outputs(byte[] body, int jsonLength) {
        Map<String, Output> all = new HashMap<>();
        try {
            JsonNode json = ServerClient.JSON.readTree(body, 0, jsonLength);
            int at = jsonLength;
            for (JsonNode output : json.path("outputs")) {
                int length = output.path("parameters").path("binary_data_size").asInt(0);
                all.put(
                        output.path("name").asText(),
                        new Output(
                                output.path("datatype").asText(),
                                output.path("shape").toString(),
                                at,
                                length));
                at = Math.addExact(at, length);
            }
            if (at != body.length) {
                throw ServingException.of(
                        ErrorCode.UNKNOWN, "the response has " + body.length + " bytes (expected: " + at + ")");
            }
        } catch (IOException e) {
            throw ServingException.of(
                    ErrorCode.UNKNOWN, "the response is not an Open Inference response: " + e.getMessage());
        }
        return all;
    }

    private @Nullable String difference(Tensor before, Output now, byte[] body) {
        String shape = before.shape().toString();
        if (!before.dataType().name().equals(now.type())
                || !shape.replace(" ", "").equals(now.shape())) {
            return "was " + before.dataType() + shape + " and is " + now.type() + now.shape();
        }
        ByteBuffer a = before.buffer();
        ByteBuffer b = ByteBuffer.wrap(body, now.offset(), now.length()).slice().order(ByteOrder.LITTLE_ENDIAN);
        DataType type = before.dataType();
        if (type == DataType.BYTES) {
            return texts(a, b);
        }
        if (a.remaining() != b.remaining()) {
            return "had " + a.remaining() + " bytes and has " + b.remaining();
        }
        int different = 0;
        String first = "";
        for (int i = 0; i < a.remaining() / type.size(); i++) {
            if (!same(type, a, b, i)) {
                if (different++ == 0) {
                    first = "[" + i + "] was " + shown(type, a, i) + " and is " + shown(type, b, i);
                }
            }
        }
        return different == 0 ? null : first + more(different);
    }

    private static String more(int different) {
        return different == 1 ? "" : " (" + (different - 1) + " more elements differ)";
    }

    private boolean same(DataType type, ByteBuffer a, ByteBuffer b, int i) {
        if (!type.isFloatingPoint()) {
            return integer(type, a, i) == integer(type, b, i);
        }
        double x = number(type, a, i);
        double y = number(type, b, i);
        return Double.compare(x, y) == 0
                || x == y
                || Double.isFinite(x) && Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(x));
    }

    private static long integer(DataType type, ByteBuffer bytes, int i) {
        return switch (type.size()) {
            case 1 -> bytes.get(i);
            case 2 -> bytes.getShort(2 * i);
            case 4 -> bytes.getInt(4 * i);
            default -> bytes.getLong(8 * i);
        };
    }

    private static double number(DataType type, ByteBuffer bytes, int i) {
        return switch (type) {
            case FP64 -> bytes.getDouble(8 * i);
            case FP32 -> bytes.getFloat(4 * i);
            case BF16 -> Float.intBitsToFloat(bytes.getShort(2 * i) << 16);
            default -> half(bytes.getShort(2 * i));
        };
    }

    static double half(short bits) {
        int exponent = bits >> 10 & 0x1f;
        int fraction = bits & 0x3ff;
        double magnitude = exponent == 0
                ? fraction * 0x1p-24
                : exponent < 31
                        ? Math.scalb(1 + fraction / 1024.0, exponent - 15)
                        : fraction == 0 ? Double.POSITIVE_INFINITY : Double.NaN;
        return bits < 0 ? -magnitude : magnitude;
    }

    private static String shown(DataType type, ByteBuffer bytes, int i) {
        if (type == DataType.FP32) {
            return Float.toString(bytes.getFloat(4 * i));
        }
        if (type.isFloatingPoint()) {
            return Double.toString(number(type, bytes, i));
        }
        long value = integer(type, bytes, i);
        return switch (type) {
            case BOOL -> value != 0 ? "true" : "false";
            case UINT8, UINT16, UINT32 -> Long.toString(value & (1L << 8 * type.size()) - 1);
            case UINT64 -> Long.toUnsignedString(value);
            default -> Long.toString(value);
        };
    }

    private static @Nullable String texts(ByteBuffer a, ByteBuffer b) {
        int different = 0;
        String first = "";
        for (int i = 0; a.remaining() >= 4 && b.remaining() >= 4; i++) {
            byte[] x = text(a);
            byte[] y = text(b);
            if (!java.util.Arrays.equals(x, y) && different++ == 0) {
                first = "[" + i + "] was " + shown(x) + " and is " + shown(y);
            }
        }
        if (a.hasRemaining() || b.hasRemaining()) {
            return "has a different number of elements";
        }
        return different == 0 ? null : first + more(different);
    }

    private static byte[] text(ByteBuffer from) {
        byte[] text = new byte[Math.max(0, Math.min(from.getInt(), from.remaining()))];
        from.get(text);
        return text;
    }

    private static String shown(byte[] text) {
        String all = new String(text, StandardCharsets.UTF_8);
        return "'" + (all.length() > 60 ? all.substring(0, 60) + "…" : all) + "'";
    }
}
