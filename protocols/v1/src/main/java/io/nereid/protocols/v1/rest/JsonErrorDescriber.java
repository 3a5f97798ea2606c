// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.TensorReader;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Describes, in TensorFlow Serving's wording, why a JSON value cannot be read as a tensor. It reads the value again,
 * element by element, so it is used only after a failure of the fast reader. Confined to one thread.
 */
final class JsonErrorDescriber {
    private final RestRequestBody body;
    private final JsonReader reader;
    private final TensorReader tensors;
    private final ByteSink sink = new ByteSink(64);
    private final DataType type;

    JsonErrorDescriber(RestRequestBody body, DataType type) {
        this.body = body;
        this.reader = body.secondReader();
        this.tensors = new TensorReader(reader, true, true);
        this.type = type;
    }

    /** The error of the value at a position; {@code seen} when TensorFlow Serving would accept the value. */
    ServingException ofValue(int at, ServingException seen) {
        String fault = fault(at);
        return fault == null ? seen : ServingException.invalidArgument(fault, seen.describe());
    }

    /** The error of the list of rows at a position; rows are values, not objects of named values. */
    ServingException ofRows(int at, ServingException seen) {
        List<Integer> rows = elements(at);
        long[] first = {};
        for (int i = 0; i < rows.size(); i++) {
            int row = rows.get(i);
            if (isObject(row) && !isBase64(row)) {
                return ServingException.invalidArgument(
                        "Expecting value/list but got object at item " + i + " of input list", seen.describe());
            }
            String fault = fault(row);
            if (fault == null) {
                long[] dims = shape(row);
                if (i == 0) {
                    first = dims;
                } else {
                    fault = difference(first, dims);
                }
            }
            if (fault != null) {
                return ServingException.invalidArgument(
                        "Failed to process element: " + i + " of 'instances' list. Error: INVALID_ARGUMENT: " + fault,
                        seen.describe());
            }
        }
        return seen;
    }

    /** Describes the difference of two shapes that should be equal; null when they are. */
    static @Nullable String difference(long[] expected, long[] found) {
        long size = LongStream.of(expected).reduce(1, (a, b) -> a * b);
        long got = LongStream.of(found).reduce(1, (a, b) -> a * b);
        if (size != got) {
            return "Expecting tensor size: " + size + " but got: " + got;
        }
        return Arrays.equals(expected, found) ? null : "Expecting shape " + list(expected) + " but got: " + list(found);
    }

    private static String list(long[] dims) {
        return LongStream.of(dims).mapToObj(Long::toString).collect(Collectors.joining(",", "[", "]"));
    }

    private @Nullable String fault(int at) {
        return fault(at, shape(at), 0);
    }

    private @Nullable String fault(int at, long[] shape, int level) {
        reader.seek(at);
        if (reader.peek() != JsonToken.ARRAY) {
            if (level != shape.length) {
                return "JSON Value: " + body.excerpt(at) + " found at incorrect level: " + (level + 1)
                        + " in the JSON DOM. Expected at level: " + shape.length;
            }
            return faultOfScalar(at);
        }
        if (level >= shape.length) {
            return "Encountered list at unexpected level: " + level + " expected < " + shape.length;
        }
        List<Integer> elements = elements(at);
        if (elements.size() != shape[level]) {
            return "Encountered list at unexpected size: " + elements.size() + " at level: " + level
                    + " expected size: " + shape[level];
        }
        for (int element : elements) {
            String fault = fault(element, shape, level + 1);
            if (fault != null) {
                return fault;
            }
        }
        return null;
    }

    private @Nullable String faultOfScalar(int at) {
        boolean object = isObject(at);
        if (object && type == DataType.BYTES && !isBase64(at)) {
            return "JSON Value: " + body.excerpt(at) + " not formatted correctly for base64 data";
        }
        reader.seek(at);
        sink.reset();
        try {
            tensors.readNested(type, sink);
            return null;
        } catch (ServingException e) {
            return object && type == DataType.BYTES
                    ? "Unable to base64 decode"
                    : "JSON Value: " + body.excerpt(at) + " Type: " + typeOf(at) + " is not of expected type: "
                            + nameOf(type);
        }
    }

    /** The dimensions by the first element of each level, which TensorFlow Serving takes as the expected shape. */
    private long[] shape(int at) {
        List<Long> dims = new ArrayList<>();
        int next = at;
        while (next >= 0) {
            reader.seek(next);
            if (reader.peek() != JsonToken.ARRAY) {
                break;
            }
            List<Integer> elements = elements(next);
            dims.add((long) elements.size());
            next = elements.isEmpty() ? -1 : elements.get(0);
        }
        return dims.stream().mapToLong(Long::longValue).toArray();
    }

    private List<Integer> elements(int at) {
        List<Integer> elements = new ArrayList<>();
        reader.seek(at);
        reader.beginArray();
        while (reader.hasNext()) {
            elements.add(reader.position());
            reader.skipValue();
        }
        return elements;
    }

    private boolean isObject(int at) {
        reader.seek(at);
        return reader.peek() == JsonToken.OBJECT;
    }

    private boolean isBase64(int at) {
        reader.seek(at);
        return isBase64(reader);
    }

    /** Whether the next object has the only field {@code b64}, with a string. Consumes the object. */
    static boolean isBase64(JsonReader reader) {
        boolean base64 = false;
        int fields = 0;
        reader.beginObject();
        while (reader.nextField()) {
            base64 = fields++ == 0 && reader.keyEquals("b64") && reader.peek() == JsonToken.STRING;
            reader.skipValue();
        }
        return base64;
    }

    private String typeOf(int at) {
        reader.seek(at);
        return typeOf(reader);
    }

    /** TensorFlow Serving's name for the type of the next value. Consumes a boolean. */
    static String typeOf(JsonReader reader) {
        return switch (reader.peek()) {
            case OBJECT -> "Object";
            case ARRAY -> "Array";
            case STRING -> "String";
            case NUMBER -> "Number";
            case BOOLEAN -> reader.readBoolean() ? "True" : "False";
            case NULL, END_OBJECT, END_ARRAY, END_OF_INPUT -> "Null";
        };
    }

    private static String nameOf(DataType type) {
        return switch (type) {
            case BOOL -> "bool";
            case UINT8 -> "uint8";
            case UINT16 -> "uint16";
            case UINT32 -> "uint32";
            case UINT64 -> "uint64";
            case INT8 -> "int8";
            case INT16 -> "int16";
            case INT32 -> "int32";
            case INT64 -> "int64";
            case FP16 -> "half";
            case BF16 -> "bfloat16";
            case FP32 -> "float";
            case FP64 -> "double";
            case BYTES -> "string";
        };
    }
}
