// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.schema;

import static io.nereid.protocols.openapi.schema.OpenApiNodes.object;

import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Schemas and example values of tensors in JSON. An example has the same value in every element: 0, false or the text 1,
 * which models of numbers in texts take as well. Holds no state.
 */
final class TensorSchemas {
    /** The most elements of the inputs of an example. */
    static final long MOST_ELEMENTS = 16_384;

    private TensorSchemas() {}

    /** The schema of one element. */
    static Map<String, @Nullable Object> element(DataType type, boolean nullable) {
        Map<String, @Nullable Object> schema = switch (type) {
            case BOOL -> object("type", "boolean");
            case UINT8 -> object("type", "integer", "minimum", 0L, "maximum", 255L);
            case UINT16 -> object("type", "integer", "minimum", 0L, "maximum", 65_535L);
            case UINT32 -> object("type", "integer", "minimum", 0L, "maximum", 4_294_967_295L);
            case UINT64 -> object("type", "integer", "minimum", 0L);
            case INT8 -> object("type", "integer", "minimum", -128L, "maximum", 127L);
            case INT16 -> object("type", "integer", "minimum", -32_768L, "maximum", 32_767L);
            case INT32 -> object("type", "integer", "format", "int32");
            case INT64 -> object("type", "integer", "format", "int64");
            case FP16, BF16 -> object("type", "number");
            case FP32 -> object("type", "number", "format", "float");
            case FP64 -> object("type", "number", "format", "double");
            case BYTES -> object("type", "string");
        };
        if (nullable) {
            schema.put("nullable", true);
        }
        return schema;
    }

    /** The schema of nested arrays of elements, for the dimensions from one on. */
    static Map<String, @Nullable Object> nested(Map<String, @Nullable Object> element, long[] dims, int from) {
        Map<String, @Nullable Object> schema = element;
        for (int i = dims.length - 1; i >= from; i--) {
            Map<String, @Nullable Object> array = object("type", "array", "items", schema);
            if (dims[i] >= 0) {
                array.put("minItems", dims[i]);
                array.put("maxItems", dims[i]);
            }
            schema = array;
        }
        return schema;
    }

    /** The shape of an example of which nothing else is known: 1 for a dimension of any size. */
    static long[] exampleShape(TensorSpec spec) {
        long[] dims = spec.shape().dims().clone();
        for (int i = 0; i < dims.length; i++) {
            dims[i] = dims[i] < 0 ? 1 : dims[i];
        }
        return dims;
    }

    /** The number of elements, at most one more than {@link #MOST_ELEMENTS}. */
    static long count(long[] dims) {
        long count = 1;
        for (long dim : dims) {
            count = dim == 0 ? 0 : count > MOST_ELEMENTS / dim ? MOST_ELEMENTS + 1 : count * dim;
        }
        return Math.min(count, MOST_ELEMENTS + 1);
    }

    /** Whether the inputs of an example have few enough elements to be written. */
    static boolean writable(List<TensorSpec> specs) {
        long all = 0;
        for (TensorSpec spec : specs) {
            all += count(exampleShape(spec));
        }
        return all <= MOST_ELEMENTS;
    }

    /** The value of an element. */
    static Object value(DataType type) {
        if (type == DataType.BYTES) {
            return "1";
        }
        return type == DataType.BOOL ? (Object) false : type.isFloatingPoint() ? (Object) 0.0 : (Object) 0L;
    }

    /** The elements of an example, flat. */
    static List<Object> flat(TensorSpec spec) {
        return Collections.nCopies((int) count(exampleShape(spec)), value(spec.dataType()));
    }

    /** The elements of an example as nested lists, for the dimensions from one on; one value when none is left. */
    static Object nestedValue(TensorSpec spec, int from) {
        long[] dims = exampleShape(spec);
        Object node = value(spec.dataType());
        for (int i = dims.length - 1; i >= from; i--) {
            node = new ArrayList<>(Collections.nCopies((int) dims[i], node));
        }
        return node;
    }

    /** The dimensions, as a list. */
    static List<Object> list(long[] dims) {
        List<Object> list = new ArrayList<>(dims.length);
        for (long dim : dims) {
            list.add(dim);
        }
        return list;
    }
}
