// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Model;
import io.nereid.repository.ManagedModel;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.DynamicBatching;
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

/**
 * Builds the specification of a model for the engine from a workload: its files, backend and parameters. Translates
 * model format, arguments and environment variables as KServe's runtimes interpret them. Stateless.
 */
public final class ManagedModelBuilder {
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * The engine's view of a model format.
     *
     * @param backend the backend; empty to detect it from the files
     * @param files patterns of the model's file; empty for the backend's defaults
     */
    private record Format(String backend, List<String> files) {}

    /**
     * The result.
     *
     * @param model the specification, for one instance
     * @param modelName the model name that clients use
     */
    public record Result(ManagedModel model, String modelName) {}

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
            Map.entry("huggingface", new Format("huggingface", List.of())),
            Map.entry("tflite", new Format("tflite", List.of())),
            Map.entry("triton", new Format("", List.of())));

    private static final Map<String, String> IMPLEMENTATIONS = Map.of(
            "mlserver_sklearn.SKLearnModel", "sklearn",
            "mlserver_xgboost.XGBoostModel", "xgboost",
            "mlserver_lightgbm.LightGBMModel", "lightgbm",
            "mlserver_catboost.CatboostModel", "catboost",
            "mlserver_mlflow.MLflowRuntime", "mlflow");

    /** Options that name the directory of the model's files. */
    private static final List<String> DIRECTORIES =
            List.of("model_dir", "model_base_path", "model_store", "model_repository", "model_path");

    /** Options that configure a runtime's server process; here they have no effect on a single model. */
    private static final Set<String> NO_EFFECT = Set.of(
            "host",
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
            "file_system_poll_wait_seconds",
            "grace_period",
            "drain_timeout");

    private static final Set<String> KNOWN = Set.of(
            "model_name",
            "model_format",
            "model_layout",
            "model_server",
            "framework",
            "model_control_mode",
            "load_model");

    /** The formats of KServe's Python servers, whose outputs and V1 answers have other names than MLServer's. */
    private static final Set<String> PYTHON_SERVERS =
            Set.of("sklearn", "xgboost", "lightgbm", "pmml", "paddle", "huggingface", "");

    private ManagedModelBuilder() {}

    /**
     * Builds the specification. Reads the model's directory where necessary.
     *
     * @param files the fetched artifacts, in their order
     * @param warnings receives a sentence for each setting without effect on this server
     * @throws ServingException INVALID_ARGUMENT or FAILED_PRECONDITION for a specification that cannot be served
     */
    public static Result build(Workload workload, Model model, List<Path> files, List<String> warnings) {
        Map<String, String> options = CommandLineArguments.normalized(model.arguments());
        Map<String, String> environment = model.environment();
        Map<String, String> parameters = new LinkedHashMap<>();
        String modelName = workload.modelName();
        String formatName = model.format().toLowerCase(Locale.ROOT);
        if (model.artifacts().isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "the model has no storageUri",
                    "set the predictor's storageUri or storage");
        }
        modelName = environment.getOrDefault("MLSERVER_MODEL_NAME", modelName);
        modelName = options.getOrDefault("model_name", modelName);
        String framework = options.getOrDefault("framework", options.get("model_format"));
        if (framework != null && !framework.isEmpty()) {
            formatName = framework.toLowerCase(Locale.ROOT);
        }
        String implementation = environment.getOrDefault("MLSERVER_MODEL_IMPLEMENTATION", "");
        if (!implementation.isEmpty()) {
            String of = IMPLEMENTATIONS.get(implementation);
            if (of == null) {
                warnings.add("MLSERVER_MODEL_IMPLEMENTATION=" + implementation
                        + " is not known; the model's format selects the backend");
            } else if (!FORMATS.containsKey(formatName)) {
                formatName = of;
            }
        }
        Path directory = directory(model, options, environment, files);
        if (formatName.equals("pytorch") && Files.isDirectory(directory.resolve("model-store"))) {
            directory = directory.resolve("model-store"); // TorchServe's layout
        }
        if (formatName.equals("huggingface")) {
            options = TextArguments.take(options, parameters, warnings);
        }
        ignored(options, environment, warnings);
        Format format = FORMATS.get(formatName);
        if (format == null) {
            format = new Format("", List.of());
            warnings.add("the format '" + model.format()
                    + "' has no backend of its own; the backend is detected from the files");
        }
        Map<String, String> limits = new LinkedHashMap<>();
        model.limits().path("limits").properties().forEach(one -> {
            if (!one.getKey().startsWith("nvidia.com/")) {
                limits.put(one.getKey(), one.getValue().asText());
            }
        });
        if (!limits.isEmpty()) {
            warnings.add("the limits " + JSON.valueToTree(limits)
                    + " are not enforced: the model runs inside the server process");
        }
        boolean proba = environment.getOrDefault("PREDICT_PROBA", "").equalsIgnoreCase("true");
        if (proba && format.backend.equals("sklearn")) {
            parameters.put("predict_proba", "true");
        } else if (proba) {
            warnings.add("PREDICT_PROBA only has an effect on scikit-learn models");
        }
        String file = settingsFile(directory, warnings);
        boolean repository =
                formatName.equals("triton") || (ofRepositories(model, options) && file.isEmpty() && !isFlat(directory));
        if (options.getOrDefault("model_control_mode", "none").equals("explicit")) {
            warnings.add("--model-control-mode=explicit has no effect: every model of the repository is loaded");
        }
        if (!repository && PYTHON_SERVERS.contains(format.backend) && !ofMlserver(model, options)) {
            parameters.put(ModelMetadata.KSERVE_SERVER, "true");
        }
        Workload.Batcher batcher = workload.batcher();
        DynamicBatching batching = batcher == null
                ? null
                : new DynamicBatching(List.of(batcher.maxBatchSize()), batcher.maxLatency(), true);
        if (batcher != null) {
            // Responses carry a batch id, as those of KServe's batcher do.
            parameters.put("nereid.batch_id", "true");
        }
        ManagedModel managed = new ManagedModel(
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
        return new Result(managed, modelName);
    }

    /** Whether the server that the engine replaces expects a directory of models. */
    private static boolean ofRepositories(Model model, Map<String, String> options) {
        return model.runtime().contains("triton")
                || options.getOrDefault("model_layout", "").equals("repository");
    }

    /** Whether the server that the engine replaces is MLServer, by the runtime's name, its arguments or its variables. */
    private static boolean ofMlserver(Model model, Map<String, String> options) {
        String server = options.getOrDefault("model_server", "");
        if (!server.isEmpty()) {
            return server.equals("mlserver");
        }
        return model.runtime().contains("mlserver")
                || model.environment().keySet().stream().anyMatch(name -> name.startsWith("MLSERVER_"));
    }

    private static Path directory(
            Model model, Map<String, String> options, Map<String, String> environment, List<Path> files) {
        String path = environment.get("MLSERVER_MODEL_URI");
        for (String option : DIRECTORIES) {
            path = options.getOrDefault(option, path);
        }
        Path first = files.get(0);
        if (path == null) {
            return first;
        }
        for (int i = 0; i < files.size(); i++) {
            Artifact artifact = model.artifacts().get(i);
            String mount = artifact.mountPath();
            if (path.equals(mount) || path.equals(mount + "/")) {
                return files.get(i);
            }
            if (path.startsWith(mount + "/")) {
                Path inside =
                        files.get(i).resolve(path.substring(mount.length() + 1)).normalize();
                if (inside.startsWith(files.get(i)) && Files.exists(inside)) {
                    return inside;
                }
                if (inside.startsWith(files.get(i)) && model.runtime().contains("torchserve")) {
                    return files.get(i);
                }
                throw ServingException.invalidArgument(
                        "the runtime's arguments name " + path + ", which does not exist in the files from "
                                + artifact.uri(),
                        "correct the argument, or storageUri");
            }
        }
        throw ServingException.invalidArgument(
                "the runtime's arguments name " + path + ", where no artifact is mounted",
                "name " + model.artifacts().get(0).mountPath() + ", or a directory in it");
    }

    private static void ignored(Map<String, String> options, Map<String, String> environment, List<String> warnings) {
        List<String> without = new ArrayList<>();
        for (String option : options.keySet()) {
            if (NO_EFFECT.contains(option)) {
                without.add("--" + option);
            } else if (!KNOWN.contains(option) && !DIRECTORIES.contains(option)) {
                warnings.add("the argument --" + option + " is not known and has no effect");
            }
        }
        if (!without.isEmpty()) {
            warnings.add("the model runs inside the server process, where " + String.join(", ", without)
                    + (without.size() == 1 ? " has" : " have") + " no effect");
        }
        for (String name : environment.keySet()) {
            if (name.startsWith("MLSERVER_")
                    && !Set.of("MLSERVER_MODEL_NAME", "MLSERVER_MODEL_URI", "MLSERVER_MODEL_IMPLEMENTATION")
                            .contains(name)) {
                warnings.add("the variable " + name + " has no effect on a model inside the server process");
            }
        }
    }

    /** Returns the model file that MLServer's model-settings.json names; empty without one. */
    private static String settingsFile(Path directory, List<String> warnings) {
        Path settings = directory.resolve("model-settings.json");
        if (!Files.isRegularFile(settings)) {
            return "";
        }
        try {
            JsonNode tree = JSON.readTree(settings.toFile());
            String uri = tree.path("parameters").path("uri").asText("");
            if (tree.hasNonNull("name")) {
                warnings.add("model-settings.json names the model '"
                        + tree.path("name").asText() + "'; the name of the service is used instead");
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

    /**
     * Whether a directory holds a model file itself (one model), rather than a directory for each model (a repository).
     */
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
}
