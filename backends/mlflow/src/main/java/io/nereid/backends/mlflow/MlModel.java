// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;

/**
 * An {@code MLmodel} file: the flavors that the model was saved in, and its signature. Immutable.
 *
 * @param file the path
 * @param flavors the configuration of each flavor
 * @param inputs the input schema of the signature; null when absent or not usable
 * @param facts metadata for clients, by name
 */
record MlModel(
        Path file,
        Map<String, Map<String, Object>> flavors,
        @Nullable Schema inputs,
        Map<String, String> facts) {
    static final String FILE = "MLmodel";
    private static final String LAST_KEY = "utc_time_created";
    private static final int LARGEST = 4 << 20;
    private static final int LARGEST_EXAMPLE = 16 << 10;
    private static final String SAVE_AGAIN = "save the model again with MLflow";

    /**
     * The input schema of a signature. Immutable.
     *
     * @param columns whether the inputs are columns of a data frame, not tensors
     * @param items the inputs in order
     */
    record Schema(boolean columns, List<Item> items) {
        /** Whether each input has a name. */
        boolean named() {
            return items.stream().noneMatch(i -> i.name().isEmpty());
        }
    }

    /**
     * A column or a tensor. Immutable.
     *
     * @param name the name; empty when it has none
     * @param type the data type
     * @param shape the shape of a tensor; {@code [-1]} for a column
     * @param required whether requests must contain it
     */
    record Item(String name, DataType type, Shape shape, boolean required) {}

    /**
     * Reads the {@code MLmodel} file of a directory.
     *
     * @throws ServingException INVALID_ARGUMENT when it is missing or invalid
     */
    static MlModel read(Path directory) {
        Path file = directory.resolve(FILE);
        Object root;
        try {
            if (Files.size(file) > LARGEST) {
                throw invalid(file, "is larger than " + LARGEST + " bytes");
            }
            root = parse(Files.readString(file, StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw ServingException.invalidArgument(
                    "'" + file + "' cannot be read: " + e.getClass().getSimpleName(),
                    "an MLflow model is the whole directory that MLflow saved, with the file " + FILE);
        } catch (YamlEngineException | StackOverflowError e) {
            throw invalid(file, "is not YAML: " + firstLine(e));
        }
        Map<String, Map<String, Object>> flavors = new LinkedHashMap<>();
        map(map(root).get("flavors")).forEach((name, settings) -> flavors.put(name, map(settings)));
        if (flavors.isEmpty()) {
            throw invalid(file, "has no flavors");
        }
        if (!map(root).containsKey(LAST_KEY)) {
            throw invalid(file, "is truncated: it lacks '" + LAST_KEY + "', which MLflow writes last");
        }
        Map<String, Object> signature = map(map(root).get("signature"));
        Schema inputs = schema(file, text(signature.get("inputs")));
        Map<String, String> facts = new LinkedHashMap<>();
        fact(facts, "mlflow_version", text(map(root).get("mlflow_version")));
        fact(facts, "mlflow_inputs", text(signature.get("inputs")));
        fact(facts, "mlflow_outputs", text(signature.get("outputs")));
        fact(facts, "mlflow_params", text(signature.get("params")));
        Map<String, Object> example = map(map(root).get("saved_input_example_info"));
        fact(facts, "mlflow_input_example", example(directory, text(example.get("serving_input_path"))));
        return new MlModel(file, Map.copyOf(flavors), inputs, Map.copyOf(facts));
    }

    /** Parses YAML, or JSON, which is a subset of it, to maps, lists, strings, numbers and booleans. */
    private static @Nullable Object parse(String text) {
        LoadSettings settings = LoadSettings.builder()
                .setCodePointLimit(LARGEST)
                .setMaxAliasesForCollections(50)
                .setAllowDuplicateKeys(false)
                .build();
        return new Load(settings).loadFromString(text);
    }

    private static void fact(Map<String, String> facts, String name, String value) {
        if (!value.isEmpty() && value.length() <= LARGEST_EXAMPLE) {
            facts.put(name, value);
        }
    }

    /** The input example, in the form of a request to {@code /invocations}; empty when there is none. */
    private static String example(Path directory, String name) {
        Path file = directory.resolve(name).normalize();
        try {
            return !name.isEmpty()
                            && file.startsWith(directory.normalize())
                            && Files.isRegularFile(file)
                            && Files.size(file) <= LARGEST_EXAMPLE
                    ? Files.readString(file, StandardCharsets.UTF_8)
                    : "";
        } catch (IOException e) {
            return "";
        }
    }

    private static @Nullable Schema schema(Path file, String json) {
        if (json.isEmpty()) {
            return null;
        }
        Object root;
        try {
            root = parse(json);
        } catch (YamlEngineException | StackOverflowError e) {
            throw invalid(file, "has a signature that is not JSON: " + firstLine(e));
        }
        if (!(root instanceof List<?> list)) {
            throw invalid(file, "has a signature that is not a list");
        }
        List<Item> items = new ArrayList<>();
        boolean tensors = false;
        for (Object element : list) {
            Map<String, Object> field = map(element);
            Map<String, Object> tensor = map(field.get("tensor-spec"));
            tensors |= !tensor.isEmpty();
            DataType type = tensor.isEmpty() ? ofColumn(text(field.get("type"))) : ofNumpy(text(tensor.get("dtype")));
            if (type == null) {
                // Columns of arrays and objects, which no supported flavor takes.
                return null;
            }
            boolean optional = Boolean.FALSE.equals(field.get("required"));
            items.add(new Item(
                    text(field.get("name")),
                    type,
                    tensor.isEmpty() ? Shape.of(-1) : shape(file, tensor.get("shape")),
                    !optional));
        }
        return items.isEmpty() ? null : new Schema(!tensors, List.copyOf(items));
    }

    private static Shape shape(Path file, @Nullable Object value) {
        if (!(value instanceof List<?> list) || list.size() > 64) {
            throw invalid(file, "has a signature with a tensor without a shape");
        }
        long[] dims = new long[list.size()];
        for (int i = 0; i < dims.length; i++) {
            if (!(list.get(i) instanceof Number n) || n.longValue() < -1) {
                throw invalid(file, "has a signature with the shape " + list);
            }
            dims[i] = n.longValue();
        }
        return Shape.of(dims);
    }

    private static @Nullable DataType ofColumn(String type) {
        return switch (type) {
            case "boolean" -> DataType.BOOL;
            case "integer" -> DataType.INT32;
            case "long" -> DataType.INT64;
            case "float" -> DataType.FP32;
            case "double" -> DataType.FP64;
            case "string", "binary", "datetime" -> DataType.BYTES;
            default -> null;
        };
    }

    private static @Nullable DataType ofNumpy(String type) {
        return switch (type) {
            case "bool" -> DataType.BOOL;
            case "int8" -> DataType.INT8;
            case "int16" -> DataType.INT16;
            case "int32" -> DataType.INT32;
            case "int64" -> DataType.INT64;
            case "uint8" -> DataType.UINT8;
            case "uint16" -> DataType.UINT16;
            case "uint32" -> DataType.UINT32;
            case "uint64" -> DataType.UINT64;
            case "float16" -> DataType.FP16;
            case "float32" -> DataType.FP32;
            case "float64" -> DataType.FP64;
            case "str", "object", "bytes" -> DataType.BYTES;
            default -> null;
        };
    }

    /** The value as a map with string keys; empty for any other value. */
    static Map<String, Object> map(@Nullable Object value) {
        Map<String, Object> map = new LinkedHashMap<>();
        if (value instanceof Map<?, ?> given) {
            given.forEach((k, v) -> {
                if (k instanceof String key && v != null) {
                    map.put(key, v);
                }
            });
        }
        return map;
    }

    /** The value as text; empty for null. */
    static String text(@Nullable Object value) {
        return value == null ? "" : value.toString();
    }

    private static ServingException invalid(Path file, String what) {
        return ServingException.invalidArgument("'" + file + "' " + what, SAVE_AGAIN);
    }

    private static String firstLine(Throwable e) {
        String message = String.valueOf(e.getMessage());
        int end = message.indexOf('\n');
        String line = end < 0 ? message : message.substring(0, end);
        return line.length() > 200 ? line.substring(0, 200) + "…" : line;
    }
}
