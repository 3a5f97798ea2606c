// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.TensorDataType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Reads the elements of one tensor from JSON, flat or nested, into its bytes. Confined to one thread. */
final class JsonElementReader {
    private final TensorDataType type;
    private ByteBuffer bytes = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);

    private JsonElementReader(TensorDataType type) {
        this.type = type;
    }

    /** Reads the value at which the parser is: an array of any depth, or an element. */
    static ByteBuffer read(JsonParser json, TensorDataType type) throws IOException {
        JsonElementReader reader = new JsonElementReader(type);
        int depth = 0;
        do {
            JsonToken token = json.currentToken();
            if (token == JsonToken.START_ARRAY) {
                depth++;
            } else if (token == JsonToken.END_ARRAY) {
                depth--;
            } else {
                reader.element(json);
            }
        } while (depth > 0 && json.nextToken() != null);
        return reader.bytes.flip();
    }

    private ByteBuffer ensure(int more) {
        if (bytes.remaining() < more) {
            long wanted = Math.max(bytes.position() + (long) more, 2L * bytes.capacity());
            if (bytes.position() + (long) more > Integer.MAX_VALUE - 16) {
                throw Json.unreadable("a tensor of 2 GiB or more", null);
            }
            bytes = ByteBuffer.allocate((int) Math.min(wanted, Integer.MAX_VALUE - 16))
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .put(bytes.flip());
        }
        return bytes;
    }

    private void element(JsonParser json) throws IOException {
        switch (type) {
            case BOOL -> ensure(1).put((byte) (truth(json) ? 1 : 0));
            case INT8, UINT8 -> ensure(1).put((byte) integer(json));
            case INT16, UINT16 -> ensure(2).putShort((short) integer(json));
            case INT32, UINT32 -> ensure(4).putInt((int) integer(json));
            case INT64, UINT64 -> ensure(8).putLong(integer(json));
            case FP16 ->
                ensure(2)
                        .put(InferTensor.ofHalf(new float[] {(float) number(json)})
                                .bytes());
            case BF16 ->
                ensure(2)
                        .put(InferTensor.ofBrainFloat(new float[] {(float) number(json)})
                                .bytes());
            case FP32 ->
                ensure(4)
                        .putFloat(
                                json.currentToken() == JsonToken.VALUE_NUMBER_FLOAT
                                        ? json.getFloatValue()
                                        : (float) number(json));
            case FP64 -> ensure(8).putDouble(number(json));
            case BYTES -> {
                byte[] element = text(json);
                ensure(4 + element.length).putInt(element.length).put(element);
            }
        }
    }

    private boolean truth(JsonParser json) throws IOException {
        JsonToken token = json.currentToken();
        if (token == JsonToken.VALUE_TRUE || token == JsonToken.VALUE_FALSE) {
            return token == JsonToken.VALUE_TRUE;
        }
        return integer(json) != 0;
    }

    private long integer(JsonParser json) throws IOException {
        JsonToken token = json.currentToken();
        if (token == JsonToken.VALUE_NUMBER_INT) {
            return json.getNumberType() == JsonParser.NumberType.BIG_INTEGER
                    ? json.getBigIntegerValue().longValue()
                    : json.getLongValue();
        }
        if (token == JsonToken.VALUE_NUMBER_FLOAT) {
            double value = json.getDoubleValue();
            if (value == Math.rint(value) && Math.abs(value) < 0x1p63) {
                return (long) value;
            }
        }
        if (token == JsonToken.VALUE_TRUE || token == JsonToken.VALUE_FALSE) {
            return token == JsonToken.VALUE_TRUE ? 1 : 0;
        }
        throw unexpected(json);
    }

    private double number(JsonParser json) throws IOException {
        JsonToken token = json.currentToken();
        if (token == JsonToken.VALUE_NUMBER_FLOAT || token == JsonToken.VALUE_NUMBER_INT) {
            return json.getDoubleValue();
        }
        // servers in Python write null, as JSON cannot express it
        if (token == JsonToken.VALUE_NULL) {
            return Double.NaN;
        }
        if (token == JsonToken.VALUE_STRING) {
            switch (json.getText()) {
                case "NaN" -> {
                    return Double.NaN;
                }
                case "Infinity" -> {
                    return Double.POSITIVE_INFINITY;
                }
                case "-Infinity" -> {
                    return Double.NEGATIVE_INFINITY;
                }
                default -> throw unexpected(json);
            }
        }
        throw unexpected(json);
    }

    private byte[] text(JsonParser json) throws IOException {
        if (json.currentToken() == JsonToken.VALUE_STRING) {
            return json.getText().getBytes(StandardCharsets.UTF_8);
        }
        if (json.currentToken() == JsonToken.START_OBJECT
                && json.nextToken() == JsonToken.FIELD_NAME
                && json.currentName().equals("b64")
                && json.nextToken() == JsonToken.VALUE_STRING) {
            byte[] decoded = Base64.getDecoder().decode(json.getText());
            if (json.nextToken() == JsonToken.END_OBJECT) {
                return decoded;
            }
        }
        throw unexpected(json);
    }

    private RuntimeException unexpected(JsonParser json) throws IOException {
        return Json.unreadable(json.getText() + " in a tensor of " + type, null);
    }
}
