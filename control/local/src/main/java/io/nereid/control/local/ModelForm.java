// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Model;
import io.nereid.repository.PlacedModels.PlacedModel;
import io.nereid.spi.ModelConfig.Batching;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What a model is to the engine: its files, backend and parameters, from format, arguments and environment as KServe's runtimes
 * understand them. Immutable.
 *
 * @param placed the model
 * @param modelName the name that clients use
 * @param warnings what was said of the model and has no effect here, a sentence each
 */
record ModelForm(PlacedModel placed, String modelName, List<String> warnings) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * What a format needs.
     *
     * @param backend empty for whatever the files are
     * @param files patterns of the model's file; empty for the backend's own
     */
    private record Format(String backend, List<String> files) {}

    private static final Map<String, Format> FORMATS = Map.ofEntries(
            Map.entry("sklearn", new Format("sklearn", List.of("*.joblib", "*.pkl", "*.pickle", "*.skops"))),
            Map.entry("xgboost", new Format("xgboost", List.of("*.bst", "*.json", "*.ubj"))),
            Map.entry("lightgbm", new Format("lightgbm", List.of("*.bst", "*.txt"))),
            Map.entry("catboost", new Format("catboost", List.of())),
            Map.entry("pmml", new Format("pmml", List.of("*.pmml"))),
            Map.entry("onnx", new Format("onnxruntime", List.of("*.onnx"))),
            Map.entry("tensorflow", new Format("tensorflow", List.of())),
            Map.entry("pytorch", new Format("pytorch", List.of())),
            Map.entry("mlflow", new Format("mlflow", List.of())),
            Map.entry("paddle", new Format("paddle", List.of())),
            Map.entry("tflite", new Format("tflite", List.of())),
            Map.entry("triton", new Format("", List.of())));

    private static final Map<String, String> IMPLEMENTATIONS = Map.of(
            "mlserver_sklearn.SKLearnModel", "sklearn",
            "mlserver_xgboost.XGBoostModel", "xgboost",
            "mlserver_lightgbm.LightGBMModel", "lightgbm",
            "mlserver_catboost.CatboostModel", "catboost",
            "mlserver_mlflow.MLflowRuntime", "mlflow");

    /** Options that say where the model's files lie. */
    private static final List<String> DIRECTORIES =
            List.of("model_dir", "model_base_path", "model_store", "model_repository", "model_path");

    /** Options about what the server as a whole does here. */
    private static final Set<String> NO_EFFECT = Set.of(
            "http_port",
            "grpc_port",
            "port",
            "rest_port",
            "rest_api_port",
            "rest_api_timeout_in_ms",
            "metrics_port",
            "workers",
            "nthread",
            "max_threads",
            "max_asyncio_workers",
            "enable_grpc",
            "enable_docs_url",
            "enable_latency_logging",
            "configure_logging",
            "log_config_file",
            "access_log_format",
            "log_verbose",
            "log_info",
            "allow_grpc",
            "allow_http",
            "allow_metrics",
            "strict_readiness",
            "strict_model_config",
            "exit_on_error",
            "backend_directory",
            "ts_config",
            "start",
            "foreground",
            "file_system_poll_wait_seconds");

    private static final Set<String> KNOWN = Set.of("model_name", "framework", "model_control_mode", "load_model");

    /**
     * Reads the model's directory where it has to.
     *
     * @param files the fetched artifacts, in their order
     * @throws ServingException INVALID_ARGUMENT, FAILED_PRECONDITION for what cannot be
     */
    static ModelForm of(Workload workload, Model model, List<Path> files) {
        List<String> warnings = new ArrayList<>();
        Map<String, String> options = Options.read(model.arguments());
        Map<String, String> environment = model.environment();
        Map<String, String> parameters = new LinkedHashMap<>();
        String modelName = workload.modelName();
        String formatName = model.format().toLowerCase(Locale.ROOT);
        if (model.artifacts().isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "no storageUri says where the model's files are",
                    "give the predictor a storageUri, or storage");
        }
        modelName = environment.getOrDefault("MLSERVER_MODEL_NAME", modelName);
        modelName = options.getOrDefault("model_name", modelName);
        String framework = options.get("framework");
        if (framework != null && !framework.isEmpty()) {
            formatName = framework.toLowerCase(Locale.ROOT);
        }
        String implementation = environment.getOrDefault("MLSERVER_MODEL_IMPLEMENTATION", "");
        if (!implementation.isEmpty()) {
            String of = IMPLEMENTATIONS.get(implementation);
            if (of == null) {
                warnings.add("MLSERVER_MODEL_IMPLEMENTATION=" + implementation
                        + " is not known here; the model's format says what runs it");
            } else if (!FORMATS.containsKey(formatName)) {
                formatName = of;
            }
        }
        Path directory = directory(model, options, environment, files);
        ignored(options, environment, warnings);
        Format format = FORMATS.get(formatName);
        if (format == null) {
            format = new Format("", List.of());
            warnings.add(
                    "the format '" + model.format() + "' has no backend of its own here; the files say what runs it");
        }
        if (!model.limits().path("limits").isEmpty()) {
            warnings.add("the limits " + model.limits().path("limits")
                    + " are not enforced on a model in the server's process");
        }
        boolean proba = environment.getOrDefault("PREDICT_PROBA", "").equalsIgnoreCase("true");
        if (proba && format.backend.equals("sklearn")) {
            parameters.put("predict_proba", "true");
        } else if (proba) {
            warnings.add("PREDICT_PROBA has an effect on scikit-learn's models only");
        }
        String file = settingsFile(directory, warnings);
        boolean repository = formatName.equals("triton")
                || (model.runtime().contains("triton") && file.isEmpty() && !isFlat(directory));
        if (options.getOrDefault("model_control_mode", "none").equals("explicit")) {
            warnings.add("--model-control-mode=explicit: every model of the repository is loaded nevertheless");
        }
        Workload.Batcher batcher = workload.batcher();
        Batching batching =
                batcher == null ? null : new Batching(List.of(batcher.maxBatchSize()), batcher.maxLatency(), true);
        if (batcher != null) {
            // answers say which batch they are of, as those of KServe's batcher do
            parameters.put("nereid.batch_id", "true");
        }
        PlacedModel placed = new PlacedModel(
                workload.namespace() + "/" + workload.revision(),
                directory,
                repository,
                repository ? "" : format.backend,
                file,
                parameters,
                1,
                batching,
                batcher == null ? 0 : batcher.maxBatchSize(),
                "",
                repository ? List.of() : format.files);
        return new ModelForm(placed, modelName, List.copyOf(warnings));
    }

    private static Path directory(
            Model model, Map<String, String> options, Map<String, String> environment, List<Path> files) {
        String asked = environment.get("MLSERVER_MODEL_URI");
        for (String option : DIRECTORIES) {
            asked = options.getOrDefault(option, asked);
        }
        Path first = files.get(0);
        if (asked == null) {
            return first;
        }
        for (int i = 0; i < files.size(); i++) {
            Artifact artifact = model.artifacts().get(i);
            String mount = artifact.mountPath();
            if (asked.equals(mount) || asked.equals(mount + "/")) {
                return files.get(i);
            }
            if (asked.startsWith(mount + "/")) {
                Path inside = files.get(i)
                        .resolve(asked.substring(mount.length() + 1))
                        .normalize();
                if (inside.startsWith(files.get(i)) && Files.exists(inside)) {
                    return inside;
                }
                if (inside.startsWith(files.get(i)) && model.runtime().contains("torchserve")) {
                    return files.get(i);
                }
                throw ServingException.invalidArgument(
                        "the runtime's arguments name " + asked + ", which the files from " + artifact.uri()
                                + " do not have",
                        "correct the argument, or storageUri");
            }
        }
        throw ServingException.invalidArgument(
                "the runtime's arguments name " + asked + ", where no files are brought",
                "name " + model.artifacts().get(0).mountPath() + ", or a directory in it");
    }

    private static void ignored(Map<String, String> options, Map<String, String> environment, List<String> warnings) {
        List<String> without = new ArrayList<>();
        for (String option : options.keySet()) {
            if (NO_EFFECT.contains(option)) {
                without.add("--" + option);
            } else if (!KNOWN.contains(option) && !DIRECTORIES.contains(option)) {
                warnings.add("the argument --" + option + " is not known here and has no effect");
            }
        }
        if (!without.isEmpty()) {
            warnings.add("the model runs in the server's process, where " + String.join(", ", without)
                    + (without.size() == 1 ? " has" : " have") + " no effect");
        }
        for (String name : environment.keySet()) {
            if (name.startsWith("MLSERVER_")
                    && !Set.of("MLSERVER_MODEL_NAME", "MLSERVER_MODEL_URI", "MLSERVER_MODEL_IMPLEMENTATION")
                            .contains(name)) {
                warnings.add("the variable " + name + " has no effect on a model in the server's process");
            }
        }
    }

    /** The file that MLServer's settings name; empty when they name none. */
    private static String settingsFile(Path directory, List<String> warnings) {
        Path settings = directory.resolve("model-settings.json");
        if (!Files.isRegularFile(settings)) {
            return "";
        }
        try {
            JsonNode tree = JSON.readTree(settings.toFile());
            String uri = tree.path("parameters").path("uri").asText("");
            if (tree.hasNonNull("name")) {
                warnings.add("model-settings.json calls the model '"
                        + tree.path("name").asText() + "'; its name is that of the service");
            }
            Path file = directory.resolve(uri).normalize();
            return uri.isEmpty() || !file.startsWith(directory) || !Files.isRegularFile(file)
                    ? ""
                    : directory.relativize(file).toString();
        } catch (IOException | java.nio.file.InvalidPathException e) {
            warnings.add("model-settings.json cannot be read: " + e.getMessage());
            return "";
        }
    }

    /** Whether a directory has a model's file itself, rather than a directory for each model. */
    private static boolean isFlat(Path directory) {
        if (Files.isRegularFile(directory)) {
            return true;
        }
        try (Stream<Path> children = Files.list(directory)) {
            return children.filter(Files::isRegularFile)
                    .map(c -> String.valueOf(c.getFileName()))
                    .anyMatch(n -> n.endsWith(".onnx")
                            || n.endsWith(".pt")
                            || n.endsWith(".plan")
                            || n.equals("saved_model.pb")
                            || n.endsWith(".graphdef"));
        } catch (IOException e) {
            return false;
        }
    }

    /** The text of a failure for people. */
    static String text(@Nullable Throwable e) {
        if (e instanceof ServingException s) {
            return s.describe();
        }
        return e == null ? "" : String.valueOf(e.getMessage());
    }
}
