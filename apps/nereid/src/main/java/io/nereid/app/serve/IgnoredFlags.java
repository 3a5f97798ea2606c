// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.text.TruthValue;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/**
 * The options of {@code tritonserver} and {@code tensorflow_model_server} that have no counterpart: those that change no
 * answer when they are left out become one line of warning, so that start scripts work; a value that asks for what this
 * server does not do is refused. The options that have a counterpart are in {@link TritonFlags} and {@link
 * TfServingFlags}. Stateless.
 */
public final class IgnoredFlags {
    private static final String GPU = "GPUs do not read each other's memory here";
    private static final String GRPC_TUNING = "HTTP/2 keep-alive, connection ages and memory limits are built in";
    private static final String ONE_PORT = "REST and gRPC share a port and are always enabled; leave it out";
    private static final String OWN_PORT = "a port belongs to one process; run replicas on different ports";
    private static final String SAGEMAKER = "SageMaker's endpoints are not supported; leave it out";
    private static final String VERTEX = "Vertex AI's endpoints are not supported; leave it out";

    private static final String BACKEND =
            "the backend of a model is detected, or set by model_platform or config.pbtxt";
    private static final String TENSORFLOW =
            "it configures TensorFlow's runtime; --backend-config tensorflow,KEY=VALUE does that here";
    private static final String CPU = "models run on CPUs";
    private static final String INSTANCES = "instances of the configuration are run instead";
    private static final String XLA = "graphs are run without compilation by XLA";
    private static final String FILES = "the files of models are read once, and not kept in memory";

    /** Options of {@code tritonserver} that take true or false, by the only value that is supported. */
    private static final Map<String, Switch> SWITCHES = new LinkedHashMap<>();

    /** Options of {@code tritonserver} with any value, by the reason why they have no effect. */
    private static final Map<String, String> TRITON = new LinkedHashMap<>();

    /** Options of {@code tensorflow_model_server} with any value, likewise. */
    private static final Map<String, String> TF_SERVING = Map.ofEntries(
            Map.entry("--grpc_channel_arguments", "HTTP/2 keep-alive and memory limits are built in"),
            Map.entry("--grpc_max_threads", "all connections share the threads of --io-threads"),
            Map.entry("--platform_config_file", BACKEND),
            Map.entry("--tensorflow_session_config_file", TENSORFLOW),
            Map.entry("--thread_pool_factory_config_file", TENSORFLOW),
            Map.entry("--per_process_gpu_memory_fraction", CPU),
            Map.entry("--num_tflite_pools", INSTANCES),
            Map.entry("--num_tflite_interpreters_per_pool", INSTANCES),
            Map.entry("--mixed_precision", "models are run in the precision that they are saved in"),
            Map.entry("--num_unload_threads", "two threads unload models"));

    /** Options of {@code tensorflow_model_server} that may be given without a value. */
    private static final Map<String, String> TF_SERVING_SWITCHES = Map.of(
            "--prefer_tflite_model",
            "a SavedModel is run by TensorFlow, and a .tflite file by TensorFlow Lite",
            "--xla_cpu_compilation_enabled",
            XLA,
            "--xla_gpu_compilation_enabled",
            XLA,
            "--skip_initialize_tpu",
            CPU,
            "--enable_profiler",
            "there is no profiler of TensorFlow; --trace-config traces requests",
            "--flush_filesystem_caches",
            FILES,
            "--remove_unused_fields_from_bundle_metagraph",
            FILES);

    /**
     * An option that takes true or false.
     *
     * @param value the value that describes what this server does, which needs no warning
     * @param refused whether the other value is an error; otherwise it is a warning
     * @param reason why the other value is refused or has no effect
     */
    private record Switch(boolean value, boolean refused, String reason) {}

    static {
        SWITCHES.put("--allow-http", new Switch(true, true, ONE_PORT));
        SWITCHES.put("--allow-grpc", new Switch(true, true, ONE_PORT));
        SWITCHES.put("--reuse-http-port", new Switch(false, true, OWN_PORT));
        SWITCHES.put("--reuse-grpc-port", new Switch(false, true, OWN_PORT));
        SWITCHES.put("--allow-sagemaker", new Switch(false, true, SAGEMAKER));
        SWITCHES.put("--allow-vertex-ai", new Switch(false, true, VERTEX));
        SWITCHES.put("--allow-cpu-metrics", new Switch(true, false, "the metrics of processors are always exported"));
        SWITCHES.put("--enable-peer-access", new Switch(false, false, GPU));
        SWITCHES.put(
                "--model-namespacing", new Switch(false, false, "a model's name must be unique over all repositories"));
        TRITON.put("--cuda-virtual-address-size", GPU);
        TRITON.put(
                "--backend-directory",
                "backends are built in or plugins (nereid plugins list); libtriton_*.so libraries are not loaded");
        TRITON.put(
                "--repoagent-directory",
                "the checksum agent is built in; libtritonrepoagent_*.so libraries are not loaded");
        TRITON.put(
                "--cache-directory",
                "caches are built in (see --cache-config); libtritoncache_*.so libraries are not loaded");
        TRITON.put("--buffer-manager-thread-count", "inputs are gathered by the thread that runs the model");
        TRITON.put("--grpc-infer-thread-count", "all connections share the threads of --io-threads");
        for (String name : new String[] {
            "--grpc-infer-allocation-pool-size",
            "--grpc-max-response-pool-size",
            "--grpc-keepalive-time",
            "--grpc-keepalive-timeout",
            "--grpc-keepalive-permit-without-calls",
            "--grpc-http2-max-pings-without-data",
            "--grpc-http2-min-recv-ping-interval-without-data",
            "--grpc-http2-max-ping-strikes",
            "--grpc-max-connection-age",
            "--grpc-max-connection-age-grace"
        }) {
            TRITON.put(name, GRPC_TUNING);
        }
        TRITON.put("--sagemaker-port", SAGEMAKER);
        TRITON.put("--sagemaker-safe-port-range", SAGEMAKER);
        TRITON.put("--sagemaker-thread-count", SAGEMAKER);
        TRITON.put("--vertex-ai-port", VERTEX);
        TRITON.put("--vertex-ai-thread-count", VERTEX);
        TRITON.put("--vertex-ai-default-model", VERTEX);
    }

    private IgnoredFlags() {}

    /** Adds the options to the command. */
    public static void addTo(CommandSpec serve) {
        add(serve, SWITCHES.keySet(), "0..1");
        add(serve, TRITON.keySet(), "1");
        add(serve, TF_SERVING.keySet(), "1");
        add(serve, TF_SERVING_SWITCHES.keySet(), "0..1");
    }

    private static void add(CommandSpec serve, Set<String> names, String values) {
        names.forEach(name -> serve.addOption(OptionSpec.builder(name)
                .type(String.class)
                .arity(values)
                .fallbackValue("true")
                .hidden(true)
                .build()));
    }

    /** Whether the option is one of these, of {@code tritonserver}. */
    static boolean isTriton(OptionSpec option) {
        return SWITCHES.containsKey(option.longestName()) || TRITON.containsKey(option.longestName());
    }

    /**
     * Returns a warning for each given option that has no effect.
     *
     * @throws ParameterException for a value that asks for what this server does not do
     */
    static List<String> warnings(CommandSpec serve) {
        List<String> warnings = new ArrayList<>();
        for (OptionSpec option : serve.commandLine().getParseResult().matchedOptions()) {
            String name = option.longestName();
            Switch known = SWITCHES.get(name);
            if (known != null) {
                boolean value = parse(serve, name, option.getValue());
                if (value != known.value()) {
                    if (known.refused()) {
                        throw new ParameterException(
                                serve.commandLine(), name + "=" + value + " is not supported: " + known.reason());
                    }
                    warnings.add(name + "=" + value + " has no effect: " + known.reason());
                }
                continue;
            }
            for (Map<String, String> ignored : List.of(TRITON, TF_SERVING, TF_SERVING_SWITCHES)) {
                String reason = ignored.get(name);
                if (reason != null) {
                    warnings.add(name + " has no effect: " + reason);
                }
            }
        }
        return warnings;
    }

    private static boolean parse(CommandSpec serve, String name, @Nullable String text) {
        Boolean value = text == null ? null : TruthValue.of(text);
        if (value == null) {
            throw new ParameterException(
                    serve.commandLine(), "invalid value '" + text + "' for " + name + " (expected: true or false)");
        }
        return value;
    }
}
