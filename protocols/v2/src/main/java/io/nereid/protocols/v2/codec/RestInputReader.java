// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Decodes one element of the {@code inputs} of a JSON request. Members may come in any order: data after shape and
 * datatype, as clients send it, is read in one pass; earlier data is skipped and read afterwards. Confined to one
 * thread; used once.
 */
public final class RestInputReader {
    private final CodecContext context;
    private final CodecBuffers buffers;
    private final JsonReader json;
    private final String model;
    private final int index;
    private @Nullable String name;
    private @Nullable DataType type;
    private @Nullable Shape shape;
    private @Nullable Tensor tensor;
    private int dataAt = -1;
    private long binarySize = -1;
    private @Nullable String region;
    private long regionOffset;
    private long regionSize = -1;
    private int jsonEnd;

    RestInputReader(CodecContext context, CodecBuffers buffers, String model, int index) {
        this.context = context;
        this.buffers = buffers;
        this.json = buffers.reader;
        this.model = model;
        this.index = index;
    }

    String name() {
        return Objects.requireNonNull(name);
    }

    DataType type() {
        return Objects.requireNonNull(type);
    }

    Shape shape() {
        return Objects.requireNonNull(shape);
    }

    long binarySize() {
        return binarySize;
    }

    /** Reads the input; the caller owns the tensor. Null when its data follows the JSON (binary tensor data). */
    @Nullable Tensor read(int end) {
        jsonEnd = end;
        boolean done = false;
        try {
            readMembers();
            checkMembers();
            if (dataAt >= 0) {
                int after = json.position();
                json.seek(dataAt);
                tensor = data();
                json.seek(after);
            }
            if (region != null) {
                tensor = context.sharedMemory.input(
                        name(), type(), shape(), region, regionOffset, regionSize, model, buffers.cuda);
            }
            done = true;
            return tensor;
        } finally {
            if (!done && tensor != null) {
                tensor.close();
            }
        }
    }

    private void readMembers() {
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("name")) {
                once(name, "name");
                name = buffers.name();
            } else if (json.keyEquals("shape")) {
                once(shape, "shape");
                shape = readShape();
            } else if (json.keyEquals("datatype")) {
                once(type, "datatype");
                type = readType();
            } else if (json.keyEquals("data")) {
                readData();
            } else if (json.keyEquals("parameters")) {
                readParameters();
            } else {
                json.skipValue();
            }
        }
    }

    private void once(@Nullable Object before, String member) {
        if (before != null) {
            throw ServingException.invalidArgument(label() + " has more than one '" + member + "'");
        }
    }

    private String label() {
        return name == null ? "input " + index + " of the request" : "input '" + name + "'";
    }

    private void checkMembers() {
        if (name == null || shape == null || type == null) {
            String missing = name == null ? "name" : shape == null ? "shape" : "datatype";
            throw ServingException.invalidArgument(label() + " has no '" + missing + "'");
        }
        boolean hasData = tensor != null || dataAt >= 0;
        boolean one = region == null ? hasData != binarySize >= 0 : !hasData && binarySize < 0;
        if (!one) {
            throw ServingException.invalidArgument(
                    "Input must set only one of the following fields: 'data',"
                            + " 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But "
                            + fieldsSet(hasData),
                    "see " + label());
        }
        if (region != null && regionSize < 0) {
            throw ServingException.invalidArgument(
                    label() + " has 'shared_memory_region' without 'shared_memory_byte_size' (expected: >= 0)");
        }
    }

    private String fieldsSet(boolean hasData) {
        String set = (hasData ? " 'data'" : "")
                + (binarySize >= 0 ? " 'binary_data_size'" : "")
                + (region != null ? " 'shared_memory_region'" : "");
        return set.isEmpty() ? "no field is set" : "set" + set;
    }

    private Shape readShape() {
        int rank = 0;
        json.beginArray();
        long[] dims = buffers.dims(8);
        while (json.hasNext()) {
            dims = buffers.dims(rank + 1);
            dims[rank] = json.readLong();
            rank++;
        }
        return shape(label(), dims, rank);
    }

    /** A shape without variable dimensions. */
    public static Shape shape(String label, long[] dims, int rank) {
        long[] exact = new long[rank];
        System.arraycopy(dims, 0, exact, 0, rank);
        for (long d : exact) {
            if (d < 0) {
                throw ServingException.invalidArgument("shape " + java.util.Arrays.toString(exact) + " of " + label
                        + " has dimension " + d + " (expected: >= 0)");
            }
        }
        return Shape.of(exact);
    }

    private DataType readType() {
        json.readText();
        for (DataType candidate : CodecBuffers.TYPES) {
            if (json.textEquals(candidate.name())) {
                return candidate;
            }
        }
        throw unknownType(label(), json.text());
    }

    public static ServingException unknownType(String label, String text) {
        return ServingException.invalidArgument(
                label + " has unknown datatype '" + text + "' (expected one of " + CodecBuffers.TYPE_NAMES + ")");
    }

    private void readData() {
        if (json.tryNull()) {
            return;
        }
        if (tensor != null || dataAt >= 0) {
            throw ServingException.invalidArgument(label() + " has more than one 'data'");
        }
        if (name != null && shape != null && type != null) {
            tensor = data();
        } else {
            dataAt = json.position();
            json.skipValue();
        }
    }

    private Tensor data() {
        String inputName = name();
        DataType inputType = type();
        Shape inputShape = shape();
        long count = inputShape.elementCount();
        json.describe("input '" + inputName + "'");
        if (inputType != DataType.BYTES) {
            long bytes = inputShape.byteSize(inputType);
            if (bytes > context.options.maxTensorBytes()) {
                throw ServingException.invalidArgument("JSON input '" + inputName + "' has a byte_size (" + bytes
                        + " bytes) that exceeds the maximum allowed value of " + context.options.maxTensorBytes()
                        + " bytes.");
            }
            if (count > jsonEnd - json.position()) {
                // The shape is the client's claim: do not allocate more elements than the text can hold.
                throw ServingException.invalidArgument("input '" + inputName + "' for model '" + model + "' has "
                        + count + " elements by its shape " + inputShape + ", more than its 'data' can hold");
            }
        }
        Tensor made = buffers.tensors.readTensor(inputName, inputType, inputShape, buffers.elements);
        json.describe(null);
        return made;
    }

    private void readParameters() {
        if (json.tryNull()) {
            return;
        }
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("binary_data_size")) {
                binarySize = json.readLong();
                if (binarySize < 0) {
                    throw ServingException.invalidArgument(
                            label() + " has 'binary_data_size' " + binarySize + " (expected: >= 0)");
                }
            } else if (json.keyEquals("shared_memory_region")) {
                region = json.readString();
            } else if (json.keyEquals("shared_memory_byte_size")) {
                regionSize = json.readLong();
            } else if (json.keyEquals("shared_memory_offset")) {
                regionOffset = json.readLong();
            } else {
                json.skipValue();
            }
        }
    }
}
