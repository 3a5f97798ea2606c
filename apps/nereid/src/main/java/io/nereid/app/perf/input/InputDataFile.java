// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.app.perf.input.ModelSignature.Input;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Inputs in the format of perf_analyzer's {@code --input-data}: a list of elements, each with a value for each input of the model,
 * without the batch dimension. Values are lists, nested or flat, {@code {"content": [...], "shape": [...]}}, or
 * {@code {"b64": "..."}}, the raw bytes. Confined to one thread.
 *
 * <pre>{@code
 * {"data": [
 *   {"INPUT0": [1, 2, 3], "INPUT1": {"content": [1, 2, 3, 4], "shape": [2, 2]}},
 *   {"INPUT0": [4, 5, 6], "INPUT1": {"b64": "AAAAAAAAAAAAAAAAAAAAAA==", "shape": [2, 2]}}]}
 * }</pre>
 */
public final class InputDataFile {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path file;
    private final ModelSignature signature;
    private final Map<String, Shape> shapes;

    private InputDataFile(Path file, ModelSignature signature, Map<String, Shape> shapes) {
        this.file = file;
        this.signature = signature;
        this.shapes = shapes;
    }

    /**
     * Reads requests. A request of a batch has consecutive elements of the file, from the first one again after the last.
     *
     * @param shapes the shapes of the elements, without the batch dimension
     * @throws ServingException INVALID_ARGUMENT for a file that does not fit, with the place; NOT_FOUND when it cannot be read
     */
    public static List<RequestSample> read(
            Path file, ModelSignature signature, Map<String, Shape> shapes, int batchSize) {
        return new InputDataFile(file, signature, shapes).read(batchSize);
    }

    private List<RequestSample> read(int batchSize) {
        JsonNode root;
        try {
            root = JSON.readTree(Files.readAllBytes(file));
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("--data '" + file + "' is not JSON: " + e.getOriginalMessage());
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND, "--data '" + file + "' cannot be read: " + e.getMessage(), e);
        }
        root.fieldNames().forEachRemaining(field -> {
            if (!field.equals("data")) {
                throw ServingException.invalidArgument(
                        "--data '" + file + "' has the field '" + field + "' (expected: only data)",
                        field.equals("validation_data")
                                ? "responses are not compared; nereid replay --compare does"
                                : null);
            }
        });
        List<JsonNode> steps = new ArrayList<>();
        for (JsonNode each : root.path("data")) {
            if (each.isArray()) { // a stream of requests
                each.forEach(steps::add);
            } else {
                steps.add(each);
            }
        }
        if (steps.isEmpty()) {
            throw ServingException.invalidArgument(
                    "--data '" + file + "' has no elements (expected: {\"data\": [{\"INPUT\": [...]}, ...]})");
        }
        List<List<TensorData>> elements = new ArrayList<>();
        for (int i = 0; i < steps.size(); i++) {
            elements.add(element("data[" + i + "] of '" + file + "'", steps.get(i)));
        }
        List<RequestSample> samples = new ArrayList<>();
        for (int i = 0; i < elements.size(); i++) {
            samples.add(new RequestSample(batch(elements, i, batchSize)));
        }
        return samples;
    }

    private List<TensorData> batch(List<List<TensorData>> elements, int from, int batchSize) {
        List<TensorData> inputs = new ArrayList<>();
        for (TensorData first : elements.get(from)) {
            ByteArrayOutputStream all = new ByteArrayOutputStream(first.bytes().length * batchSize);
            for (int i = 0; i < batchSize; i++) {
                int at = (from + i) % elements.size();
                TensorData row = elements.get(at).stream()
                        .filter(each -> each.name().equals(first.name()))
                        .findFirst()
                        .orElse(null);
                if (row == null || !row.shape().equals(first.shape())) {
                    throw ServingException.invalidArgument(
                            "input '" + first.name() + "' of data[" + at + "] of '" + file
                                    + "' does not have the shape " + first.shape() + " of data[" + from
                                    + "] (expected: one shape in a batch; or --batch-size 1)");
                }
                all.writeBytes(row.bytes());
            }
            inputs.add(new TensorData(
                    first.name(), first.dataType(), signature.whole(first.shape(), batchSize), all.toByteArray()));
        }
        return inputs;
    }

    private List<TensorData> element(String where, JsonNode step) {
        if (!step.isObject()) {
            throw ServingException.invalidArgument(where + " is not an object (expected: a value for each input)");
        }
        step.fieldNames().forEachRemaining(name -> {
            Input unused = signature.input(name, where);
        });
        List<TensorData> inputs = new ArrayList<>();
        for (Input input : signature.inputs()) {
            JsonNode value = step.get(input.name());
            if (value != null) {
                inputs.add(tensor(where, input, value));
            } else if (!input.optional()) {
                throw ServingException.invalidArgument(where + " has no value for input '" + input.name()
                        + "' (expected: a list of " + input.dataType() + ")");
            }
        }
        return inputs;
    }

    private TensorData tensor(String where, Input input, JsonNode value) {
        String at = "input '" + input.name() + "' of " + where;
        Shape expected = shapes.getOrDefault(input.name(), signature.element(input));
        JsonNode content = value.isObject() && value.has("content") ? value.path("content") : value;
        Shape given = value.isObject() && value.has("shape") ? shape(at, value.path("shape")) : null;
        if (given != null && !expected.accepts(given)) {
            throw ServingException.invalidArgument(at + " has the shape " + given + " (expected: " + expected + ")");
        }
        byte[] bytes;
        long count;
        if (content.isObject()) {
            if (!content.path("b64").isTextual()) {
                throw ServingException.invalidArgument(
                        at
                                + " is an object without content and b64 (expected: a list, {\"content\": ..} or {\"b64\": ..})");
            }
            try {
                bytes = Base64.getDecoder().decode(content.path("b64").asText());
            } catch (IllegalArgumentException e) {
                throw ServingException.invalidArgument(at + " is not base64: " + e.getMessage());
            }
            count = input.dataType() == DataType.BYTES
                    ? -1
                    : bytes.length / input.dataType().size();
        } else {
            List<JsonNode> flat = new ArrayList<>();
            flatten(content, flat);
            bytes = bytes(at, input.dataType(), flat);
            count = flat.size();
        }
        Shape shape = given != null ? given : nested(content, expected);
        if (shape == null) {
            shape = filled(at, expected, count);
        }
        boolean fits = input.dataType() == DataType.BYTES
                ? count < 0 || count == shape.elementCount()
                : bytes.length == shape.byteSize(input.dataType());
        if (!fits) {
            throw ServingException.invalidArgument(
                    at + " has " + (count < 0 ? bytes.length + " bytes" : count + " elements")
                            + ", which is not the shape " + shape);
        }
        return new TensorData(input.name(), input.dataType(), shape, bytes);
    }

    private static Shape shape(String at, JsonNode list) {
        long[] dims = new long[list.size()];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = list.path(i).asLong(-1);
            if (dims[i] < 0) {
                throw ServingException.invalidArgument(at + " has the shape " + list + " (expected: a list of sizes)");
            }
        }
        return Shape.of(dims);
    }

    /** The shape of a nested list; null where it is not that of the input. */
    private static @Nullable Shape nested(JsonNode content, Shape expected) {
        List<Long> dims = new ArrayList<>();
        for (JsonNode level = content; level.isArray(); level = level.path(0)) {
            dims.add((long) level.size());
        }
        Shape own = Shape.of(dims.stream().mapToLong(Long::longValue).toArray());
        return expected.accepts(own) ? own : null;
    }

    /** The shape whose one open size follows from the number of elements. */
    private static Shape filled(String at, Shape expected, long count) {
        long[] dims = expected.dims();
        int open = -1;
        long fixed = 1;
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] >= 0) {
                fixed *= dims[i];
            } else if (open >= 0) {
                throw ServingException.invalidArgument(
                        at + " has no shape, and more than one size of " + expected + " is open",
                        "write it as {\"content\": [...], \"shape\": [...]}");
            } else {
                open = i;
            }
        }
        if (open >= 0) {
            dims[open] = fixed == 0 || count < 0 ? 0 : count / fixed;
        }
        return Shape.of(dims);
    }

    private static void flatten(JsonNode value, List<JsonNode> to) {
        if (value.isArray()) {
            value.forEach(each -> flatten(each, to));
        } else {
            to.add(value);
        }
    }

    private static byte[] bytes(String at, DataType type, List<JsonNode> flat) {
        if (type == DataType.BYTES) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            for (JsonNode each : flat) {
                byte[] text = each.asText().getBytes(StandardCharsets.UTF_8);
                all.writeBytes(ByteBuffer.allocate(Integer.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putInt(text.length)
                        .array());
                all.writeBytes(text);
            }
            return all.toByteArray();
        }
        ByteBuffer to = ByteBuffer.allocate(Math.multiplyExact(flat.size(), type.size()))
                .order(ByteOrder.LITTLE_ENDIAN);
        for (JsonNode each : flat) {
            boolean right = type == DataType.BOOL
                    ? each.isBoolean() || each.isIntegralNumber()
                    : type.isInteger() ? each.isIntegralNumber() : each.isNumber();
            if (!right || !put(type, each, to)) {
                throw ServingException.invalidArgument(
                        at + " has the element " + each + " (expected: a value of " + type + ")");
            }
        }
        return to.array();
    }

    /** Writes an element; returns false for a number outside the range of its type. */
    private static boolean put(DataType type, JsonNode value, ByteBuffer to) {
        switch (type) {
            case FP32 -> to.putFloat((float) value.asDouble());
            case FP64 -> to.putDouble(value.asDouble());
            case FP16 -> to.putShort(SmallFloats.fp16(value.asDouble()));
            case BF16 -> to.putShort(SmallFloats.bf16(value.asDouble()));
            case BOOL -> to.put((byte) (value.asBoolean() ? 1 : 0));
            default -> {
                BigInteger number = value.bigIntegerValue();
                int bits = 8 * type.size();
                boolean signed = type.name().startsWith("INT");
                if (signed ? number.bitLength() >= bits : number.signum() < 0 || number.bitLength() > bits) {
                    return false;
                }
                switch (type.size()) {
                    case 1 -> to.put(number.byteValue());
                    case 2 -> to.putShort(number.shortValue());
                    case 4 -> to.putInt(number.intValue());
                    default -> to.putLong(number.longValue());
                }
            }
        }
        return true;
    }
}
