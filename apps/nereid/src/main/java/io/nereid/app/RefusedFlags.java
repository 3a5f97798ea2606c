// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What to say of options of {@code tritonserver} and {@code tensorflow_model_server} that this server does not have. Immutable. */
final class RefusedFlags {
    private static final String GPU =
            "this build runs models on processors, so there is no GPU memory to set up; leave it out";
    private static final String TFLITE =
            "a SavedModel is never run by TensorFlow Lite; serve the .tflite file itself (nereid plugins install tflite)";
    private static final String TENSORFLOW =
            "it steers TensorFlow's own runtime; --backend-config tensorflow,KEY=VALUE has what can be set here";
    private static final String GRPC_TUNING =
            "HTTP/2 connections are kept alive and their memory is bounded by rules of this server; leave it out";

    private static final Map<String, String> SENTENCES = Map.ofEntries(
            Map.entry("--enable-peer-access", GPU),
            Map.entry("--cuda-memory-pool-byte-size", GPU),
            Map.entry("--cuda-virtual-address-size", GPU),
            Map.entry("--min-supported-compute-capability", GPU),
            Map.entry("--model-load-gpu-limit", GPU),
            Map.entry("--pinned-memory-pool-byte-size", GPU),
            Map.entry("--allow-gpu-metrics", GPU),
            Map.entry(
                    "--backend-directory",
                    "backends are built in or plugins (nereid plugins list); libtriton_*.so libraries are not loaded"),
            Map.entry(
                    "--repoagent-directory",
                    "the checksum agent is built in; libtritonrepoagent_*.so libraries are not loaded"),
            Map.entry(
                    "--cache-directory",
                    "caches are built in (see --cache-config); libtritoncache_*.so libraries are not loaded"),
            Map.entry(
                    "--buffer-manager-thread-count",
                    "inputs are gathered by the thread that runs the model; leave it out"),
            Map.entry("--model-namespacing", "a model's name must be unique over all repositories; rename one of two"),
            Map.entry("--allow-http", "REST and gRPC share a port and are both always there; leave it out"),
            Map.entry("--allow-grpc", "REST and gRPC share a port and are both always there; leave it out"),
            Map.entry("--allow-cpu-metrics", "the processor's figures are always on the metrics page; leave it out"),
            Map.entry("--metrics-interval-ms", "figures are read when the metrics page is asked for; leave it out"),
            Map.entry("--reuse-http-port", "one process listens on a port; run replicas on ports of their own"),
            Map.entry("--reuse-grpc-port", "one process listens on a port; run replicas on ports of their own"),
            Map.entry("--grpc-infer-thread-count", "all connections share the threads of --io-threads"),
            Map.entry("--grpc-infer-allocation-pool-size", GRPC_TUNING),
            Map.entry("--grpc-max-response-pool-size", GRPC_TUNING),
            Map.entry("--grpc-infer-response-compression-level", "gRPC answers are not compressed; leave it out"),
            Map.entry("--grpc-keepalive-time", GRPC_TUNING),
            Map.entry("--grpc-keepalive-timeout", GRPC_TUNING),
            Map.entry("--grpc-keepalive-permit-without-calls", GRPC_TUNING),
            Map.entry("--grpc-http2-max-pings-without-data", GRPC_TUNING),
            Map.entry("--grpc-http2-min-recv-ping-interval-without-data", GRPC_TUNING),
            Map.entry("--grpc-http2-max-ping-strikes", GRPC_TUNING),
            Map.entry("--grpc-max-connection-age", GRPC_TUNING),
            Map.entry("--grpc-max-connection-age-grace", GRPC_TUNING),
            Map.entry(
                    "--use_alts_credentials",
                    "ALTS is for Google's own machines; --tls-cert or --ssl_config_file encrypt"),
            Map.entry("--grpc_channel_arguments", GRPC_TUNING),
            Map.entry("--grpc_max_threads", "all connections share the threads of --io-threads"),
            Map.entry("--platform_config_file", "models find their backend themselves; see model_platform"),
            Map.entry("--tensorflow_session_config_file", TENSORFLOW),
            Map.entry("--per_process_gpu_memory_fraction", GPU),
            Map.entry("--thread_pool_factory_config_file", TENSORFLOW),
            Map.entry("--prefer_tflite_model", TFLITE),
            Map.entry("--num_tflite_pools", TFLITE),
            Map.entry("--num_tflite_interpreters_per_pool", TFLITE),
            Map.entry("--mixed_precision", TENSORFLOW),
            Map.entry("--xla_cpu_compilation_enabled", TENSORFLOW),
            Map.entry("--xla_gpu_compilation_enabled", TENSORFLOW),
            Map.entry("--skip_initialize_tpu", TENSORFLOW),
            Map.entry("--allow-sagemaker", "SageMaker's routes are not served by this version"),
            Map.entry("--sagemaker-port", "SageMaker's routes are not served by this version"),
            Map.entry("--sagemaker-safe-port-range", "SageMaker's routes are not served by this version"),
            Map.entry("--sagemaker-thread-count", "SageMaker's routes are not served by this version"),
            Map.entry("--allow-vertex-ai", "Vertex AI's routes are not served by this version"),
            Map.entry("--vertex-ai-port", "Vertex AI's routes are not served by this version"),
            Map.entry("--vertex-ai-thread-count", "Vertex AI's routes are not served by this version"),
            Map.entry("--vertex-ai-default-model", "Vertex AI's routes are not served by this version"));

    private RefusedFlags() {}

    /** Why an option is refused, or null when nothing is known of it. */
    static @Nullable String why(String option) {
        return SENTENCES.get(option);
    }
}
