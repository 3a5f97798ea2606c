// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The flavor of a model that is served, with the backend that runs it and the file that it loads. Immutable.
 *
 * @param name the flavor
 * @param backend the backend that runs it
 * @param modelFile a file or directory inside the model directory
 * @param parameters additional parameters for the backend
 * @param labels whether the model predicts the most probable class, which the backend returns as {@code label}
 */
record Flavor(String name, String backend, String modelFile, Map<String, String> parameters, boolean labels) {
    /** The flavor of a model that only Python can run; its code runs. */
    static final String FUNCTION = "python_function";

    /** The parameter that selects a flavor. */
    static final String PARAMETER = "flavor";

    /** The supported flavors in order of preference, with their backends. */
    static final Map<String, String> BACKENDS = backends();

    private static Map<String, String> backends() {
        Map<String, String> backends = new LinkedHashMap<>();
        backends.put("onnx", "onnxruntime");
        backends.put("xgboost", "xgboost");
        backends.put("lightgbm", "lightgbm");
        backends.put("catboost", "catboost");
        backends.put("sklearn", "sklearn");
        backends.put("tensorflow", "tensorflow");
        backends.put("pytorch", "pytorch");
        backends.put(FUNCTION, "python");
        return java.util.Collections.unmodifiableMap(backends);
    }

    /** Whether Python runs the model, with {@code mlflow.pyfunc}. */
    boolean function() {
        return name.equals(FUNCTION);
    }

    /**
     * Selects the flavor of a model that is served.
     *
     * @param wanted the flavor that the configuration names; empty for the first supported one
     * @throws ServingException INVALID_ARGUMENT when no flavor is supported, with a remedy
     */
    static Flavor of(MlModel model, Path directory, String modelName, String wanted) {
        for (Map.Entry<String, String> known : BACKENDS.entrySet()) {
            Map<String, Object> settings = model.flavors().get(known.getKey());
            if (settings != null && (wanted.isEmpty() || wanted.equals(known.getKey()))) {
                Flavor flavor = of(known.getKey(), known.getValue(), settings, model, modelName);
                Path file = directory.resolve(flavor.modelFile).normalize();
                if (!file.startsWith(directory.normalize()) || !Files.exists(file)) {
                    throw ServingException.invalidArgument(
                            "model '" + modelName + "' lacks '" + flavor.modelFile + "', which " + model.file()
                                    + " names",
                            "copy the whole directory that MLflow saved");
                }
                return flavor;
            }
        }
        List<String> found = model.flavors().keySet().stream().sorted().toList();
        if (!wanted.isEmpty()) {
            throw ServingException.invalidArgument(
                    "model '" + modelName + "' has the parameter '" + PARAMETER + "' '" + wanted
                            + "' (expected: one of "
                            + String.join(", ", found) + ", in which MLflow saved it, of those that are supported: "
                            + String.join(", ", BACKENDS.keySet()) + ")",
                    "correct the parameter, or leave it out");
        }
        throw ServingException.of(
                ErrorCode.INVALID_ARGUMENT,
                "model '" + modelName + "' was saved by MLflow in the flavors " + String.join(", ", found)
                        + ", none of which is supported (expected: one of " + String.join(", ", BACKENDS.keySet())
                        + ")",
                "log it as a Python function or in a native flavour, such as with mlflow.pyfunc.log_model,"
                        + " mlflow.onnx.log_model or mlflow.sklearn.log_model");
    }

    private static Flavor of(
            String name, String backend, Map<String, Object> settings, MlModel model, String modelName) {
        String data = MlModel.text(settings.get("data"));
        String modelClass = MlModel.text(settings.get("model_class"));
        switch (name) {
            case "onnx":
                return new Flavor(name, backend, or(data, "model.onnx"), Map.of(), false);
            case "xgboost":
                return new Flavor(name, backend, or(data, "model.xgb"), Map.of(), modelClass.endsWith("Classifier"));
            case "lightgbm":
                if (!modelClass.isEmpty() && !modelClass.endsWith(".Booster")) {
                    // A class for scikit-learn, saved as a Python object: skops, or a pickle.
                    return new Flavor(name, "sklearn", or(data, "model.pkl"), Map.of(), false);
                }
                return new Flavor(name, backend, or(data, "model.lgb"), Map.of(), false);
            case "catboost":
                return new Flavor(name, backend, or(data, "model.cb"), Map.of(), false);
            case "sklearn":
                Map<String, Object> function = model.flavors().getOrDefault("python_function", Map.of());
                String method = MlModel.text(function.get("predict_fn"));
                return new Flavor(
                        name,
                        backend,
                        or(MlModel.text(settings.get("pickled_model")), "model.pkl"),
                        method.isEmpty() || method.equals("predict") ? Map.of() : Map.of("predict_fn", method),
                        false);
            case FUNCTION:
                return new Flavor(name, backend, MlModel.FILE, Map.of(), false);
            case "tensorflow":
                return new Flavor(name, backend, savedModel(settings, data, modelName), Map.of(), false);
            default:
                return new Flavor(
                        name,
                        backend,
                        or(MlModel.text(settings.get("model_data")), "data") + "/model.pth",
                        Map.of(),
                        false);
        }
    }

    private static String savedModel(Map<String, Object> settings, String data, String modelName) {
        String saved = MlModel.text(settings.get("saved_model_dir"));
        if (!saved.isEmpty()) {
            return saved;
        }
        String format = MlModel.text(settings.get("save_format"));
        if (!format.equals("tf")) {
            throw ServingException.invalidArgument(
                    "model '" + modelName + "' is a Keras model in the format '" + (format.isEmpty() ? "keras" : format)
                            + "' (expected: a SavedModel)",
                    "write it with model.export(DIRECTORY), and log that:"
                            + " mlflow.tensorflow.log_model(tf.saved_model.load(…)); or let Python run it, with the parameter '"
                            + PARAMETER + "' '" + FUNCTION + "' in config.pbtxt");
        }
        return or(data, "data") + "/model";
    }

    private static String or(@Nullable String given, String otherwise) {
        return given == null || given.isEmpty() ? otherwise : given;
    }
}
