// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.LenientJson;
import io.nereid.spi.management.LoadOptions;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Collects the parameters of a load request: a configuration and files that replace those of the repository. Confined
 * to one thread; used for one request.
 */
public final class LoadParameters {
    private static final String FILE = "file:";
    /** Nereid's own parameter, for servers that fetch models for clients. */
    private static final String STORAGE_URI = "storage_uri";

    /** Backends that read a model as data. Any other one may run code that a configuration chooses. */
    private static final Set<String> DATA_BACKENDS = Set.of(
            "onnxruntime",
            "onnxruntime_onnx",
            "tensorflow",
            "tensorflow_savedmodel",
            "tensorflow_graphdef",
            "pytorch",
            "pytorch_libtorch",
            "tflite",
            "fil",
            "xgboost",
            "lightgbm",
            "catboost",
            "sklearn",
            "pmml",
            "ensemble");

    /**
     * Parameters that name code outside of the model's directory, or that run the code of a model that is otherwise read
     * as data: {@code flavor}, of a model that MLflow saved.
     */
    private static final Set<String> CODE_PARAMETERS =
            Set.of("EXECUTION_ENV_PATH", "TRITON_BATCH_STRATEGY_PATH", "flavor");

    private final boolean upload;

    private @Nullable String config;
    private @Nullable String storageUri;
    private Map<String, byte[]> files = Map.of();

    /**
     * Creates a collector.
     *
     * @param upload whether files, and configurations that choose code to run, are accepted
     */
    public LoadParameters(boolean upload) {
        this.upload = upload;
    }

    /** Whether a parameter holds the content of a file. */
    public static boolean isFile(String name) {
        return name.startsWith(FILE);
    }

    /**
     * Adds a parameter; the value is a String, Long, Double, Boolean or byte[]. The configuration may have what
     * {@link LenientJson} takes.
     */
    public void put(String name, Object value) {
        if (name.equals("config")) {
            if (!(value instanceof String text)) {
                throw ServingException.invalidArgument("Config parameter 'config' must have string type for its value");
            }
            config = LenientJson.standard(text);
        } else if (name.equals(STORAGE_URI)) {
            if (!(value instanceof String uri)) {
                throw ServingException.invalidArgument(
                        "parameter '" + STORAGE_URI + "' must have string type for its value");
            }
            storageUri = uri;
        } else if (isFile(name)) {
            if (!(value instanceof byte[] content)) {
                throw wrongFile(name);
            }
            if (files.isEmpty()) {
                files = new LinkedHashMap<>();
            }
            files.put(name.substring(FILE.length()), content);
        } else {
            throw ServingException.invalidArgument(
                    "Unrecognized load parameter '" + name + "' with type '" + typeName(value) + "'");
        }
    }

    public static ServingException wrongFile(String name) {
        return ServingException.invalidArgument("File parameter '" + name + "' must have bytes type for its value");
    }

    private static String typeName(Object value) {
        if (value instanceof String) {
            return "STRING";
        }
        if (value instanceof Boolean) {
            return "BOOL";
        }
        if (value instanceof Long) {
            return "INT";
        }
        return value instanceof Double ? "DOUBLE" : "BYTES";
    }

    public LoadOptions options() {
        if (storageUri != null) {
            if (config != null || !files.isEmpty()) {
                throw ServingException.invalidArgument("parameter '" + STORAGE_URI
                        + "' goes with neither 'config' nor files (expected: it alone; the model's files have its"
                        + " configuration)");
            }
            return LoadOptions.ofStorage(storageUri);
        }
        if (config == null && files.isEmpty()) {
            return LoadOptions.NONE;
        }
        if (config == null) {
            throw ServingException.invalidArgument("Load parameter 'config' must be specified for model file override");
        }
        if (!upload) {
            if (!files.isEmpty()) {
                throw closed("the file parameter '" + FILE
                        + files.keySet().iterator().next() + "' is not accepted");
            }
            checkRunsNoCode(config);
        }
        return new LoadOptions(config, files);
    }

    private static ServingException closed(String what) {
        return ServingException.of(
                ErrorCode.PERMISSION_DENIED,
                what + ": clients may not bring models or code to this server",
                "put the model into the repository, or start the server with --allow-model-upload");
    }

    /** Rejects a configuration that chooses code: a backend that runs code, a library, an environment. */
    private static void checkRunsNoCode(String config) {
        byte[] text = config.getBytes(StandardCharsets.UTF_8);
        JsonReader json = new JsonReader();
        json.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
        json.beginObject();
        while (json.nextField()) {
            String key = json.key();
            switch (key) {
                case "backend", "platform" -> {
                    String name = json.peek() == JsonToken.STRING ? json.readString() : "";
                    if (!name.isEmpty() && !DATA_BACKENDS.contains(name)) {
                        throw closed("a configuration with the " + key + " '" + name + "' is not accepted");
                    }
                }
                case "model_operations", "modelOperations" ->
                    throw closed("a configuration with '" + key + "' is not accepted");
                case "parameters" -> {
                    if (!json.tryNull()) {
                        json.beginObject();
                        while (json.nextField()) {
                            String parameter = json.key();
                            if (CODE_PARAMETERS.contains(parameter)) {
                                throw closed("a configuration with the parameter '" + parameter + "' is not accepted");
                            }
                            json.skipValue();
                        }
                    }
                }
                default -> json.skipValue();
            }
        }
    }
}
