// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The options of {@code tritonserver} that this server does not support, each with the reason or the alternative. Stateless.
 */
final class UnsupportedFlags {
    private static final String GPU = "this build runs models on CPUs and does not use GPU memory; omit it";
    private static final String GRPC_TUNING = "HTTP/2 keep-alive and memory limits are built in; omit it";

    private static final Map<String, String> REASONS = Map.ofEntries(
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
                    "--buffer-manager-thread-count", "inputs are gathered by the thread that runs the model; omit it"),
            Map.entry("--model-namespacing", "a model's name must be unique over all repositories; rename one of two"),
            Map.entry("--allow-http", "REST and gRPC share a port and are always enabled; omit it"),
            Map.entry("--allow-grpc", "REST and gRPC share a port and are always enabled; omit it"),
            Map.entry("--allow-cpu-metrics", "CPU metrics are always exported; omit it"),
            Map.entry("--metrics-interval-ms", "metrics are read when they are scraped; omit it"),
            Map.entry("--reuse-http-port", "a port belongs to one process; run replicas on different ports"),
            Map.entry("--reuse-grpc-port", "a port belongs to one process; run replicas on different ports"),
            Map.entry("--grpc-infer-thread-count", "all connections share the threads of --io-threads"),
            Map.entry("--grpc-infer-allocation-pool-size", GRPC_TUNING),
            Map.entry("--grpc-max-response-pool-size", GRPC_TUNING),
            Map.entry("--grpc-infer-response-compression-level", "gRPC responses are not compressed; omit it"),
            Map.entry("--grpc-keepalive-time", GRPC_TUNING),
            Map.entry("--grpc-keepalive-timeout", GRPC_TUNING),
            Map.entry("--grpc-keepalive-permit-without-calls", GRPC_TUNING),
            Map.entry("--grpc-http2-max-pings-without-data", GRPC_TUNING),
            Map.entry("--grpc-http2-min-recv-ping-interval-without-data", GRPC_TUNING),
            Map.entry("--grpc-http2-max-ping-strikes", GRPC_TUNING),
            Map.entry("--grpc-max-connection-age", GRPC_TUNING),
            Map.entry("--grpc-max-connection-age-grace", GRPC_TUNING),
            Map.entry("--allow-sagemaker", "SageMaker's endpoints are not supported"),
            Map.entry("--sagemaker-port", "SageMaker's endpoints are not supported"),
            Map.entry("--sagemaker-safe-port-range", "SageMaker's endpoints are not supported"),
            Map.entry("--sagemaker-thread-count", "SageMaker's endpoints are not supported"),
            Map.entry("--allow-vertex-ai", "Vertex AI's endpoints are not supported"),
            Map.entry("--vertex-ai-port", "Vertex AI's endpoints are not supported"),
            Map.entry("--vertex-ai-thread-count", "Vertex AI's endpoints are not supported"),
            Map.entry("--vertex-ai-default-model", "Vertex AI's endpoints are not supported"));

    private UnsupportedFlags() {}

    /** Returns why an option is unsupported; null for an unknown option. */
    static @Nullable String why(String option) {
        return REASONS.get(option);
    }
}
