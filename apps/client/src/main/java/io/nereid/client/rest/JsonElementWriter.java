// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.core.JsonGenerator;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.TensorDataType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Writes the elements of one tensor as JSON. Confined to one thread. */
final class JsonElementWriter {
    private final InferTensor tensor;
    private final TensorDataType type;
    private final ByteBuffer bytes;
    private final float[] halves;
    private final byte[][] texts;
    private final boolean base64;

    /** Writes BYTES that are not UTF-8 as objects with {@code b64} where {@code base64}; else they are refused. */
    JsonElementWriter(InferTensor tensor, boolean base64) {
        this.tensor = tensor;
        this.type = tensor.dataType();
        this.bytes = tensor.bytes();
        this.base64 = base64;
        this.halves = type == TensorDataType.FP16 || type == TensorDataType.BF16 ? tensor.asFloats() : new float[0];
        this.texts = type == TensorDataType.BYTES ? tensor.asByteArrays() : new byte[0][];
    }

    /** Writes all elements as one array. */
    void flat(JsonGenerator json) throws IOException {
        json.writeStartArray();
        for (int i = 0; i < tensor.elementCount(); i++) {
            element(i, json);
        }
        json.writeEndArray();
    }

    /** Writes the elements from {@code from} on, nested as the dimensions from {@code level} on; returns the next one. */
    int nested(long[] shape, int level, int from, JsonGenerator json) throws IOException {
        if (level == shape.length) {
            element(from, json);
            return from + 1;
        }
        json.writeStartArray();
        int next = from;
        for (long i = 0; i < shape[level]; i++) {
            next = nested(shape, level + 1, next, json);
        }
        json.writeEndArray();
        return next;
    }

    private void element(int i, JsonGenerator json) throws IOException {
        switch (type) {
            case BOOL -> json.writeBoolean(bytes.get(i) != 0);
            case INT8 -> json.writeNumber(bytes.get(i));
            case UINT8 -> json.writeNumber(bytes.get(i) & 0xFF);
            case INT16 -> json.writeNumber(bytes.getShort(2 * i));
            case UINT16 -> json.writeNumber(bytes.getShort(2 * i) & 0xFFFF);
            case INT32 -> json.writeNumber(bytes.getInt(4 * i));
            case UINT32 -> json.writeNumber(bytes.getInt(4 * i) & 0xFFFF_FFFFL);
            case INT64 -> json.writeNumber(bytes.getLong(8 * i));
            case UINT64 -> json.writeNumber(Long.toUnsignedString(bytes.getLong(8 * i)));
            case FP16, BF16 -> json.writeNumber(halves[i]);
            case FP32 -> json.writeNumber(bytes.getFloat(4 * i));
            case FP64 -> json.writeNumber(bytes.getDouble(8 * i));
            case BYTES -> text(texts[i], json);
        }
    }

    private void text(byte[] element, JsonGenerator json) throws IOException {
        try {
            json.writeString(StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(element))
                    .toString());
        } catch (CharacterCodingException e) {
            if (!base64) {
                throw InferenceException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "an element of a BYTES input is not UTF-8, which JSON of V2 cannot carry (expected: UTF-8,"
                                + " TensorEncoding.BINARY, or V2 over gRPC)",
                        e);
            }
            json.writeStartObject();
            json.writeStringField("b64", Base64.getEncoder().encodeToString(element));
            json.writeEndObject();
        }
    }
}
