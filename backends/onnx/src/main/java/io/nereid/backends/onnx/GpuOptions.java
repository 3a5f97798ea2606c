// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.backends.onnx.engine.EngineCache;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What a model's configuration says about its runs on GPUs, in ONNX Runtime's keys and values. Immutable.
 *
 * <p>The names and values are those of Triton's ONNX Runtime backend: {@code gpu_execution_accelerator} has {@code cuda} and
 * {@code tensorrt} with their parameters, and the options of CUDA may be parameters of the model as well, as in older
 * configurations.
 *
 * @param cuda options of the CUDA execution provider, which every run on a GPU has
 * @param tensorRt options of the TensorRT execution provider; null when the model does not ask for it
 * @param fallback what the model runs on when the library of an execution provider cannot be loaded
 */
record GpuOptions(Map<String, String> cuda, @Nullable Map<String, String> tensorRt, Fallback fallback) {
    /** The model's parameter that chooses {@link Fallback}. */
    static final String FALLBACK = "nereid.gpu_fallback";

    static final String CACHE_ENABLE = "trt_engine_cache_enable";
    static final String CACHE_PATH = EngineCache.DIRECTORY_OPTION;
    static final String TIMING_ENABLE = "trt_timing_cache_enable";
    static final String TIMING_PATH = "trt_timing_cache_path";
    static final String CALIBRATION_TABLE = "trt_int8_calibration_table_name";
    static final String PLUGIN_LIBRARIES = "trt_extra_plugin_lib_paths";
    static final String CONTEXT_FILE = "trt_ep_context_file_path";

    /** What replaces an execution provider that cannot be loaded. */
    enum Fallback {
        /** The load fails, and nothing in the configuration can change that. */
        NEVER,
        /** The load fails. */
        NONE,
        /** CUDA for TensorRT; without CUDA the load fails. */
        CUDA,
        /** CUDA for TensorRT, and processors for CUDA. */
        CPU
    }

    private static final Map<String, ProviderOption> CUDA = table(
            ProviderOption.bytes("gpu_mem_limit"),
            ProviderOption.choice(
                    "arena_extend_strategy",
                    Map.of(
                            "kNextPowerOfTwo", "kNextPowerOfTwo",
                            "kSameAsRequested", "kSameAsRequested",
                            "0", "kNextPowerOfTwo",
                            "1", "kSameAsRequested")),
            ProviderOption.choice(
                    "cudnn_conv_algo_search",
                    Map.of(
                            "EXHAUSTIVE", "EXHAUSTIVE",
                            "HEURISTIC", "HEURISTIC",
                            "DEFAULT", "DEFAULT",
                            "0", "EXHAUSTIVE",
                            "1", "HEURISTIC",
                            "2", "DEFAULT")),
            ProviderOption.flag("do_copy_in_default_stream"),
            ProviderOption.flag("cudnn_conv_use_max_workspace"),
            ProviderOption.flag("cudnn_conv1d_pad_to_nc1d"),
            ProviderOption.flag("enable_cuda_graph"),
            ProviderOption.flag("tunable_op_enable"),
            ProviderOption.flag("tunable_op_tuning_enable"),
            ProviderOption.whole("tunable_op_max_tuning_duration_ms", 0, Integer.MAX_VALUE),
            ProviderOption.flag("enable_skip_layer_norm_strict_mode"),
            ProviderOption.flag("prefer_nhwc"),
            ProviderOption.flag("use_ep_level_unified_stream"),
            ProviderOption.flag("use_tf32"),
            ProviderOption.flag("fuse_conv_bias"),
            ProviderOption.whole("sdpa_kernel", 0, Integer.MAX_VALUE));

    /** The parameters of the model that are options of CUDA. */
    static final Set<String> MODEL_PARAMETERS = CUDA.keySet();

    private static final List<String> PROFILES =
            List.of("trt_profile_min_shapes", "trt_profile_max_shapes", "trt_profile_opt_shapes");

    private static final Map<String, ProviderOption> TENSORRT = tensorRtTable();

    /** The values of {@code precision_mode}; with FP32 no option is set. */
    private static final Map<String, String> PRECISIONS =
            Map.of("FP16", "trt_fp16_enable", "BF16", "trt_bf16_enable", "INT8", "trt_int8_enable", "FP32", "");

    private static final List<String> GRAPHS = List.of("enable_cuda_graph", "trt_cuda_graph_enable");

    /** Options of ONNX Runtime that a configuration cannot set. */
    private static final Map<String, String> REFUSED = Map.of(
            "device_id", "the GPU is the one of the instance: name it in gpus of the instance group",
            "has_user_compute_stream", "each session makes its stream; remove it",
            "user_compute_stream", "each session makes its stream; remove it",
            "gpu_external_alloc", "it is the address of a function, which a configuration cannot give; remove it",
            "gpu_external_free", "it is the address of a function, which a configuration cannot give; remove it",
            "gpu_external_empty_cache", "it is the address of a function, which a configuration cannot give; remove it",
            "trt_engine_decryption_enable", "engines are not encrypted; remove it",
            "trt_engine_decryption_lib_path", "engines are not encrypted; remove it");

    private static Map<String, ProviderOption> table(ProviderOption... options) {
        Map<String, ProviderOption> table = new LinkedHashMap<>();
        for (ProviderOption option : options) {
            table.put(option.key(), option);
        }
        return table;
    }

    private static Map<String, ProviderOption> tensorRtTable() {
        Map<String, ProviderOption> table = new LinkedHashMap<>();
        // The names of Triton that are not ONNX Runtime's.
        table.put("max_workspace_size_bytes", ProviderOption.bytes("trt_max_workspace_size"));
        table.put("int8_calibration_table_name", ProviderOption.fileName(CALIBRATION_TABLE));
        table.put("int8_use_native_calibration_table", ProviderOption.flag("trt_int8_use_native_calibration_table"));
        table.putAll(table(
                ProviderOption.whole("trt_max_partition_iterations", 1, Integer.MAX_VALUE),
                ProviderOption.whole("trt_min_subgraph_size", 1, Integer.MAX_VALUE),
                ProviderOption.flag("trt_dla_enable"),
                ProviderOption.whole("trt_dla_core", 0, Integer.MAX_VALUE),
                ProviderOption.flag(CACHE_ENABLE),
                ProviderOption.directory(CACHE_PATH),
                ProviderOption.fileName("trt_engine_cache_prefix"),
                ProviderOption.flag("trt_dump_subgraphs"),
                ProviderOption.flag("trt_force_sequential_engine_build"),
                ProviderOption.flag("trt_context_memory_sharing_enable"),
                ProviderOption.flag("trt_layer_norm_fp32_fallback"),
                ProviderOption.flag(TIMING_ENABLE),
                ProviderOption.directory(TIMING_PATH),
                ProviderOption.flag("trt_force_timing_cache"),
                ProviderOption.flag("trt_detailed_build_log"),
                ProviderOption.flag("trt_build_heuristics_enable"),
                ProviderOption.flag("trt_sparsity_enable"),
                ProviderOption.whole("trt_builder_optimization_level", 0, 5),
                ProviderOption.whole("trt_auxiliary_streams", -1, Integer.MAX_VALUE),
                ProviderOption.text("trt_tactic_sources"),
                ProviderOption.text(PLUGIN_LIBRARIES),
                ProviderOption.shapes(PROFILES.get(0)),
                ProviderOption.shapes(PROFILES.get(1)),
                ProviderOption.shapes(PROFILES.get(2)),
                ProviderOption.flag("trt_cuda_graph_enable"),
                ProviderOption.flag("trt_dump_ep_context_model"),
                ProviderOption.fileName(CONTEXT_FILE),
                ProviderOption.whole("trt_ep_context_embed_mode", 0, 1)));
        return table;
    }

    /**
     * Reads the configuration.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown accelerator or option, a wrong value, or an option that is given
     *     twice; UNIMPLEMENTED for CUDA graphs
     */
    static GpuOptions read(ModelConfig config) {
        Map<String, String> cuda = new LinkedHashMap<>();
        Map<String, String> tensorRt = null;
        List<String> seen = new ArrayList<>();
        for (ExecutionAccelerator accelerator : config.optimization().gpuAccelerators()) {
            String name = accelerator.name();
            if (seen.contains(name)) {
                throw ServingException.invalidArgument(
                        "Execution Accelerator '" + name + "' is requested twice for model '" + config.name() + "'",
                        "remove one of them");
            }
            seen.add(name);
            switch (name) {
                case "cuda" -> cuda.putAll(options("CUDA", CUDA, accelerator.parameters()));
                case "tensorrt" -> tensorRt = tensorRt(config, accelerator.parameters());
                default -> throw unknown(config, name);
            }
        }
        config.parameters().forEach((key, value) -> {
            ProviderOption option = CUDA.get(key);
            if (option != null) {
                String before = cuda.put(key, value(option, key, value));
                if (before != null) {
                    throw ServingException.invalidArgument(
                            "'" + key + "' of model '" + config.name()
                                    + "' is a parameter of the model and of the accelerator 'cuda'",
                            "remove one of them");
                }
            }
        });
        rejectGraphs(config, cuda);
        if (tensorRt != null) {
            rejectGraphs(config, tensorRt);
        }
        return new GpuOptions(cuda, tensorRt, fallback(config));
    }

    private static Fallback fallback(ModelConfig config) {
        String text = config.parameters().getOrDefault(FALLBACK, "none").strip();
        return switch (text) {
            case "none" -> Fallback.NONE;
            case "cuda" -> Fallback.CUDA;
            case "cpu" -> Fallback.CPU;
            default ->
                throw ServingException.invalidArgument("parameter '" + FALLBACK + "' of model '" + config.name()
                        + "' is '" + text + "' (expected: none, cuda or cpu)");
        };
    }

    private static Map<String, String> tensorRt(ModelConfig config, Map<String, String> parameters) {
        Map<String, String> given = new LinkedHashMap<>(parameters);
        String precision = given.remove("precision_mode");
        Map<String, String> options = options("TensorRT", TENSORRT, given);
        if (precision != null) {
            String key = PRECISIONS.get(precision.strip());
            if (key == null) {
                throw ServingException.invalidArgument("unsupported precision mode '" + precision
                        + "' is requested (expected: FP32, FP16, BF16 or INT8)");
            }
            if (!key.isEmpty()) {
                options.put(key, "1");
            }
        }
        long profiles = PROFILES.stream().filter(options::containsKey).count();
        if (profiles != 0 && profiles != PROFILES.size()) {
            throw ServingException.invalidArgument("model '" + config.name() + "' has some of "
                    + String.join(", ", PROFILES) + " (expected: all of them)");
        }
        if (options.containsKey(CALIBRATION_TABLE) && !options.containsKey("trt_int8_enable")) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has int8_calibration_table_name without precision_mode INT8",
                    "set precision_mode to INT8, or remove the table");
        }
        return options;
    }

    private static Map<String, String> options(
            String provider, Map<String, ProviderOption> table, Map<String, String> given) {
        Map<String, String> options = new LinkedHashMap<>();
        given.forEach((key, text) -> {
            ProviderOption option = table.get(key);
            if (option == null) {
                String why = REFUSED.get(key);
                throw ServingException.invalidArgument(
                        why != null
                                ? "parameter '" + key + "' of the " + provider
                                        + " Execution Accelerator cannot be configured"
                                : "unknown parameter '" + key + "' is provided for " + provider
                                        + " Execution Accelerator",
                        why != null
                                ? why
                                : NameSuggestions.didYouMean(
                                        key,
                                        List.copyOf(table.keySet()),
                                        "it has " + String.join(", ", table.keySet())));
            }
            options.put(option.key(), value(option, key, text));
        });
        return options;
    }

    private static String value(ProviderOption option, String key, String text) {
        String value = option.reader().apply(text.strip());
        if (value == null) {
            throw ServingException.invalidArgument(
                    "parameter '" + key + "' is '" + text + "' (expected: " + option.expected() + ")");
        }
        return value;
    }

    /**
     * A CUDA graph replays its kernels on the addresses of the run that it was recorded from. ONNX Runtime's Java API binds
     * memory of the host only, whose copies on the device have other addresses in each run.
     */
    private static void rejectGraphs(ModelConfig config, Map<String, String> options) {
        for (String key : GRAPHS) {
            if ("1".equals(options.get(key))) {
                throw ServingException.of(
                        ErrorCode.UNIMPLEMENTED,
                        "model '" + config.name() + "' asks for CUDA graphs ('" + key
                                + "'), which need inputs and outputs at fixed addresses of the GPU; ONNX Runtime's Java API"
                                + " cannot bind them",
                        "remove '" + key + "', or set it to 0");
            }
            options.remove(key);
        }
    }

    private static ServingException unknown(ModelConfig config, String name) {
        String remedy = switch (name) {
            case "auto_mixed_precision" ->
                "it is an accelerator of TensorFlow; for half precision use tensorrt with precision_mode FP16";
            case "gpu_io" ->
                "it is an accelerator of TensorFlow; ONNX Runtime copies inputs and outputs itself, so remove it";
            default -> "remove it";
        };
        return ServingException.invalidArgument(
                "unknown Execution Accelerator '" + name + "' is requested for model '" + config.name()
                        + "' (known: tensorrt, cuda)",
                remedy);
    }
}
