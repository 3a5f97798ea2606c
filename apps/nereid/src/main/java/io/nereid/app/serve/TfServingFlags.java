// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.base.ServingException;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.options.WarmupOptions;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.lifecycle.policy.LabelAssignmentPolicy;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.repository.tfserving.MonitoringConfig;
import io.nereid.spi.management.ModelListEntry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/**
 * The options of {@code tensorflow_model_server} that this server supports, under the same names. The unsupported ones
 * are in {@link IgnoredFlags}. Set by picocli, then only read.
 */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class TfServingFlags {
    /** The aspired version policy: the order in which new versions are loaded and old ones unloaded. */
    enum Aspired {
        availability_preserving,
        resource_preserving,
        all_or_nothing
    }

    @Option(
            names = {"--model_config_file", "--model-config-file"},
            paramLabel = "FILE",
            description = "The list of models to serve, in TensorFlow Serving's format.")
    Path modelConfigFile;

    @Option(
            names = {"--model_config_file_poll_wait_seconds", "--model-config-file-poll-wait-seconds"},
            paramLabel = "N",
            defaultValue = "0",
            description = "Poll interval of that file in seconds; 0 to read it once (default: ${DEFAULT-VALUE}).")
    int modelConfigFilePollWaitSeconds;

    @Option(
            names = "--model_name",
            paramLabel = "NAME",
            defaultValue = "default",
            description = "Name of the model of --model_base_path (default: ${DEFAULT-VALUE}).")
    String modelName;

    @Option(
            names = "--model_base_path",
            paramLabel = "DIR",
            description = "A directory with a directory for each version of one model.")
    String modelBasePath;

    @Option(
            names = "--file_system_poll_wait_seconds",
            paramLabel = "N",
            defaultValue = "1",
            description = "Poll interval for new versions of listed models; 0 to read them once (default:"
                    + " ${DEFAULT-VALUE}).")
    int fileSystemPollWaitSeconds;

    @Option(
            names = "--servable_versions_always_present",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Never unload a listed model because its directory is empty (default: false).")
    boolean versionsAlwaysPresent;

    @Option(
            names = "--fail_if_zero_versions_at_startup",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Exit when a listed model has no versions at startup (default: false).")
    boolean failIfZeroVersions;

    @Option(
            names = "--allow_version_labels_for_unavailable_models",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Allow a new label on a version that is not available yet (default: false).")
    boolean labelsForUnavailable;

    @Option(
            names = "--force_allow_any_version_labels",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Allow any version label assignment (default: false).")
    boolean forceLabels;

    @Option(
            names = "--aspired_version_policy",
            paramLabel = "POLICY",
            description = "availability_preserving loads the new version before the old one is unloaded,"
                    + " resource_preserving"
                    + " after; all_or_nothing makes all new versions visible at once (the default).")
    Aspired aspired;

    @Option(
            names = "--rest_api_port",
            paramLabel = "PORT",
            description = "An additional port; --ssl_config_file does not encrypt it.")
    Integer restApiPort;

    @Option(
            names = "--grpc_socket_path",
            paramLabel = "PATH",
            description = "Also listen on a Unix domain socket; never encrypted.")
    Path grpcSocketPath;

    @Option(names = "--rest_api_num_threads", paramLabel = "N", description = "The same as --io-threads.")
    Integer restApiNumThreads;

    @Option(
            names = "--rest_api_timeout_in_ms",
            paramLabel = "N",
            defaultValue = "30000",
            description = "Timeout of a V1 REST request; 0 for none (default: ${DEFAULT-VALUE}).")
    long restApiTimeoutMillis;

    @Option(
            names = "--rest_api_enable_cors_support",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Enable CORS for the V1 REST API (default: false).")
    boolean cors;

    @Option(
            names = "--ssl_config_file",
            paramLabel = "FILE",
            description = "Encrypt --port with the key and certificates of this file, in TensorFlow Serving's format.")
    Path sslConfigFile;

    @Option(
            names = "--monitoring_config_file",
            paramLabel = "FILE",
            description = "Also export metrics under TensorFlow Serving's names, at the path in this file.")
    Path monitoringConfigFile;

    @Option(
            names = "--enable_batching",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Batch by --batching_parameters_file (without it, each model's configuration applies).")
    boolean enableBatching;

    @Option(
            names = "--batching_parameters_file",
            paramLabel = "FILE",
            description = "Batching parameters in TensorFlow Serving's format.")
    Path batchingParametersFile;

    @Option(
            names = "--enable_per_model_batching_parameters",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Batch by batching_params.pbtxt in a version's directory; other models are not batched.")
    boolean perModelBatching;

    @Option(
            names = "--enable_model_warmup",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "true",
            paramLabel = "true|false",
            description = "Run assets.extra/tf_serving_warmup_requests before a version serves (default: true).")
    boolean modelWarmup;

    @Option(
            names = "--num_request_iterations_for_warmup",
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of runs of each warmup request (default: ${DEFAULT-VALUE}).")
    int warmupIterations;

    @Option(
            names = "--num_model_warmup_threads",
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of concurrent warmup requests (default: ${DEFAULT-VALUE}).")
    int warmupThreads;

    @Option(
            names = "--enable_all_batch_sizes_warmup",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Also run warmup requests in batches of every allowed size (default: false).")
    boolean warmupAllBatchSizes;

    @Option(names = "--num_load_threads", paramLabel = "N", description = "The same as --load-threads.")
    Integer numLoadThreads;

    @Option(
            names = "--num_initial_load_threads",
            paramLabel = "N",
            description = "The same, for the models at startup.")
    Integer numInitialLoadThreads;

    @Option(
            names = "--max_num_load_retries",
            paramLabel = "N",
            description = "Number of retries of a failed load (default: as --model-load-retry-count).")
    Integer maxLoadRetries;

    @Option(
            names = "--load_retry_interval_micros",
            paramLabel = "N",
            description = "Time between two attempts (default: 1 s).")
    Long loadRetryIntervalMicros;

    @Option(names = "--total_model_memory_limit_bytes", paramLabel = "N", description = "The same as --model-memory.")
    Long totalModelMemoryLimitBytes;

    @Option(
            names = "--reload_timeout_seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = "Time limit for new models when the list is reloaded (default: ${DEFAULT-VALUE}).")
    int reloadTimeoutSeconds;

    @Option(
            names = "--enable_serialization_as_tensor_content",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Return raw tensor_content in TensorFlow Serving's gRPC responses (default: false).")
    boolean tensorContent;

    @Option(
            names = "--enable_signature_method_name_check",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Reject signatures whose method is not predict, classify or regress (default: false).")
    boolean methodCheck;

    @Option(
            names = "--saved_model_tags",
            paramLabel = "TAG,…",
            description = "Tags of the SavedModel's graph to serve (default: serve).")
    String savedModelTags;

    @Option(
            names = {"--tensorflow_intra_op_parallelism", "--tensorflow_session_parallelism"},
            paramLabel = "N",
            description = "Threads inside one run of a TensorFlow model.")
    Integer intraOpParallelism;

    @Option(
            names = "--tensorflow_inter_op_parallelism",
            paramLabel = "N",
            description = "Operators of one run in parallel.")
    Integer interOpParallelism;

    @Option(
            names = "--enable_grpc_healthcheck_service",
            arity = "0..1",
            fallbackValue = "true",
            hidden = true,
            description = "The health service is always enabled.")
    Boolean healthCheck;

    @Option(names = "--use_alts_credentials", arity = "0..1", fallbackValue = "true", hidden = true)
    Boolean alts;

    @Option(
            names = "--ports-after-models",
            arity = "0..1",
            fallbackValue = "true",
            paramLabel = "true|false",
            description = "Open the ports when all models have been loaded, so that an open port means that they serve"
                    + " (default: true with --model_config_file and --model_base_path, else false).")
    Boolean portsAfterModels;

    /** Whether a model list or a single model is given. */
    boolean lists() {
        return modelConfigFile != null || (modelBasePath != null && !modelBasePath.isEmpty());
    }

    /** Whether the ports are opened after the models have been loaded. */
    boolean portsAfterModels() {
        return portsAfterModels == null ? lists() : portsAfterModels;
    }

    /**
     * Returns the model list at startup; empty when none is given. The file takes precedence over --model_base_path.
     */
    List<ModelListEntry> models() {
        if (modelConfigFile != null) {
            return ModelServerConfig.read(modelConfigFile);
        }
        if (!lists()) {
            return List.of();
        }
        return List.of(new ModelListEntry(
                modelName, absolute(modelBasePath), ModelServerConfig.ANY_PLATFORM, null, Map.of(), null));
    }

    /** Resolves a path of the command line against the working directory; paths in files must be absolute already. */
    private static String absolute(String path) {
        return path.contains("://")
                ? path
                : Path.of(path).toAbsolutePath().normalize().toString();
    }

    private @Nullable BatchingParameters batching() {
        if (!enableBatching) {
            if (batchingParametersFile != null || perModelBatching) {
                throw ServingException.invalidArgument(
                        (batchingParametersFile != null
                                        ? "--batching_parameters_file"
                                        : "--enable_per_model_batching_parameters")
                                + " needs --enable_batching",
                        "add --enable_batching, or omit it to batch by each model's configuration");
            }
            return null;
        }
        return batchingParametersFile == null
                ? BatchingParameters.DEFAULT
                : BatchingParameters.read(batchingParametersFile);
    }

    /** Applies these options to the engine's options. */
    void apply(EngineOptions.Builder engine, Map<String, Map<String, String>> backendSettings) {
        if (alts != null && alts) {
            throw ServingException.invalidArgument(
                    "--use_alts_credentials=true is not supported: ALTS only works inside Google Cloud",
                    "omit it; --tls-cert or --ssl_config_file encrypt connections");
        }
        BatchingParameters batching = batching();
        engine.servedModels(models())
                .modelListSource(FileSystemStoragePathSource.Options.DEFAULT
                        .withPollInterval(Duration.ofSeconds(fileSystemPollWaitSeconds))
                        .withAlwaysPresent(versionsAlwaysPresent)
                        .withFailIfZeroVersionsAtStartup(failIfZeroVersions))
                .batching(batching)
                .perModelBatching(perModelBatching)
                .labelAssignmentPolicy(
                        forceLabels
                                ? LabelAssignmentPolicy.ANY
                                : labelsForUnavailable
                                        ? LabelAssignmentPolicy.FIRST_ASSIGNMENT
                                        : LabelAssignmentPolicy.SERVING)
                .reloadTimeout(Duration.ofSeconds(reloadTimeoutSeconds))
                .warmup(new WarmupOptions(
                        modelWarmup, Math.max(1, warmupIterations), Math.max(1, warmupThreads), warmupAllBatchSizes));
        if (aspired != null) {
            engine.aspiredVersionPolicy(
                    switch (aspired) {
                        case availability_preserving -> AspiredVersionPolicy.AVAILABILITY_PRESERVING;
                        case resource_preserving -> AspiredVersionPolicy.RESOURCE_PRESERVING;
                        case all_or_nothing -> AspiredVersionPolicy.ALL_OR_NOTHING;
                    });
        }
        if (numInitialLoadThreads != null) {
            engine.initialLoadThreads(numInitialLoadThreads);
        }
        if (maxLoadRetries != null) {
            engine.loadRetries(maxLoadRetries);
        }
        if (loadRetryIntervalMicros != null) {
            engine.loadRetryInterval(Duration.ofNanos(TimeUnit.MICROSECONDS.toNanos(loadRetryIntervalMicros)));
        }
        Map<String, String> all = backendSettings.computeIfAbsent("", b -> new HashMap<>());
        if (lists() && batching == null) {
            // Without batching options, a client's batch may be as large as TensorFlow Serving's default allows.
            all.putIfAbsent("default-max-batch-size", Integer.toString(BatchingParameters.DEFAULT.maxBatchSize()));
        }
        Map<String, String> tensorflow = backendSettings.computeIfAbsent("tensorflow", b -> new HashMap<>());
        if (lists()) {
            // As in tensorflow_model_server, the graph itself checks the shapes.
            tensorflow.putIfAbsent("check-shapes", "false");
            // Likewise, inputs of TensorFlow Lite are resized to what a request brings.
            backendSettings.computeIfAbsent("tflite", b -> new HashMap<>()).putIfAbsent("check-shapes", "false");
        }
        put(tensorflow, "tags", savedModelTags);
        put(tensorflow, "intra_op_thread_count", intraOpParallelism);
        put(tensorflow, "inter_op_thread_count", interOpParallelism);
    }

    private static void put(Map<String, String> settings, String key, @Nullable Object value) {
        if (value != null) {
            settings.putIfAbsent(key, value.toString());
        }
    }

    /** Applies these options to the V1 protocol's options. */
    void apply(V1Options.Builder v1) {
        v1.cors(cors)
                .timeoutNanos(TimeUnit.MILLISECONDS.toNanos(restApiTimeoutMillis))
                .tensorContent(tensorContent)
                .methodCheck(methodCheck);
        if (monitoringConfigFile != null) {
            MonitoringConfig monitoring = MonitoringConfig.read(monitoringConfigFile);
            if (monitoring.enabled()) {
                v1.metricsPath(monitoring.path());
            }
        }
    }
}
