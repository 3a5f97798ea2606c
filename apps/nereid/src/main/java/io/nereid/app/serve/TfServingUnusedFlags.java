// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;

/**
 * The options of {@code tensorflow_model_server} that have nothing to set here and change no answer: a start script may
 * have them, and each is one line of warning. The description of an option says why it has no effect. Set by picocli, then
 * only read.
 */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class TfServingUnusedFlags {
    private static final String BACKEND =
            "the backend of a model is detected, or set by model_platform or config.pbtxt";
    private static final String TENSORFLOW =
            "it configures TensorFlow's runtime; --backend-config tensorflow,KEY=VALUE does that here";
    private static final String CPU = "models run on CPUs";
    private static final String TFLITE = "a SavedModel is run by TensorFlow, and a .tflite file by TensorFlow Lite";

    @Option(
            names = "--grpc_channel_arguments",
            hidden = true,
            description = "HTTP/2 keep-alive and memory limits are built in")
    String grpcChannelArguments;

    @Option(
            names = "--grpc_max_threads",
            hidden = true,
            description = "all connections share the threads of --io-threads")
    String grpcMaxThreads;

    @Option(names = "--platform_config_file", hidden = true, description = BACKEND)
    String platformConfigFile;

    @Option(names = "--tensorflow_session_config_file", hidden = true, description = TENSORFLOW)
    String tensorflowSessionConfigFile;

    @Option(names = "--thread_pool_factory_config_file", hidden = true, description = TENSORFLOW)
    String threadPoolFactoryConfigFile;

    @Option(names = "--per_process_gpu_memory_fraction", hidden = true, description = CPU)
    String perProcessGpuMemoryFraction;

    @Option(
            names = "--prefer_tflite_model",
            arity = "0..1",
            fallbackValue = "true",
            hidden = true,
            description = TFLITE)
    Boolean preferTfliteModel;

    @Option(names = "--num_tflite_pools", hidden = true, description = "instances of the configuration are run instead")
    String numTflitePools;

    @Option(
            names = "--num_tflite_interpreters_per_pool",
            hidden = true,
            description = "instances of the configuration are run instead")
    String numTfliteInterpretersPerPool;

    @Option(
            names = "--mixed_precision",
            hidden = true,
            description = "models are run in the precision that they are saved in")
    String mixedPrecision;

    @Option(
            names = {"--xla_cpu_compilation_enabled", "--xla_gpu_compilation_enabled"},
            arity = "0..1",
            fallbackValue = "true",
            hidden = true,
            description = "graphs are run without compilation by XLA")
    Boolean xlaCompilationEnabled;

    @Option(names = "--skip_initialize_tpu", arity = "0..1", fallbackValue = "true", hidden = true, description = CPU)
    Boolean skipInitializeTpu;

    @Option(
            names = "--enable_profiler",
            arity = "0..1",
            fallbackValue = "true",
            hidden = true,
            description = "there is no profiler of TensorFlow; --trace-config traces requests")
    Boolean enableProfiler;

    @Option(
            names = {"--flush_filesystem_caches", "--remove_unused_fields_from_bundle_metagraph"},
            arity = "0..1",
            fallbackValue = "true",
            hidden = true,
            description = "the files of models are read once, and not kept in memory")
    Boolean filesKept;

    @Option(names = "--num_unload_threads", hidden = true, description = "two threads unload models")
    Integer numUnloadThreads;

    /** A sentence for each of these options that the command line has. */
    List<String> warnings(CommandSpec command) {
        ParseResult parsed = command.commandLine().getParseResult();
        List<String> warnings = new ArrayList<>();
        for (CommandSpec mixin : command.mixins().values()) {
            if (mixin.userObject() != this) {
                continue;
            }
            for (OptionSpec option : mixin.options()) {
                String name = option.longestName();
                for (OptionSpec matched : parsed.matchedOptions()) {
                    if (matched.longestName().equals(name)) {
                        warnings.add(String.join(", ", matched.names())
                                + (matched.names().length == 1 ? " has" : " have") + " no effect: "
                                + String.join(" ", option.description()));
                    }
                }
            }
        }
        return warnings;
    }
}
